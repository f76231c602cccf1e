# kill -9 of the controller at each named point: nothing accepted is lost, nothing runs twice.
. "${CRUN_SRCDIR:?}/testsuite/lib.sh"
points="turn.before-commit turn.after-commit turn.before-reply store.before-commit store.after-commit
effect.before-send-start effect.after-send-start nodelink.before-ack"
plan $(($(echo $points | wc -w) * 5))
instance_start
cd "$T" || exit 1

for p in $points; do
    for nth in 1 3; do
        crun-stop --dir="$H" >/dev/null
        CRUN_FAULT="$p:kill=$nth" crun-start --dir="$H" --node=n1 >/dev/null 2>&1
        mark=$(echo "$p-$nth" | tr -c 'a-z0-9\n' -)
        : >"ran-$mark"
        # Submits go on through the death of the controller: same request key, so one job each.
        i=0
        while [ $i -lt 4 ]; do
            crun-submit --parsable -o /dev/null -- sh -c "echo $i >>'$T/ran-$mark'" >>"ids-$mark" 2>"err-$mark" &
            i=$((i + 1))
        done
        # The point is hit by the submits or the starts; bring the controller back as soon as it is gone.
        pid=$(daemon_pid crunctld)
        timeout 10 tail --pid="$pid" -f /dev/null
        crun-start --dir="$H" --node=n1 >/dev/null 2>&1
        wait
        [ $nth = 1 ] && is "$p: every submit got its id" "$(sort -u "ids-$mark" | grep -c .)" 4
        ids=$(cat "ids-$mark")
        timeout 60 crun-wait $ids
        [ $nth = 1 ] && is "$p: every job ends well" "$(for id in $ids; do job_field "$id" .state; done | sort | uniq -c | tr -s ' ')" " 4 completed"
        is "$p at $nth: each ran exactly once" "$(sort "ran-$mark" | tr '\n' ' ')" "0 1 2 3 "
    done
    ok "$p: the ledger agrees with the rows" crun-ctl selfcheck
done
