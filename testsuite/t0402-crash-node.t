# kill -9 of crund and of the shepherd at each named point: right end states, nothing run twice unless the
# first try is proven dead, nothing left over.
. "${CRUN_SRCDIR:?}/testsuite/lib.sh"
node_points="node.before-start-forward node.after-start-forward node.before-end-forward node.after-end-forward"
shep_points="shepherd.before-spawn shepherd.after-spawn shepherd.before-exit-record shepherd.after-exit-record"
plan $(($(echo $node_points | wc -w) * 3 + $(echo $shep_points | wc -w) * 3))
instance_start
cd "$T" || exit 1

for p in $node_points; do
    crun-stop --dir="$H" >/dev/null
    CRUN_FAULT="$p:kill=2" crun-start --dir="$H" --node=n1 >/dev/null 2>&1
    : >"ran-$p"
    pid=$(daemon_pid crund n1)
    id=$(submit -a 0-3 -o /dev/null -- sh -c "echo \$CRUN_ARRAY_TASK_ID >>'ran-$p'; exit 5")
    ok "$p: the point was reached" wait_gone 20 "$pid"
    crun-start --dir="$H" --node=n1 >/dev/null 2>&1
    timeout 60 crun-wait "$id"
    is "$p: the exit code survives" "$?" 5
    is "$p: each element ran exactly once" "$(sort "ran-$p" | tr '\n' ' ')" "0 1 2 3 "
done
for p in $shep_points; do
    crun-stop --dir="$H" >/dev/null
    # crund hands its environment to the shepherd that it starts
    CRUN_FAULT="$p:kill=2" crun-start --dir="$H" --node=n1 >/dev/null 2>&1
    id=$(submit -a 0-3 -o /dev/null -- sh -c "echo \$CRUN_ARRAY_TASK_ID \$CRUN_ATTEMPT \$\$ >>'ran-$p'")
    timeout 60 crun-wait "$id"
    is "$p: the array ends well all the same" "$?" 0
    is "$p: each element completed once; one may have a second attempt" "$(cut -d' ' -f1 "ran-$p" | sort -u | tr '\n' ' ')" "0 1 2 3 "
    ok "$p: the ledger agrees and nothing is held" sh -c 'crun-ctl selfcheck && test "$(crun-info --json | jq ".nodes[0].cores_used")" = 0'
done
