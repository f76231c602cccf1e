# Arrays made of lines or of JSON values; nodes by label and the estimated start of a test.
. "${CRUN_SRCDIR:?}/testsuite/lib.sh"
plan 14
SYNTHETIC="core:4 pu:1" instance_start
cd "$T" || exit 1
printf 'one\ntwo words\n\n$HOME "q"' >lines
id=$(submit --each-line=lines -o 'l.%a' -- sh -c 'printf "%s" "$CRUN_ENTRY"')
ok "an element for each line" crun-wait "$id"
is "as it stands" "$(cat l.0)|$(cat l.1)|$(cat l.2)|$(cat l.3)" 'one|two words||$HOME "q"'
id=$(seq 500 | crun-submit --parsable --each-line=- -o 'n.%a' -- sh -c 'echo "$CRUN_ENTRY $CRUN_ARRAY_TASK_ID"')
ok "from standard input" crun-wait "$id"
is "each its own" "$(cat n.0 n.499 | tr '\n' ' ')" "1 0 500 499 "
echo '["a", {"x": [1, 2]}, 3]' >v.json
id=$(submit --from-json=v.json -o 'j.%a' -- sh -c 'printf "%s" "$CRUN_ENTRY"')
crun-wait "$id"
is "JSON values" "$(cat j.0)|$(cat j.1)|$(cat j.2)" 'a|{"x":[1,2]}|3'
id=$(submit -H --each-line=lines -o 'h.%a' -- sh -c 'printf "%s" "$CRUN_ENTRY"')
daemon_kill9 crunctld
instance_restart crunctld
crun-ctl release "$id"
crun-wait "$id"
is "kept over a restart" "$(cat h.1)" 'two words'
id=$(submit -o env.out -- sh -c 'echo "${CRUN_ENTRY-none}"')
crun-wait "$id"
is "other jobs have none" "$(cat env.out)" none
: >empty
must_fail 2 'empty: there is no entry' crun-submit --each-line=empty -- true
must_fail 2 'v.json|no --array' crun-submit -a 0-2 --from-json=v.json -- true
echo '{"a": 1}' >bad.json
must_fail 2 'bad.json: 1:1: it is not a JSON array' crun-submit --from-json=bad.json -- true
must_fail 2 'nowhere' crun-submit --each-line=nowhere -- true
must_fail 2 'not both' crun-submit --each-line=- </dev/null
hog=$(submit -n 4 -t 10 -o /dev/null -- sleep 300)
wait_for 20 job_is "$hog" running
like "a test tells when the job would start" "$(crun-submit --test-only -n 4 -- true)" 'would start at about 20'
w=$(submit -n 4 -o /dev/null -- true)
like "crun-queue --start too" "$(crun-queue --start -j "$w")" '20[0-9-]*T'
crun-cancel "$hog" "$w"
