# Exit code, signal and cause are apart; CPU time and memory are of the whole job.
. "${CRUN_SRCDIR:?}/testsuite/lib.sh"
plan 17
instance_start
cd "$T" || exit 1
run() { # CODE ARG ...: submits, waits; sets $id and $rc
    id=$(submit -o out-%j "$@")
    crun-wait "$id"
    rc=$?
}
run -- sh -c 'exit 3'
is "exit code 3" "$rc $(job_field "$id" .state) $(job_field "$id" .attempt.exit_code) $(job_field "$id" .attempt.signal) $(job_field "$id" .attempt.cause)" "3 failed 3 null exit"
run -- sh -c 'kill -SEGV $$'
is "killed by a signal that we did not send" "$rc $(job_field "$id" .state) $(job_field "$id" .attempt.exit_code) $(job_field "$id" .attempt.signal) $(job_field "$id" .attempt.cause)" "139 failed null 11 signal"
run -- nosuchcommand
is "no such command: 127" "$rc $(job_field "$id" .attempt.cause)" "127 launch (user)"
like "with the true reason" "$(job_field "$id" .attempt.message)" 'nosuchcommand.*No such file'
echo x >plain && chmod 644 plain
run -- ./plain
is "not executable: 126" "$rc" 126
run -D /no/such/folder -- true
like "a workdir that is not there: the job's fault, with host and path" "$(job_field "$id" .attempt.message)" '/no/such/folder.*No such file'
is "and the node stays in service" "$(crun-info -h | awk '{print $5}')" idle
run -o /proc/nope/x -- true
like "an output file that cannot be opened: named" "$(job_field "$id" .attempt.message)" '/proc/nope'
cat >burn.sh <<'JOB'
#!/bin/sh
burn() { i=0; while [ $i -lt 100000 ]; do i=$((i+1)); done; }
burn & burn & wait
JOB
run burn.sh
cpu=$(job_json "$id" | jq '.jobs[0].attempt.usage | (.cpu_user_ns + .cpu_sys_ns) / 1e6 | floor')
ok "CPU time counts children ($cpu ms)" test "$cpu" -gt 50
source=$(job_field "$id" .attempt.usage.source)
like "where the numbers come from is said: $source" "$source" '^(cgroup1|cgroup2|wait4)$'
run -- perl -e '$x = "x" x (64 << 20); exit 0'
mem=$(job_json "$id" | jq '.jobs[0].attempt.usage | ((.mem_peak_bytes // .maxrss_bytes) / 1048576) | floor')
ok "peak memory is seen ($mem MiB)" test "$mem" -ge 60 -a "$mem" -lt 400
if [ "$source" = wait4 ]; then
    skip 3 "no memory cgroup can be written here"
else
    run --mem=32M -- perl -e '$x = "x" x (256 << 20); exit 0'
    is "over its memory: OUT_OF_MEMORY, 253" "$rc $(job_field "$id" .state) $(job_field "$id" .attempt.cause)" "253 out_of_memory out of memory"
    run --mem=32M -- sh -c 'perl -e "\$x = q(x) x (256 << 20)"; exit 0'
    is "also when only a child was hit and the leader says 0" "$rc $(job_field "$id" .state)" "253 out_of_memory"
    like "the job's error output says so" "$(cat "out-$id")" '[Oo]ut of memory'
fi
like "crun-acct has a row with state, code and CPUs" "$(crun-acct -P --noheader "$id")" "^$id\|1\|"
is "crun-acct --json agrees" "$(crun-acct --json "$id" | jq -r '.schema, .jobs[0].attempt.attempt' | tr '\n' ' ')" "crun/acct/1 1 "
is "without ids it lists my jobs of today" "$(crun-acct -P --noheader | grep -c "^$id|")" 1
