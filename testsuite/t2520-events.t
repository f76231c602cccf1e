# crun-events and crun-wait --for: history, following without loss or doubles, filters, whose events.
. "${CRUN_SRCDIR:?}/testsuite/lib.sh"
plan 22
instance_start
cd "$T" || exit 1
mkfifo gate
kinds() { crun-events --jsonl "$@" | jq -r .kind | tr '\n' ' '; }

id=$(submit -J one -- sh -c 'read -r x <gate')
is "wait --for=running comes back while it runs" "$(crun-wait --for=running -W 30s "$id"; echo $?) $(job_field "$id" .state)" "0 running"
crun-wait --for=requeue -W 30s "$id" 2>never.err &
never=$!
crun-wait --for=end -W 30s "$id" &
ender=$!
echo go >gate
wait "$never"
is "an event that never came: wait says so" "$? $(cat never.err)" "1 crun-wait: job $id has ended without event requeue"
wait "$ender"
is "wait --for=end is crun-wait" "$?" 0
is "the life of a job in order" "$(kinds "$id")" "submit start running end "
is "an event long past still counts" "$(crun-wait --for=start -W 5s "$id"; echo $?)" 0
hold=$(submit -H -- true)
must_fail 1 'no event start within' crun-wait --for=start -W 1s "$hold"
crun-cancel "$hold"
must_fail 1 "job $hold has ended without event start" crun-wait --for=start -W 10s "$hold"
must_fail 1 'job 4242 does not exist' crun-wait --for=start 4242
must_fail 1 'job 4242 does not exist' crun-events -j 4242
must_fail 2 'is not a job id' crun-events -j x
must_fail 2 'use --jsonl' crun-events -f --json

# a follower that begins before the jobs sees each event of each once
crun-events -f --jsonl -k end -W 60s >ends.jsonl 2>ends.err &
follower=$!
arr=$(submit -a 0-199 -o /dev/null -- true)
crun-wait "$arr"
all_ends() { [ "$(jq -s "[.[] | select(.array_id == $arr)] | length" ends.jsonl)" = 200 ]; }
ok "a follower gets the end of each of 200 elements" wait_for 20 all_ends
kill "$follower"
wait "$follower" 2>/dev/null
is "each once, numbers rising" "$(jq -s '[.[].seq] | . == (unique)' ends.jsonl) $(jq -rs "[.[] | select(.array_id == $arr) | .array_index] | unique | length" ends.jsonl)" "true 200"
is "elements have their array form" "$(crun-events --jsonl -k end "${arr}_7" | jq -r '.id, .array_index' | tr '\n' ' ')" "${arr}_7 7 "
is "an array's history has that of its elements" "$(crun-events --jsonl -k start "$arr" | wc -l)" 200
last=$(crun-events --jsonl | tail -n 1 | jq .seq)
is "numbers have no gap" "$(crun-events --jsonl | jq -s '[.[].seq] | (last - first + 1) == length')" true
is "--after goes on behind a number" "$(crun-events --jsonl --after=$((last - 3)) | wc -l)" 3
must_fail 1 'has not happened' crun-events --after=$((last + 1000))
is "--since now is empty, since midnight is not" "$(crun-events --since=now | wc -l) $(crun-events --since=today -k submit | head -n 1 | grep -c submit)" "0 1"
like "a line has time, job, event and text" "$(crun-events "$id" | sed -n 2p)" "^[-0-9T:]+Z job $id start on n1: cores"

# the cursor outlives the controller
last=$(crun-events --jsonl | tail -n 1 | jq .seq)
crun-events -f --jsonl --after="$last" -W 60s >over.jsonl 2>/dev/null &
follower=$!
a=$(submit -- true)
crun-wait "$a"
instance_pid=$(daemon_pid crunctld)
daemon_kill9 crunctld
instance_restart crunctld >/dev/null
b=$(submit -- true)
crun-wait "$b"
has_b() { jq -e "select(.job_id == $b and .kind == \"end\")" over.jsonl; }
ok "a follower goes on after the controller was killed (was $instance_pid)" wait_for 90 has_b
kill "$follower"
wait "$follower" 2>/dev/null
is "and has every event between both once" "$(jq -s "[.[] | select(.job_id == $a or .job_id == $b) | .kind] | join(\" \")" over.jsonl)" '"submit start running end submit start running end"'
