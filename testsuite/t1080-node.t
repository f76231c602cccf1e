# crun-node, crun-info, crun-ctl, crun-why on one node.
. "${CRUN_SRCDIR:?}/testsuite/lib.sh"
plan 16
instance_start
cd "$T" || exit 1
cores=$(crun-info --json | jq '.nodes[0].cores')
like "crun-node show has cores and memory" "$(crun-node show n1)" "cores: +0 of $cores in use"
must_fail 2 'reason' crun-node drain n1
crun-node drain n1 --reason='bad fan'
id=$(submit -o /dev/null -- true)
wait_for 10 sh -c "[ \"\$(crun-queue -h $id | grep -c ReqNodeNotAvail)\" = 1 ]"
like "a job that waits for a drained node says so" "$(crun-queue -h "$id")" 'ReqNodeNotAvail'
like "crun-why gives the reason and who" "$(crun-why "$id")" 'drained.*n1.*bad fan'
crun-stop --dir="$H" >/dev/null && crun-start --dir="$H" --node=n1 >/dev/null
like "a drain outlives the controller" "$(crun-info -N -h)" 'drained.*bad fan'
crun-node resume n1
ok "after resume the job runs" crun-wait "$id"
must_fail 2 "'frob' is unknown, allowed: list, show, drain, resume" crun-node frob
ok "crun-ctl ping" crun-ctl ping
like "crun-ctl diag counts" "$(crun-ctl diag)" 'job'
is "diag as JSON" "$(crun-ctl diag --json | jq -r .schema)" crun/diag/1
like "show-config has origins" "$(crun-ctl show-config)" 'cluster = .*test'
mkfifo gate
a=$(submit -n "$cores" -- sh -c 'read -r x <gate')
wait_for 20 job_is "$a" running
b=$(submit -n "$cores" -- true)
c=$(submit -- true)
like "crun-why of the first that waits: what it needs and who has it" "$(crun-why "$b")" "needs $cores core|$cores cores"
like "crun-why of the next: its place" "$(crun-why "$c")" '1 job|ahead|behind'
is "JSON for programs" "$(crun-why --json "$b" | jq -r '.schema, (.jobs[0].why | length > 0)' | tr '\n' ' ')" "crun/why/1 true "
echo go >gate
ok "then they run" crun-wait "$a" "$b" "$c"
shut_down() {
    pid=$(daemon_pid crunctld)
    crun-ctl shutdown && wait_gone 20 "$pid"
}
ok "shutdown stops the controller cleanly" shut_down
