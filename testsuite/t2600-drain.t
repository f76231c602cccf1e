# Drains with a deadline: what still runs then is cancelled or requeued, also when the controller
# was down at that time.
. "${CRUN_SRCDIR:?}/testsuite/lib.sh"
plan 15
SYNTHETIC="core:4 pu:1" instance_start 'kill_grace = 2'
cd "$T" || exit 1
mkfifo never
must_fail 2 'then.*deadline' crun-node drain n1 --reason=x --then=cancel
must_fail 2 'cancel, requeue' crun-node drain n1 --reason=x --deadline=1h --then=burn
must_fail 2 'is no time' crun-node drain n1 --reason=x --deadline=never
must_fail 1 'past' crun-node drain n1 --reason=x --deadline=2020-01-01

crun-node drain n1 --reason='new disk' --deadline=now+1hour
like "crun-node show says until when, and what then" "$(crun-node show n1)" 'deadline: +2[0-9-]+T.*, then cancel'
crun-node resume n1
is "resume takes the deadline away" "$(crun-node show --json n1 | jq -c '.nodes[0].drain_deadline')" null

a=$(submit -o a.out -- sh -c 'echo x; read -r y <>never')
wait_for 20 job_is "$a" running
crun-node drain n1 --reason='new disk' --deadline=2s
ok "what runs goes on before the deadline" job_is "$a" running
timeout 30 crun-wait "$a"
is "and is cancelled at it" "$(job_field "$a" .state)" cancelled
like "the event says the drain" "$(crun-events -j "$a")" 'drain-deadline.*n1 is drained \(new disk\): cancelled'
like "the node stays drained" "$(crun-info -N -h)" 'drained.*new disk'
crun-node resume n1

# requeue, and a deadline that passes while nobody watches
b=$(submit -o b.out -- sh -c 'echo "attempt $CRUN_ATTEMPT" >>tries; [ "$CRUN_ATTEMPT" = 2 ] || read -r y <>never')
wait_for 20 test -s tries
crun-node drain n1 --reason='new fan' --deadline=3s --then=requeue
daemon_kill9 crunctld
wait_for 20 sh -c "[ \$(date +%s) -ge $(($(date +%s) + 4)) ]"
is "while the controller is down nothing ends" "$(wc -l <tries)" 1
instance_restart crunctld
ok "afterwards it acts on the deadline: the job waits again" wait_for 30 job_is "$b" pending
is "once: the deadline is gone" "$(crun-node show --json n1 | jq -c '.nodes[0] | [.drain_deadline, .drain_reason]')" '[null,"new fan"]'
crun-node resume n1
ok "and runs to its end after the resume" timeout 30 crun-wait "$b"
is "as its second attempt" "$(tail -n 1 tries)" "attempt 2"
