#!/bin/sh
# Runs fuzz targets for a bounded time each, two at once. usage: fuzz.sh TARGET ...   (in the build folder)
# CRUN_FUZZ_SECONDS a target (default 10). A crash, leak or undefined behaviour fails it and leaves the input
# in fuzz/NAME/. Last line: N passed, N failed, N skipped.
set -u
seconds=${CRUN_FUZZ_SECONDS:-10}
mkdir -p fuzz
one='
name=$(basename "$1")
mkdir -p "fuzz/$name/corpus"
if "$1" -max_total_time="$2" -timeout=10 -rss_limit_mb=1024 -print_final_stats=1 \
    -artifact_prefix="fuzz/$name/" "fuzz/$name/corpus" >"fuzz/$name/log" 2>&1; then
    echo "ok - $name: $(sed -n "s/^stat::number_of_executed_units: *//p" "fuzz/$name/log") inputs"
else
    echo "not ok - $name"
    grep -vE "^#|^INFO" "fuzz/$name/log" | tail -n 25 | sed "s/^/#   /"
fi'
printf '%s\n' "$@" | xargs -P 2 -I{} sh -c "$one" one {} "$seconds" | tee fuzz/results
awk '/^ok/ { ok++ } /^not ok/ { bad++ }
    END { printf "%d passed, %d failed, 0 skipped\n", ok, bad; exit (bad > 0 || ok == 0) }' fuzz/results
