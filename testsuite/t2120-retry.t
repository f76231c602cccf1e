# Further attempts: retries by cause, requeue by hand, holds by an administrator, a pause.
. "${CRUN_SRCDIR:?}/testsuite/lib.sh"
plan 26
SYNTHETIC="core:4 pu:1" instance_start 'kill_grace = 2'
cd "$T" || exit 1
attempts() { crun-acct -n -X -j "$1" -P -o JobID | wc -l; }
a=$(submit --retries=3 --retry-on=exit:75 -o a.out -- sh -c 'echo "attempt $CRUN_ATTEMPT"; [ "$CRUN_ATTEMPT" -ge 3 ] || exit 75')
ok "a failure that was named is tried again" timeout 30 crun-wait "$a"
is "until it succeeds" "$(grep -c '^attempt' a.out)" 3
like "each attempt is accounted for" "$(crun-acct -n -j "$a" --json | jq -c '[.jobs[] | .attempt.attempt // .attempt]' 2>/dev/null || true)" '3'
b=$(submit --retries=2 --retry-on=exit:75 -o b.out -- sh -c 'echo x; exit 1')
timeout 30 crun-wait "$b"
is "another failure is not" $? 1
is "it ran once" "$(wc -l <b.out)" 1
c=$(submit --retries=2 -o c.out -- sh -c 'echo x; exit 7')
timeout 30 crun-wait "$c"
is "when the retries are used up the last exit code counts" $? 7
is "it ran three times" "$(grep -c x c.out)" 3
d=$(submit --retries=1 --retry-on=signal:KILL -o d.out -- sh -c 'echo x; kill -9 $$')
timeout 30 crun-wait "$d"
is "a signal can be named" "$?:$(grep -c x d.out)" 137:2
e=$(submit --retries=1 --retry-on=timeout -t 1s -o e.out -- sh -c 'echo x; exec sleep 60')
timeout 60 crun-wait "$e"
is "and the time limit" "$?:$(grep -c x e.out)" 124:2
f=$(submit --retries=3 --retry-delay=2s -o f.out -- sh -c 'date +%s; [ "$CRUN_ATTEMPT" = 3 ]')
wait_for 20 sh -c "[ \"\$(crun-ctl show job $f | jq -r '.jobs[0].reason')\" = BeginTime ]"
is "a delay before the next attempt shows" "$(job_field "$f" .reason)" BeginTime
daemon_kill9 crunctld
instance_restart crunctld
ok "and survives a restart" timeout 60 crun-wait "$f"
grep -E '^[0-9]+$' f.out >f.times
ok "it doubles" awk 'NR == 1 { a = $1 } NR == 2 { b = $1 } NR == 3 { exit !(b - a >= 1 && $1 - b >= 3) }' f.times
g=$(submit -a 0-2 --retries=2 -o 'g.%a.out' -- sh -c 'echo x; [ "$CRUN_ARRAY_TASK_ID" != 1 ]')
timeout 60 crun-wait "$g"
is "elements have retries of their own" "$(grep -c x g.0.out) $(grep -c x g.1.out) $(grep -c x g.2.out)" "1 3 1"

# by hand
mkfifo go
h=$(submit -o h.out -- sh -c 'echo "attempt $CRUN_ATTEMPT"; read x <go')
wait_for 20 job_is "$h" running
crun-ctl requeue "$h"
wait_for 30 grep -q 'attempt 2' h.out
is "a requeued job runs again under its id" "$(job_field "$h" .state)" running
crun-ctl requeuehold "$h"
wait_for 30 job_is "$h" pending
is "and waits when it was held" "$(job_field "$h" .reason)" JobHeldUser
crun-ctl release "$h"
wait_for 30 grep -q 'attempt 3' h.out
crun-ctl requeue "$h"
crun-cancel "$h"
timeout 30 crun-wait "$h"
is "a cancel behind a requeue is the end" "$?:$(job_field "$h" .state)" 241:cancelled
must_fail 1 'has ended already' crun-ctl requeue "$h"
i=$(submit -H -- true)
must_fail 1 'nothing of it runs' crun-ctl requeue "$i"
j=$(submit -a 0-1 -o 'j.%a.out' -- sh -c 'echo x; [ "$CRUN_ATTEMPT" = 2 ] || exec sleep 60')
wait_for 20 job_is "$j" running
wait_for 20 sh -c 'grep -q x j.0.out && grep -q x j.1.out'
crun-ctl requeue "${j}_0" "${j}_1"
ok "elements too" timeout 60 crun-wait "$j"

# a pause
crun-ctl pause >/dev/null
k=$(submit -o k.out -- true)
wait_for 20 sh -c "[ \"\$(crun-ctl show job $k | jq -r '.jobs[0].reason')\" = SchedulingPaused ]"
is "nothing starts in a pause" "$(job_field "$k" .state):$(job_field "$k" .reason)" pending:SchedulingPaused
daemon_kill9 crunctld
instance_restart crunctld
l=$(submit -o l.out -- true)
wait_for 20 sh -c "[ \"\$(crun-ctl show job $l | jq -r '.jobs[0].reason')\" = SchedulingPaused ]"
is "not after a restart either" "$(job_field "$k" .state) $(job_field "$l" .state)" "pending pending"
like "crun-diag says so" "$(crun-diag)" '[Pp]aused'
crun-ctl unpause >/dev/null
ok "until it is over" timeout 20 crun-wait "$k" "$l"

# rank
m=$(submit -H --nice=5 -- true)
is "nice is taken off the rank" "$(crun-prio --json -j "$m" 2>/dev/null | jq '.jobs[0].priority')" -5
n=$(submit -H --priority=9 -- true)
is "an administrator may set it" "$(crun-prio --json -j "$n" 2>/dev/null | jq '.jobs[0].priority')" 9
is "the ledger agrees" "$(crun-ctl selfcheck >/dev/null; echo $?)" 0
