# Arrays: one row in the store, elements with ids of their own, throttle, outcome of the whole.
. "${CRUN_SRCDIR:?}/testsuite/lib.sh"
plan 14
instance_start
cd "$T" || exit 1
id=$(submit -a 0-9,20-24:2 -o 'e-%a.out' -- sh -c 'echo $CRUN_ARRAY_TASK_ID $CRUN_ARRAY_COUNT $CRUN_ARRAY_MIN $CRUN_ARRAY_MAX $CRUN_ARRAY_JOB_ID $CRUN_JOB_ID')
ok "an array ends" crun-wait "$id"
is "each element wrote its file" "$(ls e-*.out | wc -l)" 13
is "an element knows its array" "$(cut -d' ' -f1-5 e-22.out)" "22 13 0 24 $id"
is "each element has an id of its own" "$(cut -d' ' -f6 e-*.out | sort -u | wc -l)" 13
d=$(submit -a 5 -- true)
crun-wait "$d"
ok "%A_%a is the default name" test -e "crun-${d}_5.out"
is "one element can be asked for" "$(job_field "${id}_22" .array_index)" 22
is "its state is its own" "$(job_field "${id}_22" .state)" completed
id2=$(submit -a 0-5 -- sh -c 'exit $CRUN_ARRAY_TASK_ID')
crun-wait "$id2"
is "the exit code of an array is the highest" "$?" 5
is "the array failed" "$(job_field "$id2" .state)" failed
is "element 0 completed" "$(job_field "${id2}_0" .state)" completed
id3=$(submit -a '0-7%1' -n 1 -- sh -c 'mkdir lock || echo two at once >clash; rmdir lock')
crun-wait "$id3"
ok "a throttle of 1 lets no two run at once" test ! -e clash
id4=$(submit -a 0-999999 -H -- true)
is "a million elements are accepted" "$(job_field "$id4" .array_count)" 1000000
crun-cancel "${id4}_5"
is "one of them can be cancelled" "$(job_field "${id4}_5" .state)" cancelled
crun-cancel "$id4"
is "and the rest" "$(job_field "$id4" .state)" cancelled
