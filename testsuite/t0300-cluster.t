# Three nodes, each a crund in a network namespace of its own with a synthetic topology.
. "${CRUN_SRCDIR:?}/testsuite/lib.sh"
need_netns
plan 14
cluster_start 3 'node_lost = 6' 'partition "main" { default = true }' 'partition "small" { nodes = "n3" }'
cd "$T" || exit 1
is "three nodes are up" "$(on_head crun-info -N -h | awk '$3 == "idle"' | wc -l)" 3
is "each with its synthetic cores" "$(on_head crun-info --json | jq -c '[.nodes[].cores]')" "[8,8,8]"
like "crun-info folds their names" "$(on_head crun-info -h)" 'main\* +up .* 3 +idle +n\[1-3\]'
id=$(submit -a 0-23 -n 1 --mem=16M -o 'n-%a' -- sh -c 'echo $CRUN_NODENAME; perl -e "select undef, undef, undef, 0.5"')
ok "an array over all of them ends" on_head crun-wait "$id"
is "every node took part" "$(cat n-* | sort -u | tr '\n' ' ')" "n1 n2 n3 "
is "a partition's jobs stay on its nodes" "$(on_head crun-submit --wait -Q -p small -o s.out -- sh -c 'echo $CRUN_NODENAME'; cat s.out)" n3
on_head crun-node drain n1 n2 --reason='new fans'
big=$(submit -n 8 -o /dev/null -- true)
ok "drained nodes get no work" on_head crun-wait "$big"
is "so it ran on the third" "$(job_field "$big" .attempt.node)" n3
like "the reason is shown" "$(on_head crun-info -N -h)" 'n1 .*drained.*new fans'
on_head crun-node resume 'n[1-2]'
must_fail 1 '9 cores|cores.*9' on_head crun-submit -N 1 -n 9 -- true

# a link that is cut and comes back: the job goes on, its end is reported once
mkfifo gate && chmod 666 gate
on_head crun-node drain 'n[1-2]' --reason=test
id=$(submit -o cut.out -- sh -c 'echo x >>runs; read -r x <gate; exit 4')
wait_for 20 job_is "$id" running
node_cut n3
echo go >gate
node_join n3
timeout 60 ip netns exec "$NS" crun-wait "$id"
is "a job that ends while its node is cut off is reported afterwards" "$?" 4
# a node that dies for good: the job runs again elsewhere, once the budget allows
on_head crun-node resume 'n[1-3]'
on_head crun-node drain 'n[1-2]' --reason=test
mkfifo -m 666 never # before the job opens it, which would make a plain file
id=$(submit -o lost.out -- sh -c 'echo $CRUN_NODENAME $CRUN_ATTEMPT >>where; [ $CRUN_ATTEMPT = 2 ] || read -r x <>never')
wait_for 20 test -s where
on_head crun-node resume 'n[1-2]'
node_cut n3
ok "a lost node's job ends on another node" timeout 60 ip netns exec "$NS" crun-wait "$id"
is "as its second attempt" "$(job_field "$id" .attempt.attempt) $(tail -n 1 where | cut -d' ' -f2)" "2 2"
node_join n3
ok "the node comes back, its old attempt is gone, the ledger agrees" wait_for 40 sh -c "ip netns exec $NS crun-info -N -h | grep -q 'n3 .*idle' && ip netns exec $NS crun-ctl selfcheck"
