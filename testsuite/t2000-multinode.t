# Jobs on several nodes, all or none: three nodes, each a crund in a network namespace of its own.
. "${CRUN_SRCDIR:?}/testsuite/lib.sh"
need_netns
# The client's own refusal, while it takes no other number: nothing is started for it.
plan 38
cluster_start 3 'node_lost = 6' 'kill_grace = 2'
cd "$T" || exit 1
chmod 777 .

gang() { # NODES ARG ...
    t_nodes=$1
    shift
    submit -N "$t_nodes" -n "$t_nodes" --mem=16M "$@"
}
wait_job() { timeout 60 ip netns exec "$NS" crun-wait "$1"; }
all_free() { # the ledger agrees with the rows, and nothing is held
    on_head crun-ctl selfcheck >/dev/null && [ "$(on_head crun-info --json | jq '[.nodes[].cores_used] | add')" = 0 ]
}
free_soon() { wait_for 20 all_free; }
up() { [ "$(on_head crun-info -N -h | awk '$3 == "idle" || $3 == "mixed"' | wc -l)" = "$1" ]; }
cores_used() { on_head crun-info --json | jq -c '[.nodes[].cores_used]'; }
restart_controller() {
    daemon_kill9 crunctld
    instance_restart crunctld >/dev/null 2>&1
}

# ---- start, environment, end -------------------------------------------------------------------
id=$(gang 3 -o env.out -- sh -c 'env | grep ^CRUN_ | sort; cat "$CRUN_HOSTFILE"; exit 3')
wait_job "$id"
is "a job on three nodes ends with its leader's exit code" "$?" 3
is "it knows its nodes" "$(grep -E '^CRUN_(NODELIST|NNODES|NODEID|NTASKS|TASKS_PER_NODE)=' env.out | tr '\n' ' ')" \
    'CRUN_NNODES=3 CRUN_NODEID=0 CRUN_NODELIST=n[1-3] CRUN_NTASKS=3 CRUN_TASKS_PER_NODE=1(x3) '
is "and has a host file" "$(grep slots env.out | tr '\n' ' ')" "n1 slots=1 n2 slots=1 n3 slots=1 "
is "the leader runs once" "$(grep -c ^CRUN_JOB_ID env.out)" 1
ok "all cores are free" free_soon
is "no host file is left" "$(ls "$H"/node/*/tasks/*.hosts 2>/dev/null)" ""

mkfifo -m 666 gate
id=$(gang 2 -o /dev/null -- sh -c 'read -r x <gate; exit $x')
wait_for 20 job_is "$id" running
is "while it runs it has a core on each of two nodes" "$(cores_used | jq -c 'sort')" "[0,1,1]"
echo 0 >gate
wait_job "$id"
is "and completes" "$? $(job_field "$id" .state)" "0 completed"
ok "all cores are free" free_soon

# ---- the launch ----------------------------------------------------------------------------------
node_cut n2
id=$(gang 3 -o order.out -- sh -c 'echo ran $CRUN_ATTEMPT')
wait_for 20 job_is "$id" starting
ok "all three nodes are charged while one is not reached" wait_for 5 sh -c "[ '$(cores_used)' = '[1,1,1]' ]"
restart_controller
is "the leader waits for the last node, over a restart of the controller too" "$(job_field "$id" .state) $(cat order.out 2>/dev/null)" "starting "
node_join n2
ok "and starts when that is there" wait_job "$id"
is "once" "$(cat order.out)" "ran 1"
ok "all cores are free" free_soon

next=$((id + 1))
mkdir "$H/node/n3/tasks/$next.1.hosts" # in the way of its host file
id=$(gang 3 -o refused.out -- sh -c 'echo ran $CRUN_ATTEMPT')
is "the id was foreseen" "$id" "$next"
ok "a job that one node could not launch runs at the next try" wait_job "$id"
is "nothing of the first try ran" "$(grep ran refused.out)" "ran 2"
like "and its end names the node" "$(on_head crun-events -j "$id" 2>/dev/null)" 'n3'
rmdir "$H/node/n3/tasks/$next.1.hosts"
ok "all cores are free" free_soon

# ---- restarts of the controller --------------------------------------------------------------------
id=$(gang 3 -o /dev/null -- sh -c 'read -r x <gate; exit $x')
wait_for 20 job_is "$id" running
restart_controller
ok "a run goes on over a restart of the controller" wait_for 20 job_is "$id" running
wait_for 20 up 3
node_cut n3
echo 7 >gate
ok "the leader's end waits for every node" wait_for 20 job_is "$id" completing
restart_controller
is "over a restart of the controller too" "$(job_field "$id" .state)" completing
node_join n3
wait_job "$id"
is "then the job ends as its leader did" "$?" 7
ok "all cores are free" free_soon

# ---- kills -----------------------------------------------------------------------------------------
id=$(gang 2 -o /dev/null -- sleep 1000)
wait_for 20 job_is "$id" running
on_head crun-cancel "$id"
wait_job "$id"
is "a cancel reaches all nodes" "$? $(job_field "$id" .state)" "241 cancelled"
ok "all cores are free" free_soon
id=$(gang 3 -t 0:02 -o /dev/null -- sleep 1000)
wait_job "$id"
is "so does the time limit" "$? $(job_field "$id" .state)" "124 timeout"
ok "all cores are free" free_soon

# ---- nodes that are lost ------------------------------------------------------------------------------
wait_for 20 up 3
id=$(gang 2 -o where.out -- sh -c 'echo $CRUN_NODELIST; [ $CRUN_ATTEMPT = 2 ] || read -r x <gate')
wait_for 20 job_is "$id" running
first=$(job_field "$id" '.attempt.node')
other=$(head -n 1 where.out | sed 's/n\[\(.\)[-,]\(.\)\]/n\2/')
node_cut "$other"
ok "a job that loses a node runs again on others" wait_job "$id"
is "as its second attempt" "$(job_field "$id" .attempt.attempt)" 2
is "without the node that is gone" "$(tail -n 1 where.out | grep -c "${other#n}")" 0
node_join "$other"
ok "the node comes back, its part of the old attempt is gone" free_soon

id=$(gang 3 --no-requeue -o /dev/null -- sleep 1000)
wait_for 20 job_is "$id" running
node_cut n2
wait_job "$id"
is "with --no-requeue it fails" "$? $(job_field "$id" .state)" "245 node_fail"
is "the living nodes are free, the lost one is not" "$(cores_used)" "[0,1,0]"
node_join n2
ok "until it comes back" free_soon

id=$(gang 3 --no-requeue -o /dev/null -- sleep 1000)
wait_for 20 job_is "$id" running
for p in /proc/[0-9]*; do # a shepherd dies with all that it carried
    case $({ tr '\0' ' ' <"$p/cmdline"; } 2>/dev/null) in
    *crun-shepherd*"$T"*"-N n2 "*) kill -9 "${p#/proc/}" ;;
    esac
done
wait_job "$id"
is "a shepherd that dies ends the job" "$? $(job_field "$id" .state)" "245 node_fail"
ok "all cores are free" free_soon
is "accounting names every node" "$(on_head crun-acct -j "$id" -n --format=nodelist | tr -d ' ')" 'n[1-3]'
