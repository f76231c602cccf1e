# Dependencies: afterok, afterany, afternotok on jobs, arrays and elements; the impossible ends at once.
. "${CRUN_SRCDIR:?}/testsuite/lib.sh"
plan 12
instance_start
cd "$T" || exit 1
a=$(submit -H -o a.out -- sh -c 'echo a >order')
b=$(submit -d afterok:"$a" -- sh -c 'echo b >>order')
c=$(submit -d afterany:"$a":"$b" -- sh -c 'echo c >>order')
is "a dependent job waits and says for what" "$(job_field "$b" .reason)" Dependency
like "crun-why names the job it waits for" "$(crun-why "$b")" "waits for afterok:$a"
crun-ctl release "$a"
ok "the chain ends" crun-wait "$a" "$b" "$c"
is "in order" "$(tr '\n' ' ' <order)" "a b c "
f=$(submit -H -- false)
n=$(submit -d afterok:"$f" -- touch never)
m=$(submit -d afterok:"$n" -- touch never)
y=$(submit -d afternotok:"$f" -- touch yes)
crun-ctl release "$f"
crun-wait "$n"
is "afterok on a failed job ends with 242" "$?" 242
is "as cancelled, with the reason" "$(job_field "$n" .state) $(job_field "$n" .reason)" "cancelled DependencyNeverSatisfied"
is "and so does what hangs on it" "$(crun-wait "$m"; job_field "$m" .reason)" DependencyNeverSatisfied
ok "afternotok runs" crun-wait "$y"
ok "and what may not run did not" test ! -e never
arr=$(submit -a 0-3 -H -o /dev/null -- true)
after=$(submit -d afterok:"$arr" -- true)
el=$(submit -d afterok:"${arr}_2" -- true)
crun-ctl release "$arr"
ok "afterok on an array and on an element" crun-wait "$after" "$el"
ok "afterok on a job that has finished long ago" crun-submit --wait -Q -d afterok:"$a" -- true
must_fail 1 'never|failed|cannot' crun-submit -d afterok:"$f" -- true
