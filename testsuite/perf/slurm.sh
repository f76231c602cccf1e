#!/bin/bash
# Slurm and crun-wlm beside each other on this machine, in one run, in turn; a line a measure.
# usage: make perf-slurm, or CRUN_STAGE=PREFIX CRUN_BUILDDIR=DIR slurm.sh
# Needs root and Debian's slurmctld, slurmd, slurm-client and munge; skipped where one is missing. Both are
# private: folders, keys and sockets of their own, ports on loopback; what was started ends by its own pid.
# Slurm is tuned for throughput: no accounting, no task plugin, a scheduling pass at each submit.
set -u
: "${CRUN_STAGE:?}" "${CRUN_BUILDDIR:?}"
skip() { echo "skipped: $1"; exit 0; }
[ "$(id -u)" = 0 ] || skip "needs root (slurmd)"
export PATH=$CRUN_STAGE/bin:$CRUN_STAGE/sbin:$PATH:/usr/sbin
for p in slurmctld slurmd sbatch squeue munged; do command -v $p >/dev/null || skip "needs $p"; done
cores=$(nproc)
dir=$(mktemp -d "${TMPDIR:-/var/tmp}/crun-slurm.XXXXXX")
chmod 755 "$dir"
bench=$CRUN_BUILDDIR/testsuite/perf/bench
export CRUN_CONF="$dir/crun/crun.conf" SLURM_CONF="$dir/slurm.conf"
unset CRUN_HOME
munge_pid= ctl_pid= node_pid=
cleanup() {
    crun-stop --dir="$dir/crun" --cancel >/dev/null 2>&1
    for p in $ctl_pid $node_pid $munge_pid; do kill "$p" 2>/dev/null; done
    wait 2>/dev/null
    rm -rf "$dir"
}
trap cleanup EXIT
trap 'exit 1' INT TERM
now() { date +%s%N; }
ms() { echo $((($(now) - $1) / 1000000)); }
per_s() { awk -v n="$1" -v ns="$2" 'BEGIN { printf "%.1f", n * 1e9 / ns }'; }
ratio() { awk -v a="$1" -v b="$2" 'BEGIN { printf "%.2f", (b > 0) ? a / b : 0 }'; }
until_ok() { # SECONDS CMD ...
    t_end=$(($(date +%s) + $1))
    shift
    until "$@" >/dev/null 2>&1; do
        [ "$(date +%s)" -lt "$t_end" ] || { echo "gave up on: $*" >&2; exit 1; }
        perl -e 'select undef, undef, undef, 0.02'
    done
}
rss_kib() { awk '/VmRSS/ { print $2 }' "/proc/$1/status"; }

# ---- both up -----------------------------------------------------------------------------------
mkdir "$dir/munge" "$dir/crun" "$dir/state" "$dir/spool" "$dir/out"
dd if=/dev/urandom of="$dir/munge/key" bs=64 count=1 2>/dev/null
chmod 600 "$dir/munge/key"
munged --force --foreground --key-file="$dir/munge/key" --socket="$dir/munge/socket" --pid-file="$dir/munge/pid" \
    --log-file="$dir/munge/log" --seed-file="$dir/munge/seed" >/dev/null 2>&1 &
munge_pid=$!
until_ok 20 test -S "$dir/munge/socket"
host=$(hostname -s)
port=$((21000 + $$ % 20000))
mem=$(awk '/MemAvailable/ { print int($2 / 1024 / 2) }' /proc/meminfo)
cat >"$SLURM_CONF" <<EOF
ClusterName=perf
SlurmctldHost=$host(127.0.0.1)
SlurmctldPort=$port
SlurmdPort=$((port + 1))
SlurmUser=root
AuthType=auth/munge
AuthInfo=socket=$dir/munge/socket
CredType=cred/munge
StateSaveLocation=$dir/state
SlurmdSpoolDir=$dir/spool
SlurmctldPidFile=$dir/slurmctld.pid
SlurmdPidFile=$dir/slurmd.pid
SlurmctldLogFile=$dir/slurmctld.log
SlurmdLogFile=$dir/slurmd.log
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
JobAcctGatherType=jobacct_gather/none
AccountingStorageType=accounting_storage/none
SelectType=select/cons_tres
SelectTypeParameters=CR_Core
SchedulerType=sched/backfill
SchedulerParameters=batch_sched_delay=0,sched_interval=1,sched_min_interval=0,bf_interval=1,default_queue_depth=1000,max_array_tasks=1000000
MaxJobCount=200000
MaxArraySize=200001
ReturnToService=2
MpiDefault=none
NodeName=$host NodeAddr=127.0.0.1 CPUs=$cores RealMemory=$mem State=UNKNOWN
PartitionName=main Nodes=$host Default=YES MaxTime=INFINITE State=UP
EOF
slurm_ctl() { slurmctld -D >>"$dir/slurmctld.out" 2>&1 & ctl_pid=$!; }
slurm_ctl
slurmd -D -N "$host" >"$dir/slurmd.out" 2>&1 &
node_pid=$!
until_ok 60 sh -c "sinfo -h -o %t | grep -q idle"
printf 'cluster = "perf"\nallow_root_jobs = true\nplugin_path = "%s"\n' "$CRUN_STAGE/lib/crun-wlm/plugins" >"$CRUN_CONF"
crun-start --dir="$dir/crun" --node=n1 >/dev/null || exit 1
cd "$dir/out" || exit 1
printf '#!/bin/sh\ntrue\n' >true.sh
chmod 755 true.sh
echo "machine: $cores cores, $(uname -r); $(slurmctld -V) beside crun-wlm"

# ---- submits -----------------------------------------------------------------------------------
n=100
a=$(now); for _ in $(seq $n); do sbatch -H -o /dev/null true.sh >/dev/null; done; s=$(($(now) - a))
a=$(now); for _ in $(seq $n); do crun-submit -H -Q -o /dev/null true.sh; done; c=$(($(now) - a))
echo "serial submits/s: slurm $(per_s $n $s), crun-wlm $(per_s $n $c), ratio $(ratio "$s" "$c") (bar 3)"
scancel --state=PENDING --user=root; crun-cancel --me >/dev/null 2>&1
a=$(now); sbatch -H -a 0-9999 -o /dev/null true.sh >/dev/null; s=$(($(now) - a))
a=$(now); crun-submit -H -Q -a 0-9999 -o /dev/null true.sh; c=$(($(now) - a))
echo "array of 10,000 accepted in ms: slurm $((s / 1000000)), crun-wlm $((c / 1000000)), ratio $(ratio "$s" "$c")"
scancel --state=PENDING --user=root; crun-cancel --me >/dev/null 2>&1
until_ok 60 sh -c '[ -z "$(squeue -h)" ]'

# ---- throughput --------------------------------------------------------------------------------
ns=${CRUN_PERF_SLURM_JOBS:-300}
nc=$((ns * 10))
a=$(now)
sbatch -a "0-$((ns - 1))" -o "s.%a" true.sh >/dev/null
until_ok 600 sh -c '[ -z "$(squeue -h)" ]'
s=$(($(now) - a))
a=$(now)
id=$(crun-submit --parsable -a "0-$((nc - 1))" -o "c.%a" true.sh)
crun-wait "$id"
c=$(($(now) - a))
echo "no-op jobs finished/s, output files: slurm $(per_s "$ns" $s) (of $ns), crun-wlm $(per_s "$nc" $c) (of $nc), ratio $(ratio "$(per_s "$nc" $c)" "$(per_s "$ns" $s)") (bar 10)"

# ---- submit to start ---------------------------------------------------------------------------
quantiles() { sort -n | awk '{ v[NR] = $1 } END { printf "p50 %d p99 %d", v[int((NR + 1) / 2)], v[int(NR * 0.99 + 0.99)] }'; }
starts() { # CMD ...: submits start.sh 40 times, one after another; ms each
    for i in $(seq 40); do
        rm -f t.$i
        a=$(now)
        "$@" "$PWD/start.sh" "$PWD/t.$i" >/dev/null
        until_ok 60 test -s t.$i
        echo $((($(cat t.$i) - a) / 1000000))
    done
}
printf '#!/bin/sh\ndate +%%s%%N >$1.new; mv $1.new $1\n' >start.sh
chmod 755 start.sh
s=$(starts sbatch -o /dev/null | quantiles)
c=$(starts crun-submit -Q -o /dev/null | quantiles)
echo "submit to first instruction, ms: slurm $s, crun-wlm $c"

# ---- a long queue ------------------------------------------------------------------------------
before_s=$(rss_kib $ctl_pid)
before_c=$(rss_kib "$(cat "$dir/crun/run/crunctld.pid")")
q=10000
seq $q | xargs -P 4 -I{} sbatch -H -o /dev/null true.sh >/dev/null 2>&1
"$bench" submit $q 500 >/dev/null
after_s=$(rss_kib $ctl_pid)
after_c=$(rss_kib "$(cat "$dir/crun/run/crunctld.pid")")
echo "memory a pending job, bytes: slurm $(((after_s - before_s) * 1024 / q)), crun-wlm $(((after_c - before_c) * 1024 / q))"
best() { # CMD ...: the least of five, ms
    for _ in 1 2 3 4 5; do a=$(now); "$@" >/dev/null; echo $((($(now) - a) / 1000)); done | sort -n | head -n 1
}
s=$(best squeue -h)
c=$(best crun-queue -h)
echo "queue of 10,000 pending, us: slurm $s, crun-wlm $c, ratio ours/theirs $(ratio "$c" "$s") (bar 0.2)"

# ---- restart, and what a kill loses --------------------------------------------------------------
a=$(now); kill $ctl_pid; wait $ctl_pid 2>/dev/null; slurm_ctl; until_ok 60 sh -c "squeue -h | grep -q ."; s=$(ms "$a")
a=$(now); crun-stop --dir="$dir/crun" >/dev/null; crun-start --dir="$dir/crun" --node=n1 >/dev/null; until_ok 60 crun-ctl ping; c=$(ms "$a")
echo "stop, start, first answer with these jobs, ms: slurm $s, crun-wlm $c (daemons of the node too)"
rounds=${CRUN_PERF_SLURM_KILLS:-10}
lost_s=0 lost_c=0
for _ in $(seq "$rounds"); do
    id=$(sbatch -H --parsable -o /dev/null true.sh)
    kill -9 $ctl_pid
    wait $ctl_pid 2>/dev/null
    slurm_ctl
    until_ok 60 sh -c "squeue -h | grep -q ."
    squeue -h -j "$id" >/dev/null 2>&1 || lost_s=$((lost_s + 1))
    id=$(crun-submit -H --parsable -o /dev/null true.sh)
    kill -9 "$(cat "$dir/crun/run/crunctld.pid")"
    crun-start --dir="$dir/crun" --controller-only >/dev/null
    until_ok 60 crun-ctl ping
    [ -n "$(crun-queue -h -j "$id" 2>/dev/null)" ] || lost_c=$((lost_c + 1))
done
echo "acknowledged jobs lost by kill -9 right after: slurm $lost_s of $rounds, crun-wlm $lost_c of $rounds (bar 0)"
