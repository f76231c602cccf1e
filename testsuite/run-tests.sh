#!/bin/sh
# Runs test programs and scripts that speak TAP, several at once, and adds them up.
# usage: run-tests.sh TEST ...   (names relative to the build folder, else to the source folder)
# CRUN_TEST_JOBS how many at once (default: cores), CRUN_TEST_TIMEOUT seconds for each (default 300).
# A program that dies, runs too long, or prints another number of results than planned counts as failed.
# Last line: N passed, N failed, N skipped. Exit 1 if any failed or none passed.
set -u
build=${CRUN_BUILDDIR:-$PWD}
src=${CRUN_SRCDIR:-$PWD}
jobs=${CRUN_TEST_JOBS:-$(nproc)}
out=$build/test-results
rm -rf "$out" && mkdir -p "$out" || exit 1
export CRUN_BUILDDIR="$build" CRUN_SRCDIR="$src" CRUN_TEST_OUT="$out" CMOCKA_MESSAGE_OUTPUT=TAP

one='
name=$1
file=$CRUN_BUILDDIR/$name
[ -e "$file" ] || file=$CRUN_SRCDIR/$name
log=$CRUN_TEST_OUT/$(printf %s "$name" | tr / _).log
limit=${CRUN_TEST_TIMEOUT:-300}
start=$(date +%s)
case $file in
*.t) timeout -k 10 "$limit" sh "$file" >"$log" 2>&1 ;;
*) cd "$CRUN_BUILDDIR" && timeout -k 10 "$limit" "$file" >"$log" 2>&1 ;;
esac
rc=$?
awk -v name="$name" -v rc="$rc" -v limit="$limit" -v s="$(( $(date +%s) - start ))" "
    /^ok / { if (\$0 ~ /# [Ss][Kk][Ii][Pp]/) { skip++; skipped = skipped \"    \" \$0 \"\n\" } else ok++ }
    /^not ok [0-9]+ # SKIP/ { skip++; skipped = skipped \"    \" \$0 \"\n\"; next } # as cmocka says it
    /^not ok / { bad++; failed = failed \"    \" \$0 \"\n\" }
    /^1\.\.[0-9]+/ { plan = substr(\$1, 4) + 0; planned = 1; if (\$0 ~ /# [Ss][Kk][Ii][Pp]/) { skip++; skipped = skipped \"    \" \$0 \"\n\" } }
    END {
        n = ok + bad + skip
        if (rc == 124 || rc == 137) { bad++; failed = failed \"    took longer than \" limit \" s\n\" }
        else if (!planned || (plan != n && plan != 0)) { bad++; failed = failed \"    planned \" plan \", printed \" n \", exit code \" rc \"\n\" }
        else if (rc != 0 && bad == 0) { bad++; failed = failed \"    exit code \" rc \"\n\" }
        printf \"%s %d %d %d %ds\n%s%s\", name, ok, bad, skip, s, failed, skipped
    }" "$log" >"$log.sum"
head -n 1 "$log.sum" | awk "{ printf \"%-44s %3d passed, %d failed, %d skipped (%s)\n\", \$1, \$2, \$3, \$4, \$5 }"
sed -n "2,\$p" "$log.sum"
'
# Unit tests share a machine well; end-to-end tests start daemons and are run by the same pool.
printf '%s\n' "$@" | xargs -P "$jobs" -I{} sh -c "$one" run-one {}
cat "$out"/*.sum 2>/dev/null | awk '
    /^[^ ]/ { ok += $2; bad += $3; skip += $4 }
    END { printf "%d passed, %d failed, %d skipped\n", ok, bad, skip; exit (bad > 0 || ok == 0) }'
