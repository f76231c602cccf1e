# Every kind of dependency, alternatives, and what can never be met; through a kill -9 of the controller.
. "${CRUN_SRCDIR:?}/testsuite/lib.sh"
plan 30
SYNTHETIC="core:8 pu:1" instance_start
cd "$T" || exit 1
state() { job_field "$1" .state; }
reason() { job_field "$1" .reason; }
job() { submit -o /dev/null "$@"; }
has_reason() { [ "$(reason "$1")" = "$2" ]; }
is_live() { [ "$(state "$1")" = running ]; }

# after: from the start on
mkfifo go
a=$(job -- sh -c 'read x <go')
b=$(job -d "after:$a" -- true)
ok "after: starts when the other has started" timeout 20 crun-wait "$b"
is "and not when it has ended" "$(state "$a")" running
c=$(job -d "after:$a+1" -- true)
is "after with a delay waits for its time" "$(state "$c"):$(reason "$c")" pending:BeginTime
like "of about a minute from the start" "$(crun-why "$c")" 'not before'
d=$(job -d "after:$a" -H -- true)
echo >go
crun-wait "$a"
h=$(job -H -- true)
e=$(job -d "after:$h" -- true)
is "after waits for one that is held" "$(reason "$e")" Dependency
f=$(job -d "afterok:$h" -- true)
g=$(job -d "afternotok:$h" -- true)
any=$(job -d "afterok:$h?afterok:$b" -- true)
ok "one alternative that is met is enough" timeout 20 crun-wait "$any"
alt=$(job -d "afterok:$h?afternotok:$h" -- true)
daemon_kill9 crunctld
instance_restart crunctld
is "after a restart they still wait" "$(reason "$e") $(reason "$f") $(reason "$g") $(reason "$alt")" "Dependency Dependency Dependency Dependency"
crun-ctl release "$h"
crun-wait "$h"
ok "after" timeout 20 crun-wait "$e"
ok "afterok" timeout 20 crun-wait "$f"
timeout 20 crun-wait "$g"
is "afternotok of a success ends with 242" $? 242
is "and says so" "$(state "$g"):$(reason "$g")" cancelled:DependencyNeverSatisfied
like "the history names it" "$(crun-events -j "$g")" "DependencyNeverSatisfied afternotok:$h"
ok "alternatives: one was met" timeout 20 crun-wait "$alt"

# singleton
mkfifo s1 s2
x=$(job -J one -- sh -c 'read x <s1')
y=$(job -J one -d singleton -- sh -c 'read x <s2')
z=$(job -J one -d singleton -- true)
w=$(job -J other -d singleton -- true)
ok "a singleton of another name does not wait" timeout 20 crun-wait "$w"
is "one of the same name does" "$(reason "$y") $(reason "$z")" "Dependency Dependency"
echo >s1
wait_for 20 is_live "$y"
is "the next begins, the one behind it waits" "$(state "$y") $(reason "$z")" "running Dependency"
daemon_kill9 crunctld
instance_restart crunctld
is "also after a restart" "$(reason "$z")" Dependency
echo >s2
ok "and then it begins" timeout 20 crun-wait "$z"

# what can never be met
bad=$(job -- false)
crun-wait "$bad"
must_fail 1 'never be satisfied' crun-submit -d "afterok:$bad" -- true
keep=$(job --keep-on-invalid-dep -d "afterok:$bad" -- true)
is "with --keep-on-invalid-dep it waits" "$(state "$keep"):$(reason "$keep")" pending:DependencyNeverSatisfied
hold=$(job -H -- false)
keep2=$(job --kill-on-invalid-dep=no -d "afterok:$hold" -- true)
gone=$(job -d "afterok:$hold" -- true)
chain=$(job -d "afterany:$gone" -- true)
crun-ctl release "$hold"
crun-wait "$hold"
ok "what hangs on one that never starts is told at once" timeout 20 crun-wait "$chain"
wait_for 20 has_reason "$keep2" DependencyNeverSatisfied
is "one that wants to wait waits" "$(state "$keep2"):$(reason "$keep2")" pending:DependencyNeverSatisfied
daemon_kill9 crunctld
instance_restart crunctld
is "for ever" "$(state "$keep2"):$(reason "$keep2")" pending:DependencyNeverSatisfied
crun-cancel "$keep" "$keep2"
none=$(job -H -- true)
must_fail 1 'ever be met|never be satisfied' crun-submit -d "afterok:$bad?afterok:$bad" -- true
two=$(job -d "afterok:$bad?afterok:$none" -- true)
is "of two alternatives one may fail" "$(reason "$two")" Dependency
crun-cancel "$none"
timeout 20 crun-wait "$two"
is "not both" $? 242

# arrays
arr=$(job -a 0-2 -- true)
ok "afterok of an array" timeout 20 crun-wait "$(job -d "afterok:${arr}_*" -- true)"
held=$(job -H -a 0-2%1 -- true)
one=$(job -d "after:${held}_1" -- true)
all=$(job -d "after:$held" -- true)
crun-ctl release "$held"
ok "after one element" timeout 20 crun-wait "$one"
ok "after all elements" timeout 20 crun-wait "$all"
is "the ledger agrees" "$(crun-ctl selfcheck >/dev/null; echo $?)" 0
crun-cancel "$c" "$d" 2>/dev/null
