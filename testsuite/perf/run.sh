#!/bin/sh
# Measures what doc/performance.md tables, each beside the machine's own limit in the same run.
# usage: make perf, or CRUN_STAGE=PREFIX CRUN_BUILDDIR=DIR run.sh [ROUNDS]
# Starts a private instance in a folder of its own and removes it. Numbers of a busy machine are
# worth only their ratios.
set -eu
: "${CRUN_STAGE:?}" "${CRUN_BUILDDIR:?}"
rounds=${1:-3}
PATH=$CRUN_STAGE/bin:$CRUN_STAGE/sbin:$PATH
bench=$CRUN_BUILDDIR/testsuite/perf/bench
cores=$(nproc)
dir=$(mktemp -d "${TMPDIR:-/var/tmp}/crun-perf.XXXXXX")
export CRUN_CONF="$dir/crun.conf"
unset CRUN_HOME
cleanup() {
    crun-stop --dir="$dir" --cancel >/dev/null 2>&1 || true
    rm -rf "$dir"
}
trap cleanup EXIT
trap 'exit 1' INT TERM
printf 'cluster = "perf"\nallow_root_jobs = true\n' >"$CRUN_CONF"
crun-start --dir="$dir" --node=n1 >/dev/null
cd "$dir"

now() { date +%s%N; }
rate() { awk -v n="$1" -v a="$2" -v b="$3" 'BEGIN { printf "%.1f", n / ((b - a) / 1e9) }'; }
ratio() { awk -v a="$1" -v b="$2" 'BEGIN { printf "%.2f", a / b }'; }
rss_kib() { awk '/VmRSS/ { print $2 }' "/proc/$(cat "$dir/run/crunctld.pid")/status"; }
cpu_ms() { # CPU time of the daemons so far: controller, node daemon, shepherds, without their children
    t=0
    for p in /proc/[0-9]*; do
        case $({ tr "\0" " " <"$p/cmdline"; } 2>/dev/null) in
        *crunctld*"$dir"* | *crund*"$dir"* | *crun-shepherd*"$dir"*)
            t=$((t + $(sed 's/.*) //' "$p/stat" | awk '{ print $12 + $13 }'))) ;;
        esac
    done
    echo $((t * 1000 / $(getconf CLK_TCK)))
}

echo "machine: $cores cores, $(uname -r); $rounds rounds, a line each; ratio = ours / limit"
r=1
while [ "$r" -le "$rounds" ]; do
    sync_rate=$("$bench" fdatasync "$dir" 300)
    a=$(now)
    i=0
    while [ $i -lt 200 ]; do crun-submit -H -Q -o /dev/null -- true; i=$((i + 1)); done
    serial=$(rate 200 "$a" "$(now)")
    echo "serial submits/s: $serial; fdatasync/s: $sync_rate; ratio $(ratio "$serial" "$sync_rate")"

    spawn=$("$bench" spawn 3000 "$cores")
    n=${CRUN_PERF_ARRAY:-10000}
    c0=$(cpu_ms)
    a=$(now)
    id=$(crun-submit --parsable -a "0-$((n - 1))" -o /dev/null -- true)
    crun-wait "$id"
    done_rate=$(rate "$n" "$a" "$(now)")
    c1=$(cpu_ms)
    echo "array of $n true, done/s: $done_rate; bare posix_spawn/s: $spawn; ratio $(ratio "$done_rate" "$spawn"); daemon CPU $(awk -v a="$c0" -v b="$c1" -v n="$n" 'BEGIN { printf "%.2f", (b - a) / n }') ms a job"

    base=$("$bench" spawn-latency 200)
    lat=$("$bench" latency 200)
    echo "submit to first instruction, us: p50 ${lat% *} p99 ${lat#* }; bare spawn p50 ${base% *} p99 ${base#* }; p50 ratio $(ratio "${lat% *}" "${base% *}"), p99 over bare p50 $(ratio "${lat#* }" "${base% *}")"
    r=$((r + 1))
done
before=$(rss_kib)
batch=$("$bench" submit 100000 500)
after=$(rss_kib)
echo "batched submits/s on one connection: $batch"
echo "controller memory per queued job at 100,000: $(awk -v a="$before" -v b="$after" 'BEGIN { printf "%.0f", (b - a) * 1024 / 100000 }') bytes"
a=$(now)
crun-queue -h | wc -l >/dev/null
echo "crun-queue of 100,000: $(( ($(now) - a) / 1000000 )) ms"
a=$(now)
big=$(crun-submit -H --parsable -a 0-999999 -o /dev/null -- true)
echo "array of 1,000,000 accepted in $(( ($(now) - a) / 1000000 )) ms (job $big)"
a=$(now)
crun-stop --dir="$dir" >/dev/null
crun-start --dir="$dir" --node=n1 >/dev/null
echo "stop and start with these jobs stored: $(( ($(now) - a) / 1000000 )) ms"
