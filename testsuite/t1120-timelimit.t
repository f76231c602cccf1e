# Time limits: TERM, grace, KILL; cancel does the same; what is left over dies too.
. "${CRUN_SRCDIR:?}/testsuite/lib.sh"
plan 12
instance_start 'kill_grace = 2'
cd "$T" || exit 1
mkfifo never # before the jobs: <> would make a plain file
id=$(submit -t 1s -o t.out -- sh -c 'trap "echo got TERM; exit 7" TERM; echo up; while :; do read -r x <>never; done')
crun-wait "$id"
is "a job over its limit ends with 124" "$?" 124
is "its state is TIMEOUT, its cause the limit" "$(job_field "$id" .state) $(job_field "$id" .attempt.cause)" "timeout time limit"
is "it got TERM first and its own exit code is kept" "$(tail -n 1 t.out) $(job_field "$id" .attempt.exit_code)" "got TERM 7"
id=$(submit -t 1s -- sh -c 'trap "" TERM; while :; do read -r x <>never; done')
start=$(date +%s)
crun-wait "$id"
is "what ignores TERM is killed after the grace" "$(job_field "$id" .attempt.signal)" 9
took=$(($(date +%s) - start))
ok "within the limit and the grace ($took s)" test "$took" -le 8
id=$(submit -o pids -- sh -c 'trap "" TERM; (setsid sh -c "echo \$\$; read -r x <>never" &) ; echo $$; read -r x <>never')
wait_for 20 sh -c '[ "$(wc -l <pids)" = 2 ]'
crun-cancel "$id"
crun-wait "$id"
is "a cancelled job ends with 241" "$?" 241
is "as CANCELLED" "$(job_field "$id" .state) $(job_field "$id" .attempt.cause)" "cancelled cancel"
alive=0
for p in $(cat pids); do [ -d "/proc/$p" ] && alive=$((alive + 1)); done
is "no process of it is left, not even one with a session of its own" "$alive" 0
id=$(submit -o pids2 -- sh -c 'setsid sh -c "echo \$\$; read -r x <>never" & wait_pid=$!; while [ ! -s pids2 ]; do :; done; exit 0')
ok "a job whose leader leaves a child behind ends" crun-wait "$id"
ok "and the child is gone" test ! -d "/proc/$(cat pids2)"
id=$(submit -- sh -c 'trap "echo usr1 >got; exit 0" USR1; echo up >up; while :; do read -r x <>never; done')
wait_for 20 test -e up
crun-cancel -s USR1 "$id"
ok "crun-cancel -s sends a signal and cancels nothing" crun-wait "$id"
is "the job got it" "$(cat got) $(job_field "$id" .state)" "usr1 completed"
