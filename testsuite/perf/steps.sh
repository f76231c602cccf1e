#!/bin/bash
# How long `crun-run true` takes: with an allocation of its own, and as a step inside a job; beside it a bare
# `true`. Usage: CRUN_STAGE=... CRUN_BUILDDIR=... steps.sh [TIMES]
: "${CRUN_SRCDIR:=$(cd "$(dirname "$0")/../.." && pwd)}"
export CRUN_SRCDIR TIMES=${1:-200}
. "$CRUN_SRCDIR/testsuite/lib.sh"
instance_start
cat >"$T/times.py" <<'P'
import os, subprocess, sys, time
n = int(os.environ["TIMES"])
def once():
    t = time.monotonic()
    subprocess.run(sys.argv[2:], check=True)
    return time.monotonic() - t
v = sorted(once() for _ in range(n))
print("%-28s p50 %5.1f ms  p90 %5.1f  p99 %5.1f" % (sys.argv[1], v[n // 2] * 1e3, v[n * 9 // 10] * 1e3, v[n * 99 // 100] * 1e3))
P
python3 "$T/times.py" "bare true" true
python3 "$T/times.py" "crun-run true" crun-run true
id=$(crun-submit --parsable -o "$T/job.out" -- python3 "$T/times.py" "crun-run true inside a job" crun-run true)
crun-wait "$id"
cat "$T/job.out"
