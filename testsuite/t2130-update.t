# Changing jobs after they were accepted: the same checks, nothing half done, what runs keeps its room.
. "${CRUN_SRCDIR:?}/testsuite/lib.sh"
plan 43
SYNTHETIC="core:8 pu:1" instance_start 'kill_grace = 2' 'partition "main" { default = true
max_time = 2h }' 'partition "other" { max_time = 10m }'
cd "$T" || exit 1
spec() { job_field "$1" "$2"; }
a=$(submit -H -n 2 -t 30 -J one -o a.out -- true)
ok "a waiting job changes" crun-ctl update "$a" TimeLimit=60 job-name=two NumTasks=3 comment="x y"
is "time limit" "$(spec "$a" .time_limit_s)" 3600
is "name" "$(spec "$a" .name)" two
is "tasks" "$(spec "$a" .ntasks)" 3
is "comment" "$(spec "$a" .comment)" "x y"
must_fail 1 'at most' crun-ctl update "$a" time=3h
must_fail 1 "partition 'nowhere' does not exist" crun-ctl update "$a" Partition=nowhere
must_fail 1 'asked 99 tasks|99' crun-ctl update "$a" ntasks=99
must_fail 2 'not a whole number' crun-ctl update "$a" ntasks=x
must_fail 2 'cannot be changed' crun-ctl update "$a" JobState=RUNNING
must_fail 2 'KEY=VALUE' crun-ctl update "$a"
must_fail 1 'at most' crun-ctl update "$a" comment=z partition=other
is "a refused change changes nothing" "$(spec "$a" .comment) $(spec "$a" .partition)" "x y main"
ok "two at once, and it fits" crun-ctl update "$a" partition=other time=5
is "both are there" "$(spec "$a" .partition) $(spec "$a" .time_limit_s)" "other 300"
daemon_kill9 crunctld
instance_restart crunctld
is "a restart keeps it" "$(spec "$a" .partition) $(spec "$a" .time_limit_s) $(spec "$a" .name)" "other 300 two"
ok "a comment is cleared by nothing" crun-ctl update "$a" comment=
is "it is gone" "$(spec "$a" .comment)" null
like "the history says who and what" "$(crun-events -j "$a")" 'update.*partition'
crun-ctl release "$a"
ok "and it runs with what it asks now" timeout 20 crun-wait "$a"
is "so many cores" "$(crun-acct -n -X -P -j "$a" -o AllocCPUS)" 3

# dependencies
b=$(submit -H -- true)
c=$(submit -d "afterok:$b" -- true)
must_fail 1 'wait for itself' crun-ctl update "$b" Dependency="afterany:$c"
ok "a dependency is cleared" crun-ctl update "$c" Dependency=
ok "the job starts" timeout 20 crun-wait "$c"
d=$(submit -H -- true)
crun-ctl update "$d" StartTime=now+1hour
crun-ctl release "$d"
is "a start time is set" "$(job_field "$d" .reason)" BeginTime
crun-ctl update "$d" begin=now
ok "and taken back" timeout 20 crun-wait "$d"

one=$(submit -H -J X -- true)
two=$(submit -H -J X -- true)
ok "one waits for the other" crun-ctl update "$one" dependency="afterok:$two"
must_fail 1 'wait for itself' crun-ctl update "$two" dependency=singleton
crun-cancel "$one" "$two"
r=$(submit --retries=5 --retry-delay=50:00 -o r.out -- sh -c 'echo x; false')
retry_waits() { [ "$(job_field "$r" .reason)" = BeginTime ]; }
wait_for 20 retry_waits
crun-ctl update "$r" comment=x
is "a comment does not end a back-off" "$(job_field "$r" .state):$(job_field "$r" .reason)" pending:BeginTime
crun-cancel "$r"
# ids at the end of their range once made loops without end
must_fail 2 'not a job id|too much' crun-wait 18446744073709551610-18446744073709551615
must_fail 2 'not a job id|too much' crun-ctl requeue 18446744073709551610-18446744073709551615

# what runs
e=$(submit -t 30 -o /dev/null -- sleep 60)
wait_for 20 job_is "$e" running
must_fail 1 'while something of it runs' crun-ctl update "$e" ntasks=2
t0=$(date +%s)
ok "the time limit of a running job is cut" crun-ctl update "$e" time=3s
timeout 30 crun-wait "$e"
is "and counts" "$?" 124
ok "soon" test $(($(date +%s) - t0)) -lt 20
f=$(submit -t 4s -o /dev/null -- sh -c 'sleep 7')
wait_for 20 job_is "$f" running
crun-ctl update "$f" time=1m
ok "a longer one reaches the node" timeout 30 crun-wait "$f"

s=$(submit -t 10m --signal=USR1@598 -o s.out -- sh -c 'trap "echo got; exit 0" USR1; while :; do sleep 0.1; done')
wait_for 20 job_is "$s" running
crun-ctl update "$s" time=11m
wait_for 2 grep -q got s.out
is "the early signal moves with the limit" "$(cat s.out)" ""
crun-ctl update "$s" time=9m59s
ok "back, and it comes" timeout 30 crun-wait "$s"

u=$(submit -o /dev/null -- sleep 300)
wait_for 20 job_is "$u" running
must_fail 1 'runs already' crun-ctl hold "$u"
must_fail 2 'takes no argument' crun-ctl pause 5
must_fail 1 "node 'nosuch' does not exist" crun-submit -w nosuch -- true
crun-cancel --me

# arrays
g=$(submit -a 0-5%1 -o /dev/null -- sleep 3)
wait_for 20 job_is "$g" pending
ok "the throttle of an array is changed while it runs" crun-ctl update "$g" ArrayTaskThrottle=6
running() { [ "$(crun-queue -h -r -j "$g" -t R | wc -l)" -ge 5 ]; }
ok "more of it run at once" wait_for 10 running
crun-cancel "$g"
