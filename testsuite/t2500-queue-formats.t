# crun-queue as other programs read it: letters, names, widths, sort, filters, steps of selection.
. "${CRUN_SRCDIR:?}/testsuite/lib.sh"
plan 38
instance_start
cd "$T" || exit 1
cores=$(crun-info --json | jq '.nodes[0].cores')
mkfifo gate
run=$(submit -J runner -n "$cores" -t 60 -A proj -o out.txt --label team=red -- sh -c 'read -r x <gate')
wait_for 20 job_is "$run" running
hold=$(submit -H -J held --label team=blue -- true)
arr=$(submit -J arr -a 0-2%2 -- true)
user=$(id -un)

# what clients of Slurm ask and how they parse it
is "%i %t: two columns" "$(crun-queue -h -o '%i %t' -j "$run,$hold")" "$run R
$hold PD"
is "%i|%T without blanks" "$(crun-queue --format='%i|%T' --states=all --noheader --name runner)" "$run|RUNNING"
is "%T %B: state and host" "$(crun-queue -h -j "$run" -o '%T %B')" "RUNNING n1"
is "widths fill from the left with a dot" "$(crun-queue -h -j "$run" -o '[%.8i] [%-j]' 2>&1 | head -n 1)" "crun-queue: format: letter '-' is unknown (--helpformat lists all) (see crun-queue --help)"
is "and on the right without" "$(crun-queue -h -j "$run" -o '[%.8i][%8j][%.2t]')" "$(printf '[%8s][%-8s][ R]' "$run" runner)"
is "nothing is cut" "$(crun-queue -h -j "$run" -o '%.2j|%2j')" "runner|runner"
is "the header has squeue's headings" "$(crun-queue -o '%.18i %.9P %j %u %.2t %.10M %.9l %.6D %R' | head -n 1)" "             JOBID PARTITION NAME USER ST       TIME TIME_LIMIT  NODES NODELIST(REASON)"
is "text between columns stays, %% is one" "$(crun-queue -h -j "$run" -o 'id=%i 100%%')" "id=$run 100%"
is "-O prints one word a column, elements apart" "$(crun-queue -h -O JobArrayID,StateCompact,Reason -t all -j "$arr" | awk '{print NF, $1, $2, $3}')" "3 ${arr}_0 PD Resources
3 ${arr}_1 PD Resources
3 ${arr}_2 PD Resources"
is "-O widths" "$(crun-queue -h -j "$run" -O 'JobID:6,name:.8,STATE:3')" "$(printf '%-6s %8s RUNNING' "$run" runner)"
is "every letter of squeue is known" "$(for l in A a B C c D d e E f F G g i j k K l L m M n N o P p q Q r R S t T u U v V x Z z; do crun-queue -h -j "$run" -o "%$l" >/dev/null || echo "$l"; done)" ""
is "what means nothing here is N/A" "$(crun-queue -h -j "$run" -o '%z %w')" "N/A N/A"
is "every name can be printed" "$(crun-queue --helpformat | awk '{print $2}' | while read -r n; do crun-queue -h -O "$n" >/dev/null || echo "$n"; done)" ""
must_fail 2 "field 'JobIdd' is unknown, did you mean JobID" crun-queue -O JobIdd
must_fail 2 'letter .@. is unknown' crun-queue -o '%@'
must_fail 2 'width is at most' crun-queue -o '%99999999999999999999i'
must_fail 2 'a letter is missing' crun-queue -o '%.5'
is "waiting elements collapse with their throttle" "$(crun-queue -h -j "$arr" -o %i)" "${arr}_[0-2%2]"
is "-r expands" "$(crun-queue -hr -j "$arr" -o %i | tr '\n' ' ')" "${arr}_0 ${arr}_1 ${arr}_2 "
is "%A %F %K of an element" "$(crun-queue -hr -j "${arr}_1" -o '%A %F %K')" "$((arr + 2)) $arr 1"
is "-P with a delimiter" "$(crun-queue -P --delimiter=';' -h -j "$run" | cut -d';' -f1-5)" "$run;main;runner;$user;R"
is "sort by name, and back" "$(crun-queue -h -S j -o %j | tr '\n' ' ')$(crun-queue -h -S -j -o %j | tr '\n' ' ')" "arr held runner runner held arr "
is "sort by id as a number" "$(crun-queue -h -S -i -o %A | tr '\n' ' ')" "$arr $hold $run "
is "-A filters by account" "$(crun-queue -h -A proj -o %i)" "$run"
is "-L filters by label" "$(crun-queue -h -L team=blue -o %i) $(crun-queue -h --label team=green -o %i)" "$hold "
is "-w filters by node" "$(crun-queue -h -w n1 -o %i) $(crun-queue -h -w n2 -o %i)" "$run "
is "-t knows long and short names, any case" "$(crun-queue -h -t pd -o %i -j "$hold") $(crun-queue -h --states=Running -o %i)" "$hold $run"
is "bundled letters with a value" "$(crun-queue -hn runner -o %i)" "$run"
is "last and @name" "$(crun-queue -h last -o %i) $(crun-queue -h @held -o %i)" "${arr}_[0-2%2] $hold"
is "other commands know these words too" "$(crun-ctl hold @arr && crun-queue -h last -o %r) $(crun-ctl release last && crun-ctl show job last | jq .jobs[0].array_count)" "JobHeldUser 3"
must_fail 1 'you have no such job' crun-queue @nobody
must_fail 1 'job 99999 does not exist' crun-queue -j 99999
is "ranges and lists" "$(crun-queue -h -j "$run-$hold,${arr}_[1-2]" -o %i | tr '\n' ' ')" "$run $hold ${arr}_1 ${arr}_2 "
is "a label does not cancel others" "$(crun-cancel -L team=blue; crun-queue -h -t all -o '%i %t' -j "$run,$hold")" "$run R
$hold CA"
is "--jsonl: an object a line" "$(crun-queue --jsonl -r | jq -r .state | sort | uniq -c | awk '{print $1, $2}' | tr '\n' ' ')" "3 pending 1 running "
crun-queue -h -i 1 -j "$run" -o %t >loop.out &
loop=$!
twice() { [ "$(grep -c '^R$' loop.out)" -ge 2 ]; }
ok "-i asks again" wait_for 10 twice
kill -TERM "$loop"
wait "$loop"
is "until interrupted" "$?" 130
echo go >gate
crun-wait "$run" "$arr"
is "ended jobs are known by their id" "$(crun-queue -h -o '%i %t' -j "$run,$arr")" "$run CD
$arr CD"
