# Steps on the node: a command in a running job outlives the node daemon, ends with its job, and leaves no process behind.
. "${CRUN_SRCDIR:?}/testsuite/lib.sh"
plan 15
instance_start 'plugin "gpu/fake" { options { count = 2 } }'
cd "$T" || exit 1

job() { # ARG ...: the id of a job that runs
    t_id=$(submit -o /dev/null "$@")
    wait_for 20 job_is "$t_id" running
    echo "$t_id"
}
said() { grep -q "$1" out; }

# ---- X1: the node daemon is killed while a step runs ---------------------------------------------
id=$(job -n 2 -- sleep 1937)
mkfifo gate
timeout 60 crun-exec "$id" sh -c 'echo before $$; read x <gate; echo after $$; seq 200000 | tail -n 1; exit 3' >out 2>err </dev/null &
client=$!
ok "a step says its first word" wait_for 20 said before
pid=$(awk '{ print $2 }' out)
daemon_kill9 crund n1
ok "without a node daemon it goes on" kill -0 "$pid"
instance_restart crund n1 >/dev/null
echo go >gate
wait "$client"
is "its command goes on reading and has its exit code" "$?" 3
is "each byte once, the process the same" "$(tr '\n' ' ' <out)" "before $pid after $pid 200000 "
is "the job has lost nothing" "$(job_field "$id" .state)" running
is "the controller has its end" "$(wait_for 20 sh -c "crun-acct -j $id --json | grep -q '\"exit_code\": *3'" && echo yes)" yes

# ---- E21: argv -------------------------------------------------------------------------------------
out=$(crun-exec "$id" sh -c 'for a; do printf "%s|" "$a"; done' x 'a b' '' -n '*' '$HOME' "q\"'" </dev/null)
is "argv arrives byte for byte" "$out" "a b||-n|*|\$HOME|q\"'|"

# ---- E17: what the user sets does not open a GPU --------------------------------------------------
is "a step of a job without a GPU is denied all" \
    "$(crun-exec --env=CUDA_VISIBLE_DEVICES=0,1 "$id" sh -c 'echo $CUDA_VISIBLE_DEVICES $CRUN_GPUS' </dev/null)" "-1 0"

# ---- X7: a rank that ends, another that sleeps on --------------------------------------------------
out=$(CRUN_JOB_ID=$id timeout 60 crun-run --kill-on-bad-exit sh -c 'test $CRUN_PROCID = 0 && exit 9; exec sleep 1938' </dev/null 2>&1)
ok "a bad exit ends the others where that is asked for" [ "$?" != 0 ]
is "and leaves none" "$(pgrep -f '^sleep 1938$' | wc -l)" 0

# ---- usage ------------------------------------------------------------------------------------------
timeout 60 crun-exec "$id" sleep 1937 </dev/null >/dev/null 2>&1 &
client=$!
ok "a step counts among the job's processes" wait_for 20 sh -c "[ \"\$(crun-stat --json $id | jq '.jobs[0].processes')\" = 2 ]"

# ---- the end of the job ---------------------------------------------------------------------------
crun-cancel "$id"
wait "$client"
rc=$?
ok "the cancelled job's step is not a success" [ "$rc" != 0 ]
ok "and is gone with it" wait_for 20 job_is "$id" cancelled
is "its processes too" "$(pgrep -f '^sleep 1937$' | wc -l)" 0
must_fail 1 '.' crun-exec "$id" true
