# What commands print with --json is what doc/schema declares: each key, its type, what must be there.
. "${CRUN_SRCDIR:?}/testsuite/lib.sh"
plan 34
instance_start 'plugin "gpu/fake" { options { count = 2 } }' 'partition "main" { max_time = "2h" }'
cd "$T" || exit 1
schemas=$CRUN_SRCDIR/doc/schema
for f in "$schemas"/*.json; do
    jq --arg name "$(basename "$f")" '{($name): .}' "$f" || exit 1
done | jq -s add >all.json

faults() { # SCHEMA FILE: prints what is wrong
    jq -r --arg file "$1.json" --argjson all "$(cat "$T/all.json")" -f "$CRUN_SRCDIR/testsuite/schema.jq" "$2"
}
fits() { # TEXT SCHEMA JQ CMD ...: its output fits, and JQ (main facts) holds of it
    t_text=$1 t_schema=$2 t_jq=$3
    shift 3
    "$@" >out.json 2>err.txt
    t_out=$({ faults "$t_schema" out.json || echo "no JSON: $(head -c 300 out.json) $(cat err.txt)"; } 2>&1)
    [ -n "$t_out" ] || jq -e "$t_jq" out.json >/dev/null || t_out="not so: $t_jq in $(head -c 2000 out.json)"
    is "$t_text" "$t_out" ""
}

declared() { # each schema word in the code has its file
    { sed -n 's/.*cw_cli_print_json("\([a-z-]*\)".*/\1/p' "$CRUN_SRCDIR"/src/cmds/*.c
      echo hold release requeue requeuehold pause unpause diag selfcheck backup show-config reload log-level shutdown | tr ' ' '\n'; } | sort -u >words
    [ "$(wc -l <words)" -ge 15 ] || return 1
    while read -r w; do
        [ "$(jq -r .properties.schema.const "$schemas/$w.json")" = "crun/$w/1" ] || { echo "$w"; return 1; }
    done <words
}
ok "each kind of output has its schema" declared

# the checker itself
good='{"schema": "crun/ping/1", "generated": "2026-01-01T00:00:00Z", "cluster": "x", "version": "1", "pid": 5}'
says() { # TEXT JQ PATTERN: the good document, changed so, is refused so
    echo "$good" | jq "$2" >doc.json
    like "$1" "$(faults ping doc.json)" "$3"
}
echo "$good" >doc.json
is "the checker passes what fits" "$(faults ping doc.json)" ""
says "it sees a key that is not declared" '.more = 1' 'more is not declared'
says "and one that is missing" 'del(.pid)' 'pid is missing'
says "and a wrong type" '.pid = "5"' 'pid: string instead of integer'
says "and a time that is none" '.generated = "now"' 'generated: now does not look like'

id=$(submit -G 1 -e err.out -- sh -c 'echo hi; exit 3')
arr=$(submit -a 0-2 --mem=16M -t 5 -- true)
bad=$(submit -D /no/such/folder -- true)
crun-wait "$id" "$arr" "$bad" 2>/dev/null
hold=$(submit -H -a 0-2%1 -- true)
fits "crun-submit" submit ".job_id > $hold and .count == 4 and .existing == false" crun-submit --json -H -a 0-3 -- true
fits "crun-submit --test-only" submit-test '.spec.time_limit_s == 300 and (.origins | length) >= 5' \
    crun-submit --json --test-only -t 5 --mem=10M -a 0-2%1 --label a=b -d "afterok:$hold" -o x --env A=B -- true
fits "crun-submit refused" error '.error.text | test("nope")' crun-submit --json -p nope -- true
fits "crun-queue" queue "[.jobs[] | select(.job_id == $hold)][0] | .state == \"pending\" and .reason == \"JobHeldUser\" and .array_count == 3" crun-queue --json
fits "crun-queue, elements and finished jobs" queue '[.jobs[] | select(.array_index == 2)] | length >= 2' crun-queue --json -r -a
fits "crun-wait" wait ".jobs[0].exit_status == 3 and .jobs[0].attempt.exit_code == 3" crun-wait --json "$id"
fits "crun-acct" acct ".jobs | length == 5" crun-acct --json "$id" "$arr" "$bad"
is "an array and its elements have their own ids" "$(crun-ctl --json show job "$arr" | jq -c '.jobs[0] | [.id, .array_count, .array_completed]')" "[\"$arr\",3,3]"
fits "crun-acct --eff --steps" acct '.jobs[0].efficiency.cores == 1' crun-acct --json --eff --steps "$id"
fits "crun-events" events '[.events[] | select(.kind == "end")] | length >= 5' crun-events --json
crun-events --jsonl "$arr" | head -n 1 >event.txt
fits "crun-events --jsonl, a line" event '.kind == "submit"' cat event.txt
fits "crun-diag" diag '.requests.submit.count >= 4 and .users[0].count > 0' crun-diag --json
fits "crun-queue --label" queue '.jobs[0].labels.team == "red" and .jobs[0].account == "a"' crun-queue --json "$(submit -H --label team=red -A a -- true)"
fits "crun-why of what waits" why '.jobs[0].why[0] | test("held")' crun-why --json "$hold"
fits "crun-why of what could not start" why '.jobs[0].attempt.cause == "launch (user)" and .jobs[0].exit_status == 246' crun-why --json "$bad"
fits "crun-why of nothing" error '.error.code == 2' crun-why --json 424242
fits "crun-info" info '.cluster == "test" and .partitions[0].default and .nodes[0].gpus == 2' crun-info --json
fits "crun-node drain" node '.nodes == ["n1"]' crun-node --json drain n1 --reason=test
fits "crun-node" nodes '.nodes[0].drain_reason == "test"' crun-node --json
crun-node resume n1
fits "crun-ctl ping" ping ".pid == $(daemon_pid crunctld)" crun-ctl --json ping
fits "crun-ctl diag" diag '.rows_job >= 5 and .commits > 0 and .node_sessions == 1' crun-ctl --json diag
fits "crun-ctl show job" jobs ".jobs[0].stderr_path // .jobs[0].attempt.stderr_path | test(\"err.out\")" crun-ctl --json show job "$id"
fits "crun-ctl release" release true crun-ctl --json release "$hold"
fits "crun-ctl selfcheck" selfcheck '.text | test("agrees")' crun-ctl --json selfcheck
fits "crun-ctl show-config" show-config '.text | test("cluster")' crun-ctl --json show-config
fits "crun-ctl backup" backup true crun-ctl --json backup "$T/backup"
fits "crun-cancel" cancel '.matched >= 1' crun-cancel --json --me
fits "crun-ctl shutdown" shutdown true crun-ctl --json shutdown
