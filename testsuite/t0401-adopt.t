# Jobs outlive the daemons: a restarted crund or crunctld finds the same processes and their exit codes.
. "${CRUN_SRCDIR:?}/testsuite/lib.sh"
plan 16
instance_start
cd "$T" || exit 1
mkfifo g1 g2 g3 never

start_job() { # FIFO CODE
    submit -n 1 --mem=50M -o "o-$1" -- sh -c "echo \$\$; echo x >>runs-$1; read -r x <$1; exit $2"
}
for who in crund crunctld both; do
    case $who in crund) g=g1 c=11 ;; crunctld) g=g2 c=12 ;; both) g=g3 c=13 ;; esac
    id=$(start_job $g $c)
    wait_for 20 test -s "o-$g"
    wait_for 20 job_is "$id" running
    pid=$(job_field "$id" .attempt.pid)
    is "$who: the record has the pid of the process" "$pid" "$(cat "o-$g")"
    case $who in
    crund) daemon_kill9 crund n1 ;;
    crunctld) daemon_kill9 crunctld ;;
    both) daemon_kill9 crund n1; daemon_kill9 crunctld ;;
    esac
    [ $who != both ] || echo go >$g # it ends while nobody is there
    crun-start --dir="$H" --node=n1 >/dev/null
    if [ $who != both ]; then
        wait_for 20 job_is "$id" running
        is "$who: after the restart it runs under the same pid" "$(job_field "$id" .attempt.pid)" "$pid"
        ok "$who: the process is still that one" test -d "/proc/$pid"
        echo go >$g
    fi
    timeout 60 crun-wait "$id"
    is "$who: its exit code is right" "$?" "$c"
    is "$who: it ran once, as attempt 1" "$(wc -l <"runs-$g") $(job_field "$id" .attempt.attempt)" "1 1"
done
id=$(submit -t 3s -o /dev/null -- sh -c 'while :; do read -r x <>never; done')
wait_for 20 job_is "$id" running
daemon_kill9 crund n1
daemon_kill9 crunctld
crun-start --dir="$H" --node=n1 >/dev/null
timeout 60 crun-wait "$id"
is "a time limit holds over a restart" "$?" 124
ok "all is free again" sh -c 'test "$(crun-info --json | jq ".nodes[0].cores_used")" = 0'
ok "the ledger agrees with the rows" crun-ctl selfcheck
