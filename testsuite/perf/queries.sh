#!/bin/sh
# Measures what asking costs: lists of jobs on an idle controller and while it takes submits at full
# rate, and whether followers of events slow commits. Figures for doc/performance.md.
# usage: CRUN_STAGE=PREFIX CRUN_BUILDDIR=DIR queries.sh [ASKS]
set -eu
: "${CRUN_STAGE:?}" "${CRUN_BUILDDIR:?}"
asks=${1:-100}
PATH=$CRUN_STAGE/bin:$CRUN_STAGE/sbin:$PATH
bench=$CRUN_BUILDDIR/testsuite/perf/bench
dir=$(mktemp -d "${TMPDIR:-/var/tmp}/crun-perf.XXXXXX")
export CRUN_CONF="$dir/crun.conf" CRUN_PLUGIN_PATH="$CRUN_STAGE/lib/crun-wlm/plugins"
unset CRUN_HOME
pids=
cleanup() {
    for p in $pids; do kill "$p" 2>/dev/null || true; done
    crun-stop --dir="$dir" --cancel >/dev/null 2>&1 || true
    rm -rf "$dir"
}
trap cleanup EXIT
trap 'exit 1' INT TERM
printf 'cluster = "perf"\nallow_root_jobs = true\n' >"$CRUN_CONF"
crun-start --dir="$dir" --node=n1 >/dev/null
cd "$dir"

quantiles() { # TEXT CMD ...: ASKS times
    text=$1
    shift
    i=0
    while [ "$i" -lt "$asks" ]; do
        a=$(date +%s%N)
        "$@" >/dev/null
        echo $(($(date +%s%N) - a))
        i=$((i + 1))
    done | sort -n | awk -v t="$text" '{ v[NR] = $1 / 1e6 }
        END { printf "%s: p50 %.1f ms, p99 %.1f ms\n", t, v[int((NR + 1) / 2)], v[int(NR * 0.99 + 0.999)] }'
}
three() {
    quantiles "$1, one job by its id" crun-queue -h -j 500
    quantiles "$1, a user without jobs (all are looked at)" crun-queue -h -u nobody
    quantiles "$1, all rows" crun-queue -h
}

echo "batched submits/s of 10,000: $("$bench" submit 10000 500)"
three "10,000 pending"
"$bench" submit 90000 500 >/dev/null
asks=$((asks / 2))
three "100,000 pending"
: >rates
while :; do "$bench" submit 20000 500 >>rates 2>/dev/null || exit 0; done &
pids=$!
quantiles "100,000 and more pending, submitting at full rate, one job by its id" crun-queue -h -j 500
quantiles "the same, a user without jobs" crun-queue -h -u nobody
kill "$pids"
wait "$pids" 2>/dev/null || true
pids=
echo "submits/s meanwhile: $(sort -n rates | awk '{ v[NR] = $1 } END { print v[int((NR + 1) / 2)] }')"

serial() { # durable submits one after another: a commit each
    a=$(date +%s%N)
    i=0
    while [ $i -lt 200 ]; do crun-submit -H -Q -o /dev/null -- true; i=$((i + 1)); done
    awk -v a="$a" -v b="$(date +%s%N)" 'BEGIN { printf "%.1f\n", 200 / ((b - a) / 1e9) }'
}
echo "serial submits/s without followers: $(serial), again $(serial)"
i=0
while [ $i -lt 20 ]; do
    crun-events -f -j 500 >/dev/null 2>&1 &
    pids="$pids $!"
    i=$((i + 1))
done
until [ "$(crun-diag --json | sed -n 's/.*"event_followers": \([0-9]*\).*/\1/p')" = 20 ]; do :; done
echo "with 20 that follow one job: $(serial), again $(serial)"
i=0
while [ $i -lt 5 ]; do
    crun-events -f >/dev/null 2>&1 &
    pids="$pids $!"
    i=$((i + 1))
done
until [ "$(crun-diag --json | sed -n 's/.*"event_followers": \([0-9]*\).*/\1/p')" = 25 ]; do :; done
echo "and 5 more that follow everything: $(serial), again $(serial)"
big=$(crun-submit -H --parsable -a 0-999999 -o /dev/null -- true)
a=$(date +%s%N)
crun-queue -h -r -j "$big" | wc -l >/dev/null
echo "crun-queue -r of an array of 1,000,000: $((($(date +%s%N) - a) / 1000000)) ms"
