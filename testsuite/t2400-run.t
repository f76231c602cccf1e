# crun-run, crun-exec, crun-alloc, crun-attach on one node: exit codes, output, input, signals, terminals,
# steps of a job, what they keep from each other, and commands that die.
. "${CRUN_SRCDIR:?}/testsuite/lib.sh"
plan 57
SYNTHETIC="core:8 pu:1"
instance_start 'partition "main" {' '  nodes = "ALL"' '  default_time = 10m' '}'
cd "$T" || exit 1
drive() { python3 "$CRUN_SRCDIR/testsuite/ptydrive.py" "$@"; }
code() { # CMD ...: its exit code
    "$@" >"$T/out" 2>"$T/err"
    echo $?
}
state_is() { [ "$(job_field "$1" .state)" = "$2" ]; }
ended() { case $(job_field "$1" .state) in pending | starting | running | completing) return 1 ;; esac; }
last_job() { crun-queue -t all -h | awk '{ print $1 }' | sort -n | tail -n 1; }

# ---- exit codes
is "its output and nothing else" "$(crun-run echo hello 2>&1)" "hello"
is "the exit code of the command" "$(code crun-run sh -c 'exit 7')" 7
is "128 and the signal that ended it" "$(code crun-run sh -c 'kill -9 $$')" 137
like "which is told" "$(cat err)" 'task 0: killed by signal 9'
is "127 for a command that is not there" "$(code crun-run /no/such/command)" 127
is "the highest of several tasks" "$(code crun-run -n3 sh -c 'exit $CRUN_PROCID')" 2
is "one error line for what can never run" "$(code crun-run -n9 true)" 1
is "usage errors" "$(code crun-run --no-such-option true)" 2
is "nothing to run" "$(code crun-run -n2)" 2
wait_for 10 ended 2
is "the allocation ends with the exit code of its command" "$(job_field 2 .exit_status)" 7
is "and one with 0 is completed" "$(job_field 1 .state)" completed
is "no allocation is left" "$(crun-queue -h | wc -l)" 0

# ---- tasks, output, input
crun-run -n3 -l sh -c 'echo "rank $CRUN_PROCID of $CRUN_NTASKS"' | sort >out
is "each task knows its rank; lines carry it" "$(tr '\n' ';' <out)" "0: rank 0 of 3;1: rank 1 of 3;2: rank 2 of 3;"
is "standard error is apart" "$(crun-run sh -c 'echo out; echo err >&2' 2>/dev/null)" out
head -c 10000000 /dev/zero | tr '\0' 'x' >big
is "10 MB through a slow reader, every byte" "$(crun-run cat "$T/big" | (perl -e 'select undef, undef, undef, 1'; md5sum))" "$(md5sum <big)"
is "10 MB of input come back" "$(crun-run cat <big | md5sum)" "$(md5sum <big)"
is "input goes to all tasks" "$(echo word | crun-run -n2 cat | tr '\n' ' ')" "word word "
is "or to one" "$(echo word | crun-run -n2 --input=1 -l cat)" "1: word"
is "or to none" "$(echo word | crun-run --input=none cat)" ""
seq 1 2000 >want
crun-run -n4 sh -c 'seq 1 2000 | sed "s/^/$CRUN_PROCID /"' >out
is "lines of a task are whole and in order" "$(grep '^2 ' out | cut -d' ' -f2 | cmp - want && wc -l <out)" 8000
crun-run -n2 -o "$T/o.%t" sh -c 'echo $CRUN_PROCID'
is "files by task" "$(cat o.0 o.1 | tr '\n' ' ')" "0 1 "
is "a closed reader ends it" "$(crun-run sh -c 'while :; do echo y; done' | head -n 1)" y
start=$(date +%s%N)
crun-run sh -c 'echo now; sleep 3' | while read -r line; do
    [ "$line" = now ] && echo $((($(date +%s%N) - start) / 1000000)) >lag
done
ok "output comes at once" test "$(cat lag)" -lt 1500

# ---- signals
is "one bad end ends all with -K" "$(code timeout 20 crun-run -K -n2 sh -c '[ $CRUN_PROCID = 0 ] && exit 3; sleep 60')" 143
is "the others get so long with -W" "$(code timeout 20 crun-run -W1 -n2 sh -c '[ $CRUN_PROCID = 0 ] && exit 3; sleep 60')" 143
crun-run sh -c 'trap "echo got; exit 5" TERM; echo ready; while :; do sleep 0.1; done' >out 2>err &
pid=$!
wait_for 10 grep -q ready out
kill -TERM $pid
wait $pid
is "TERM is passed on" "$? $(tr '\n' ' ' <out)" "5 ready got "
crun-run sleep 60 2>err &
pid=$!
wait_for 10 sh -c 'crun-queue -h -t R | grep -q sleep'
sleep 0.3
kill -INT $pid
ok "the first interrupt tells how the tasks stand" wait_for 5 grep -q 'task 0 running' err
kill -INT $pid
wait $pid
is "the second interrupts them" "$?" 130
export CRUN_ALLOC_LEASE=3
crun-run sleep 600 &
pid=$!
wait_for 10 sh -c 'crun-queue -h -t R | grep -q sleep'
id=$(last_job)
kill -9 $pid
ok "the allocation of a killed command ends by its lease" wait_for 20 state_is "$id" cancelled
unset CRUN_ALLOC_LEASE
is "a time limit is 124" "$(code crun-run -t 0:02 sleep 60)" 124

# ---- a terminal
like "a terminal of its own" "$(drive 'expect:tty' -- crun-run --pty sh -c 'test -t 0 && test -t 1 && echo tty')" tty
like "its size, and when it changes" "$(drive size:31x97 wait:0.5 'expect:31 97' size:40x100 'expect:40 100' 'send:q\n' -- crun-run --pty sh -c 'trap "stty size" WINCH; sleep 1; stty size; while ! read -r x; do :; done')" '40 100'
is "keys reach the task, its exit code ours" "$(drive 'expect:ready' 'send:\x03' -- crun-run --pty sh -c 'trap "exit 9" INT; echo ready; while :; do sleep 0.1; done' >/dev/null; echo $?)" 9
like "the terminal is as before" "$(drive 'expect:after' -- sh -c 'crun-run --pty true; stty -a | grep -o "[-]*icanon"; echo after')" '^icanon'

# ---- inside a job
id=$(submit -n4 -o "$T/batch.out" --wrap 'crun-run -l sh -c "echo in \$CRUN_STEP_ID"; crun-run -n2 true; echo rc $?; crun-run -n5 true; echo rc $?')
wait_for 20 ended "$id"
is "a step has the tasks of its job" "$(grep -c '^[0-3]: in 0' batch.out)" 4
like "what does not fit is refused at once" "$(cat batch.out)" 'holds 4 cores on 1 node: 5 tasks of 1 core do not fit'
is "and told by its exit code" "$(grep ^rc batch.out | tr '\n' ' ')" "rc 0 rc 1 "
is "steps are in the accounting" "$(crun-acct --steps -n -o jobid,state "$id" 2>/dev/null | grep -c "$id\.[01]")" 2
id=$(submit -n4 -o "$T/exact.out" --wrap 'crun-run --exact -n3 sh -c "sleep 2; echo first" & sleep 1; crun-run --exact -n2 echo second; wait')
wait_for 30 ended "$id"
like "an exact step waits and names who has the cores" "$(cat exact.out)" "waiting: step $id.0 \(sh\) has cores n1:0-2"
is "and comes when they are free" "$(grep -c second exact.out) $(grep -c first exact.out)" "2 3"

# ---- exec, attach, alloc
id=$(submit -n2 -o "$T/base.out" --wrap 'echo base; sleep 60')
wait_for 20 state_is "$id" running
is "a command inside a job" "$(crun-exec "$id" sh -c 'echo $CRUN_JOB_ID')" "$id"
is "its exit code" "$(code crun-exec "$id" sh -c 'exit 4')" 4
is "its time" "$(code crun-exec -T 1s "$id" sleep 60)" 124
is "its variables" "$(crun-exec --env=COLOUR=red "$id" sh -c 'echo $COLOUR')" red
step=$(crun-exec --detach "$id" sh -c 'for i in 1 2 3 4 5 6 7 8; do echo $i; sleep 0.3; done; exit 6')
like "a detached one says its number" "$step" "^$id\.[0-9]+\$"
crun-attach "$step" </dev/null >out 2>err
is "joined later it gives what comes, and its exit code" "$? $(tail -n 1 out)" "6 8"
step=$(crun-exec --detach "$id" sleep 100)
is "a step is cancelled, its job goes on" "$(code crun-cancel "$step") $(job_field "$id" .state)" "0 running"
crun-attach "$step" </dev/null >out 2>err
ok "it has ended" wait_for 10 sh -c "crun-acct --steps -n -o jobid,state $id | grep -F '$step' | grep -q CANCELLED"
is "again: nothing to do" "$(code crun-cancel "$step")" 0
is "one that never was" "$(code crun-cancel "$id.77")" 1
is "a job that does not run" "$(code crun-exec 1 true)" 1
like "is said so" "$(cat err)" 'job 1 does not run: it has ended'
crun-cancel "$id"
wait_for 20 ended "$id"
CRUN_JOB_ID= crun-alloc -n2 sh -c 'echo in $CRUN_JOB_ID $CRUN_NTASKS; crun-run -l echo step; exit 3' >out 2>err
is "an allocation for a command here" "$? $(grep -c '^[01]: step' out) $(sed -n 's/^in [0-9]* //p' out)" "3 2 2"
like "which is told" "$(cat err)" '^crun-alloc: Granted job allocation [0-9]+'
wait_for 10 ended "$(last_job)"
is "and has the exit code of the command" "$(job_field "$(last_job)" .exit_status)" 3
must_fail 1 'tasks 0 to 1' crun-run -i 7 -n 2 cat
printf '#!/bin/sh\n#SBATCH -n 2\ncrun-run sh -c '"'"'echo rank $SLURM_PROCID of $SLURM_NTASKS'"'"' | sort\n' >slurm.sh
id=$(submit -o slurm.out slurm.sh)
crun-wait "$id"
is "tasks of a job with #SBATCH lines have their SLURM_ variables" "$(cat slurm.out)" "rank 0 of 2
rank 1 of 2"
