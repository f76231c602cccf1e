# crun-diag, crun-prio and crun-stat; crun-info in formats of sinfo; a node in full.
. "${CRUN_SRCDIR:?}/testsuite/lib.sh"
plan 26
SYNTHETIC='pack:1 numa:1 core:4 pu:1' instance_start 'plugin "gpu/fake" { options { count = 2 } }' 'partition "main" { max_time = "2h" }' 'partition "spare" { max_time = "1d" nodes = "n1" }'
cd "$T" || exit 1
d() { crun-diag --json | jq "$1"; }

before=$(d '.requests.submit.count // 0')
for _ in 1 2 3; do submit -H -o /dev/null -- true >/dev/null; done
is "each submit is counted by kind" "$(d .requests.submit.count)" $((before + 3))
is "and by user" "$(d ".users[0] | .uid == $(id -u) and .user == \"$(id -un)\" and .count >= 3")" true
is "commits have a median, a 99th percentile and a maximum, in order" "$(d '.commits >= 3 and .commit_p50_us > 0 and .commit_p50_us <= .commit_p99_us and .commit_p99_us <= .commit_max_us')" true
is "passes too" "$(d '.passes >= 1 and .pass_p50_us <= .pass_p99_us and .pass_p99_us <= .pass_max_us')" true
is "turns go on" "$(a=$(d .turns); b=$(d .turns); [ "$b" -gt "$a" ]; echo $?)" 0
is "the jobs of the queue and its rows are counted" "$(d '[.jobs_pending, .rows_job, .rows_damaged, .event_followers]' | tr -d ' \n')" "[3,3,0,0]"
crun-events -f -W 60s >/dev/null 2>&1 &
follower=$!
follows() { [ "$(d .event_followers)" = 1 ]; }
ok "a follower is counted" wait_for 10 follows
kill "$follower"
wait "$follower" 2>/dev/null
like "the text names kinds and users" "$(crun-diag)" "^  submit +[0-9]+, [0-9]+ in the last minute"
is "crun-ctl diag says the same" "$(crun-ctl --json diag | jq '.requests.submit.count')" "$(d .requests.submit.count)"
must_fail 2 'is too much' crun-diag x

# crun-info, as clients of sinfo ask it
is "%P is the name, * on the default" "$(crun-info -h -o %P)" "main*
spare"
is "-a -o, as Toil asks" "$(crun-info -a -o '%P %G %l %p %c' | sed 1d)" "main* $(crun-info -h -o %G -p main) 02:00:00 1 4
spare $(crun-info -h -o %G -p spare) 1-00:00:00 1 4"
like "%G says what GPUs there are" "$(crun-info -h -o %G -p main)" '^gpu:([a-z0-9_-]+:)?2$'
is "widths and headings" "$(crun-info -o '%9P %.5a %.6D %.6t %N' -p main)" "$(printf '%-9s %5s %6s %6s %s\n%-9s %5s %6s %6s %s' PARTITION AVAIL NODES STATE NODELIST 'main*' up 1 idle n1)"
is "CPUs by state" "$(crun-info -h -p main -o %C)" "0/4/0/4"
is "-N with a format" "$(crun-info -h -N -p main -o '%N %t')" "n1 idle"
crun-node drain n1 --reason="bad disk"
is "-R says who, when and why" "$(crun-info -h -R -p main | awk '{print $1, $2, $3, $5}')" "bad disk $(id -un) n1"
is "-t filters, short and long names" "$(crun-info -h -t drain -o '%N %T' -p main) $(crun-info -h -t DRAINED -o %N -p main) $(crun-info -h -t idle -o %N)" "n1 drained n1 "
is "drained CPUs are other" "$(crun-info -h -p main -o %C)" "0/0/4/4"
crun-node resume n1
must_fail 2 "letter '@' is unknown" crun-info -o '%@'
must_fail 1 'n7' crun-info -n n7
like "a node in full has host, version and address" "$(crun-node show n1)" '^  (version|address): +[^ ]'

# terms of the rank, and live usage
if crun-prio --json >prio.json 2>prio.err; then
    is "crun-prio has a row for each waiting job, with its terms" "$(jq '[.jobs[] | select(.terms | length > 0)] | length' prio.json)" 3
    like "as a table" "$(crun-prio | head -n 1)" '^ *JOBID PARTITION USER +PLACE +PRIORITY '
else
    skip 2 "the controller serves no PRIO: $(cat prio.err)"
fi
id=$(submit -o /dev/null -- sh -c 'while :; do :; done')
wait_for 20 job_is "$id" running
if crun-stat --json "$id" >stat.json 2>stat.err; then
    is "crun-stat: usage of a running job" "$(jq -r ".jobs[0] | .id == \"$id\" and .node == \"n1\" and (.usage | has(\"cpu_user_ns\"))" stat.json)" true
else
    skip 1 "live usage is not served: $(cat stat.err)"
fi
crun-cancel "$id"
crun-wait "$id" 2>/dev/null
must_fail 1 'none of these jobs is running' crun-stat "$id"
