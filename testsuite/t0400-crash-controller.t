# kill -9 of the controller at each named point: nothing accepted is lost, nothing runs twice.
. "${CRUN_SRCDIR:?}/testsuite/lib.sh"
points="turn.before-commit turn.after-commit turn.before-reply store.before-commit store.after-commit
effect.before-send-start effect.after-send-start nodelink.before-ack"
plan $(($(echo $points | wc -w) * 5))
instance_start
cd "$T" || exit 1

# As a service manager would: whenever the controller is gone, start it again. Ends with the file "watch".
watch_controller() {
    while [ -e "$T/watch" ]; do
        wait_gone 1 "$(daemon_pid crunctld 2>/dev/null || echo 0)" && echo died >>"$T/deaths"
        [ -e "$T/watch" ] && crun-start --dir="$H" --node=n1 >/dev/null 2>&1
    done
}

for p in $points; do
    for nth in 1 2; do
        crun-stop --dir="$H" >/dev/null
        mark=$p-$nth
        : >"ran-$mark"
        : >deaths
        : >watch
        CRUN_FAULT="$p:kill=$nth" crun-start --dir="$H" --node=n1 >/dev/null 2>&1 || echo died >>deaths
        watch_controller &
        watcher=$!
        # Submits go on through the death of the controller: same request key, so one job each.
        for i in 0 1 2 3; do
            crun-submit --parsable -o /dev/null -- sh -c "echo $i >>'$T/ran-$mark'" >>"ids-$mark" 2>"err-$mark" || cat "err-$mark"
        done
        ids=$(cat "ids-$mark")
        timeout 60 crun-wait $ids
        rm watch
        wait "$watcher"
        if [ $nth = 1 ]; then
            ok "$p: the point was reached" test -s deaths
            is "$p: every submit got its id, every job ended well" "$(for id in $ids; do job_field "$id" .state; done | sort | uniq -c | tr -s ' ')" " 4 completed"
        fi
        is "$p at $nth: each ran exactly once" "$(sort "ran-$mark" | tr '\n' ' ')" "0 1 2 3 "
    done
    ok "$p: the ledger agrees with the rows" crun-ctl selfcheck
done
