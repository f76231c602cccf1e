# Begin and deadline, and what a restart of the controller in between changes: nothing.
. "${CRUN_SRCDIR:?}/testsuite/lib.sh"
plan 14
SYNTHETIC="core:4 pu:1" instance_start 'kill_grace = 2'
cd "$T" || exit 1
job() { submit -o /dev/null "$@"; }
a=$(job -b now+2 -- true)
is "a job with a start time waits" "$(job_field "$a" .state):$(job_field "$a" .reason)" pending:BeginTime
like "crun-why says until when" "$(crun-why "$a")" 'not before 20'
t0=$(date +%s)
ok "it starts then" timeout 20 crun-wait "$a"
t1=$(date +%s)
ok "neither early nor late" test $((t1 - t0)) -ge 1 -a $((t1 - t0)) -le 4
b=$(job -b now+4 -- true)
c=$(job -b now+1hour -- true)
daemon_kill9 crunctld
instance_restart crunctld
is "a restart forgets no start time" "$(job_field "$c" .reason)" BeginTime
ok "and it still comes" timeout 20 crun-wait "$b"
d=$(job -H --deadline now+2 -- true)
timeout 20 crun-wait "$d"
is "one that has not started by its deadline ends with 243" $? 243
is "its state" "$(job_field "$d" .state)" deadline
e=$(job --deadline now+3 -- sleep 60)
timeout 30 crun-wait "$e"
is "one that runs then is ended" $? 243
like "by the deadline" "$(crun-acct -n -X -j "$e" -o State,Reason 2>/dev/null || crun-queue -t all -j "$e")" 'DEADLINE|DL'
f=$(job -a 0-3%1 --deadline now+3 -- sleep 60)
timeout 30 crun-wait "$f"
is "the elements of an array too" $? 243
must_fail 2 'has passed' crun-submit --deadline 2001-01-01 -- true
must_fail 2 'not before the deadline|deadline' crun-submit -b now+2hours --deadline now+1hour -- true
crun-cancel "$c"
is "the ledger agrees" "$(crun-ctl selfcheck >/dev/null; echo $?)" 0
