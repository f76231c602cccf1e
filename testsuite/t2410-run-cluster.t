# crun-run over three nodes, each a crund in a network namespace: ranks, labels, and what happens when a
# node, a node daemon or the controller dies in the middle.
. "${CRUN_SRCDIR:?}/testsuite/lib.sh"
need_netns
plan 14
cluster_start 3 'node_lost = 4' 'kill_grace = 2'
cd "$T" || exit 1
chmod 777 .
run() { on_head timeout 90 crun-run --mem=16M "$@"; }
free_soon() { wait_for 30 sh -c "[ \"\$(ip netns exec $NS crun-info --json | jq '[.nodes[].cores_used] | add')\" = 0 ]"; }

run -N3 -n6 -l sh -c 'echo "$CRUN_PROCID/$CRUN_NTASKS $CRUN_NODEID $CRUN_LOCALID $CRUN_NODENAME $CRUN_STEP_ID"' >out 2>err
is "six tasks on three nodes" "$?" 0
is "with ranks by node, node numbers and local ranks" "$(sort out | tr '\n' ';')" \
    "0: 0/6 0 0 n1 0;1: 1/6 0 1 n1 0;2: 2/6 1 0 n2 0;3: 3/6 1 1 n2 0;4: 4/6 2 0 n3 0;5: 5/6 2 1 n3 0;"
is "nothing else is said" "$(cat err)" ""
is "the worst exit code of all nodes" "$(run -N3 -n3 sh -c 'exit $((CRUN_PROCID + 3))' 2>/dev/null; echo $?)" 5
is "input goes to all nodes" "$(seq 1 20000 | run -N3 -n3 -l md5sum | sed 's/^[0-9]: //' | sort -u)" "$(seq 1 20000 | md5sum)"
is "-K ends the tasks of other nodes" "$(timeout 30 ip netns exec "$NS" crun-run --mem=16M -K -N3 -n3 sh -c '[ $CRUN_PROCID = 1 ] && exit 3; sleep 60' >/dev/null 2>&1; echo $?)" 143

# ---- daemons die in the middle
count='i=0; while [ $i -lt 400 ]; do echo "$CRUN_PROCID $i"; i=$((i + 1)); sleep 0.01; done'
whole() { # OUT TASKS: each task's 400 lines once and in order
    for r in $(seq 0 $(($2 - 1))); do
        grep "^$r " "$1" | cut -d' ' -f2 | cmp -s - want || { echo "task $r: $(grep -c "^$r " "$1") lines"; return 1; }
    done
}
seq 0 399 >want
run -N3 -n3 sh -c "$count" >out 2>err &
pid=$!
wait_for 20 grep -q '^1 50$' out
daemon_kill9 crund n2
t_node_start n2 >/dev/null 2>&1
wait $pid
is "a node daemon is killed and started again" "$?" 0
ok "nothing is lost or doubled" whole out 3
run -N3 -n3 sh -c "$count" >out 2>err &
pid=$!
wait_for 20 grep -q '^1 50$' out
daemon_kill9 crunctld
instance_restart crunctld >/dev/null 2>&1
wait $pid
is "the controller is killed and started again" "$?" 0
ok "nothing is lost or doubled then" whole out 3
ok "all cores are free" free_soon

# ---- a node goes
on_head crun-run --mem=16M -N3 -n3 sh -c 'echo ready; sleep 100' >out 2>err &
pid=$!
wait_for 20 sh -c "[ \"\$(grep -c ready $T/out)\" = 3 ]"
node_cut n3
wait_for 40 sh -c "! kill -0 $pid 2>/dev/null" || kill -9 $pid
wait $pid
is "a lost node ends it with 245" "$?" 245
node_join n3
ok "and nothing is left" free_soon
is "no allocation either" "$(on_head crun-queue -h | wc -l)" 0
