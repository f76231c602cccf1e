# crun-queue: columns, filters, arrays collapsed and expanded, finished jobs by id, JSON.
. "${CRUN_SRCDIR:?}/testsuite/lib.sh"
plan 13
instance_start
cd "$T" || exit 1
cores=$(crun-info --json | jq '.nodes[0].cores')
mkfifo gate
hold=$(submit -H -J held -- true)
run=$(submit -J runner -n "$cores" -- sh -c 'read -r x <gate')
arr=$(submit -J arr -a 0-9 -- true)
wait_for 20 job_is "$run" running
is "the header is the one that squeue users parse" "$(crun-queue | head -n 1 | tr -s ' ' | sed 's/^ //')" "JOBID PARTITION NAME USER ST TIME NODES NODELIST(REASON)"
like "a running job shows its node" "$(crun-queue -h "$run" | tr -s ' ')" " main runner $(id -un) R [0-9:]+ 1 n1"
like "a held job says so" "$(crun-queue -h "$hold" | tr -s ' ')" ' PD 0:00 1 \(JobHeldUser\)'
like "waiting elements of an array are one line" "$(crun-queue -h "$arr" | tr -s ' ')" "^ ?${arr}_\[0-9\] main arr "
is "-r gives one line per element" "$(crun-queue -hr "$arr" | wc -l)" 10
is "-t PD shows waiting jobs only" "$(crun-queue -h -t PD | awk '{print $3}' | sort | tr '\n' ' ')" "arr held "
is "-n filters by name" "$(crun-queue -h -n held,runner | wc -l)" 2
is "--me shows my jobs" "$(crun-queue -h --me | wc -l)" 3
is "-u of nobody's jobs is empty, not an error" "$(crun-queue -h -u nobody; echo $?)" 0
is "JSON has the schema, and every job a reason or a node" "$(crun-queue --json | jq -r '.schema, ([.jobs[] | select(.state == "pending" and (.reason // "None") == "None")] | length)' | tr '\n' ' ')" "crun/queue/1 0 "
echo go >gate
ok "the jobs end" crun-wait "$run" "$arr"
like "a finished job is found by its id" "$(crun-queue -h "$run" | tr -s ' ')" ' CD '
is "and in no list of live jobs" "$(crun-queue -h | awk '{print $3}' | sort | tr '\n' ' ')" "held "
