# crun-acct as clients of sacct read it, times, efficiency, whose jobs.
. "${CRUN_SRCDIR:?}/testsuite/lib.sh"
plan 28
instance_start
cd "$T" || exit 1
id=$(submit -J work -A proj -n 1 --mem=64M -t 10 -o /dev/null -- sh -c 'i=0; while [ $i -lt 60000 ]; do i=$((i + 1)); done; exit 3')
arr=$(submit -J arr -a 0-2 -o /dev/null -- true)
gone=$(submit -H -J gone -- true)
crun-cancel "$gone"
run=$(submit -J runner -o /dev/null -- sleep 100)
crun-wait "$id" "$arr" "$gone" 2>/dev/null
wait_for 20 job_is "$run" running
user=$(id -un)

is "JobIdRaw and State, as Snakemake asks" "$(crun-acct -P -n --format=JobIdRaw,State -j "$id")" "$id|FAILED"
is "JobIDRaw,State,ExitCode, as Toil asks" "$(crun-acct -n -j "$id,$gone" --format=JobIDRaw,State,ExitCode -P -S 1970-01-01)" "$id|FAILED|3:0
$gone|CANCELLED|0:0"
is "JobID,State,NodeList with headings, as submitit asks" "$(crun-acct -o JobID,State,NodeList --parsable2 -j "$id" -j "$arr")" "JobID|State|NodeList
$id|FAILED|n1
${arr}_0|COMPLETED|n1
${arr}_1|COMPLETED|n1
${arr}_2|COMPLETED|n1"
is "-X, widths, lower case, as Parsl asks" "$(crun-acct -X --noheader --format=jobid,state%20 --jobs "$id" | awk '{print $1, $2}')" "$id FAILED"
is "%20 fills from the left, %-20 on the right" "$(crun-acct -n -o 'state%20,jobname%-8,user' -j "$id")" "              FAILED work     $user"
is "-p ends each line with a bar" "$(crun-acct -p -n -o JobID,State -j "$id")" "$id|FAILED|"
is "--delimiter" "$(crun-acct -P --delimiter=, -n -o JobID,State -j "$id")" "$id,FAILED"
is "name, account, partition, limits, tasks" "$(crun-acct -P -n -j "$id" -o JobName,Account,User,Partition,AllocCPUS,ReqMem,NNodes,NTasks,Timelimit,Attempt,Restarts)" "work|proj|$user|main|1|64M|1|1|00:10:00|1|0"
like "times are local ISO, Elapsed H:M:S" "$(crun-acct -P -n -j "$id" -o Submit,Start,End,Elapsed)" '^[-0-9]{10}T[0-9:]{8}\|[-0-9]{10}T[0-9:]{8}\|[-0-9]{10}T[0-9:]{8}\|00:00:0[0-9]$'
is "what never started has no start" "$(crun-acct -P -n -j "$gone" -o Start,NodeList)" "Unknown|None assigned"
like "usage is there" "$(crun-acct -P -n -j "$id" -o TotalCPU,MaxRSS,CPUTimeRAW)" '^00:0[0-9]\.[0-9]{3}\|[0-9]+K\|[0-9]+$'
is "every name can be printed" "$(crun-acct --helpformat | while read -r n; do crun-acct -n -o "$n" -j "$id" >/dev/null || echo "$n"; done)" ""
is "a running job is found by id" "$(crun-acct -P -n -o State,End "$run")" "RUNNING|Unknown"
is "without ids: mine that ended today, then those that have not" "$(crun-acct -P -n -o JobName | sort | uniq -c | awk '{print $1, $2}' | tr '\n' ' ')" "3 arr 1 gone 1 runner 1 work "
is "-S and -E bound the end time" "$(crun-acct -n -S now-1hour -E now -o JobID | wc -l) $(crun-acct -n -S now -o JobName) $(crun-acct -n -S today -E now-1hour -o JobID | wc -l)" "6 runner 0"
is "-S takes how long ago" "$(crun-acct -n -S 2h | wc -l)" 6
must_fail 2 'neither how long ago' crun-acct -S yesterdayish
is "-s filters by state" "$(crun-acct -n -s F,CA -o JobID | wc -l)" 2
is "-A, -r, --name, -u filter" "$(crun-acct -n -A proj | wc -l) $(crun-acct -n -r main | wc -l) $(crun-acct -n -r none | wc -l) $(crun-acct -n --name arr | wc -l) $(crun-acct -n -u nobody | wc -l)" "1 6 0 3 0"
is "-a shows all users" "$(crun-acct -n -a | wc -l)" 6
is "a job that waits or runs is there too, as Snakemake asks" "$(crun-acct -X --parsable2 --noheader --format=JobIdRaw,State --since 2020-01-01T16:00 --until now --name runner)" "$run|RUNNING"
must_fail 1 'job 99999 does not exist' crun-acct 99999
must_fail 2 "field 'Jobid2'" crun-acct -o Jobid2

# efficiency: the loop ran on one core all the time
is "--eff in JSON: CPU between a fifth and all" "$(crun-acct --eff --json "$id" | jq '.jobs[0].efficiency | .cores == 1 and .cpu > 0.2 and .cpu < 1.1 and (.cpu == .cpu_used_ns / .cpu_granted_ns)')" true
is "and memory against what it asked for" "$(crun-acct --eff --json "$id" | jq '.jobs[0].efficiency | .mem_granted_bytes == 67108864 and .mem > 0 and .mem < 1')" true
like "--eff as a table" "$(crun-acct --eff -n "$id" | tr -s ' ')" "^ ?$id FAILED 1 00:00:0[0-9] 00:0[0-9]\.[0-9]+ [0-9.]+% [0-9.]+M 64.0M [0-9.]+% 0$"
is "what never ran has no efficiency" "$(crun-acct --eff -P -n "$gone" | cut -d'|' -f5-6)" "-|-"
is "--jsonl: one attempt a line" "$(crun-acct --jsonl "$arr" | jq -r .id | tr '\n' ' ')" "${arr}_0 ${arr}_1 ${arr}_2 "
crun-cancel "$run"
