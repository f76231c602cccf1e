# kill -9 of the controller at each named point while jobs on three nodes start, run and go down:
# each leader runs once, and every core is free afterwards.
. "${CRUN_SRCDIR:?}/testsuite/lib.sh"
need_netns
# The client's own refusal, while it takes no other number: nothing is started for it.
points="turn.before-commit turn.after-commit store.after-commit effect.before-send-start effect.after-send-start
nodelink.before-ack"
plan $(($(echo $points | wc -w) * 6))
cluster_start 3 'kill_grace = 2'
cd "$T" || exit 1
chmod 777 .

all_free() { # the ledger agrees with the rows, and nothing is held
    on_head crun-ctl selfcheck >/dev/null && [ "$(on_head crun-info --json | jq '[.nodes[].cores_used] | add')" = 0 ]
}
# As a service manager would: whenever the controller is gone, start it again. Ends with the file "watch".
watch_controller() {
    while [ -e "$T/watch" ]; do
        wait_gone 1 "$(daemon_pid crunctld 2>/dev/null || echo 0)" && echo died >>"$T/deaths"
        [ -e "$T/watch" ] && on_head crun-start --dir="$H" --controller-only >/dev/null 2>&1
    done
}

for p in $points; do
    for nth in 1 3; do
        daemon_kill9 crunctld
        : >deaths
        : >watch
        CRUN_FAULT="$p:kill=$nth" on_head crun-start --dir="$H" --controller-only >/dev/null 2>&1 || echo died >>deaths
        watch_controller &
        watcher=$!
        ids=
        for i in 0 1 2; do
            ids="$ids $(submit -N 3 -n 3 --mem=16M -o /dev/null -- sh -c "echo $p $nth $i >>'$T/ran'")"
        done
        timeout 60 ip netns exec "$NS" crun-wait $ids
        rm watch
        wait "$watcher"
        ok "$p at $nth: the point was reached" test -s deaths
        is "$p at $nth: each leader ran once" "$(grep "^$p $nth " ran | sort | tr '\n' ' ')" "$p $nth 0 $p $nth 1 $p $nth 2 "
        ok "$p at $nth: all cores are free" wait_for 30 all_free
    done
done
