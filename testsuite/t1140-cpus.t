# CPU grants are real: two jobs never share a core, and the process agrees with the record.
. "${CRUN_SRCDIR:?}/testsuite/lib.sh"
plan 7
instance_start
cd "$T" || exit 1
cores=$(crun-info --json | jq '.nodes[0].cores')
id=$(submit -o bind.out -- sh -c 'hwloc-bind --get; grep Cpus_allowed_list /proc/self/status; echo $CRUN_CPUSET')
crun-wait "$id"
cpus=$(job_field "$id" .attempt.cpus)
if command -v hwloc-bind >/dev/null && [ "$(job_field "$id" .attempt.cpus_bound)" = true ]; then
    is "hwloc-bind --get inside the job agrees with the record" "$(hwloc-calc --physical-output -I pu --taskset "$(sed -n 1p bind.out)" 2>/dev/null || hwloc-calc -I pu --po "$(sed -n 1p bind.out)")" "$(hwloc-calc --pi -I pu --po "pu:$cpus")"
    is "so does the kernel" "$(awk '/Cpus_allowed_list/ {print $2}' bind.out)" "$cpus"
else
    skip 2 "needs hwloc-bind and processors of this machine"
fi
is "and the job's own variable" "$(tail -n 1 bind.out)" "$cpus"
id=$(submit -a "0-$((cores * 3))" -o 'cpu-%a' -- sh -c 'echo $CRUN_CPUSET; mkdir "core-$CRUN_CPUSET" || touch shared; perl -e "select undef, undef, undef, 0.2"; rmdir "core-$CRUN_CPUSET"')
ok "an array of one-core elements ends" crun-wait "$id"
ok "no two of them had one core at one time" test ! -e shared
is "all cores were used" "$(cat cpu-* | sort -u | wc -l)" "$cores"
wide=$(submit -n "$cores" -- true)
ok "a job of all cores runs, and the ledger agrees with the rows" sh -c "crun-wait $wide && crun-ctl selfcheck"
