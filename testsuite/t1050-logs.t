# crun-logs: what a job wrote, while it runs and afterwards; nothing lost, nothing doubled.
. "${CRUN_SRCDIR:?}/testsuite/lib.sh"
plan 11
instance_start
cd "$T" || exit 1
mkfifo gate
id=$(submit -o log.out -- sh -c 'echo first; read -r x <gate; echo second')
wait_for 20 grep -q first log.out
is "what is there is shown at once, without -f" "$(timeout 20 crun-logs "$id")" first
crun-logs -f "$id" >follow.out &
follower=$!
wait_for 20 grep -q first follow.out
echo go >gate
wait "$follower"
is "-f ends with the job" "$?" 0
is "-f showed every line once" "$(cat follow.out)" "first
second"
is "a finished job's output is still there" "$(crun-logs "$id")" "first
second"
id=$(submit -o big.out -e err.out -- sh -c 'i=0; while [ $i -lt 40000 ]; do echo "line $i of many that fill several frames"; i=$((i+1)); done; echo oops >&2')
crun-logs -f "$id" >big.follow
is "a long output arrives byte for byte" "$(cksum <big.follow)" "$(cksum <big.out)"
is "--err is the other file" "$(crun-logs --err "$id")" oops
is "--tail begins near the end" "$(crun-logs --tail=10 "$id" | wc -c)" 10
must_fail 1 '777777' crun-logs 777777
arr=$(submit -a 0-2 -o 'a-%a' -- sh -c 'echo element $CRUN_ARRAY_TASK_ID')
crun-wait "$arr"
is "an element of an array by its index" "$(crun-logs "${arr}_2")" "element 2"
# A reader that comes while the job is being started sees all of it, also when the job is over in no time.
shepherd=$(pgrep -f "crun-shepherd.*$T")
kill -STOP "$shepherd"
id=$(submit -o early.out -- echo early)
wait_for 10 job_is "$id" starting
timeout 30 crun-logs -f "$id" >early.follow &
reader=$!
wait_for 1 false # let it ask: the more it has asked, the harder the case
kill -CONT "$shepherd"
wait "$reader"
is "a reader from before the start ends with the job" "$?" 0
is "and has seen it" "$(cat early.follow)" early
