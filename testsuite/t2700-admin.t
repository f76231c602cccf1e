# The configuration read again, log levels of the running controller, restore of a backup.
. "${CRUN_SRCDIR:?}/testsuite/lib.sh"
plan 45
SYNTHETIC='pack:1 numa:1 core:4 pu:1' instance_start 'partition "main" { max_time = "2h" }' 'partition "spare" { }' 'partition "gone" { max_time = "1d" }'
cd "$T" || exit 1
# commands read a file of their own here: the controller has to find what is wrong by itself
cp "$H/crun.conf" "$H/client.conf"
export CRUN_CONF="$H/client.conf"
conf() { # LINE ...: a new configuration
    { echo 'cluster = "test"'; echo 'allow_root_jobs = true'; printf '%s\n' "$@"; } >"$H/crun.conf"
}
setting() { crun-ctl show-config | sed -n "s/^$1 = \(.*\) (.*/\1/p"; }
reason() { crun-queue --json | jq -r --arg id "$1" '.jobs[] | select(.id == $id) | .reason'; }
has_reason() { [ "$(reason "$1")" = "$2" ]; }
selfcheck() { crun-ctl selfcheck >/dev/null; }

held=$(submit -H -p gone -- true)
waits=$(submit -p gone -c 4 -- true)
crun-wait "$waits"
long=$(submit -c 4 -p gone -o /dev/null -- sh -c 'while :; do :; done')
wait_for 20 job_is "$long" running
waits=$(submit -c 4 -p gone -o w.out -- echo "came back")
free=$(submit -c 4 -p spare -o /dev/null -- true)

# errors: nothing changes
conf 'kill_grace = 7' 'nonsense = 1' 'partition "main" { }'
must_fail 1 'crun.conf:4: .*nonsense' crun-ctl reload
is "what was stays" "$(setting kill_grace)" 30
conf 'kill_grace = 7' 'admins = "nobody-of-this-name"' 'partition "main" { }'
must_fail 1 "there is no user 'nobody-of-this-name'" crun-ctl reload
is "also for an error behind the parser" "$(setting kill_grace)" 30
is "partitions too" "$(crun-info -h -o %P -p gone)" gone

# live
before=$(crun-events --jsonl | wc -l)
conf 'kill_grace = 7' 'max_array = 3' 'partition "fresh" { default = true }' 'partition "spare" { max_time = "10m" }' 'partition "main" { nodes = "n9" }'
is "a reload says so" "$(crun-ctl reload)" "the configuration is read again"
is "a setting has changed" "$(setting kill_grace)" 7
must_fail 1 'max_array' submit -a 0-9 -- true
must_fail 1 'time' submit -p spare -t 1h -- true
must_fail 1 "'gone'|partition gone" submit -p gone -- true
is "the node set of a partition has changed" "$(crun-info -h -p main -o %D)" 0
is "a new partition is the default" "$(crun-info -h -o %P -p fresh)" "fresh*"
new=$(submit -H -- true)
is "and takes jobs" "$(job_field "$new" .partition)" fresh
is "who waits in a removed one is told" "$(reason "$waits")" PartitionDown
ok "what runs there goes on" job_is "$long" running
ok "the ledger agrees" selfcheck
like "the history has it" "$(crun-events --jsonl | tail -n +"$before")" '"reload"'
like "as text too" "$(crun-events)" 'reload'
crun-cancel "$long"
crun-wait "$long" 2>/dev/null
ok "a job of a partition whose place in the file changed starts" crun-wait "$free"
ok "the orphan still waits" job_is "$waits" pending
instance_restart crunctld >/dev/null 2>&1
ok "a restart changes nothing of that" wait_for 10 has_reason "$waits" PartitionDown
conf 'partition "gone" { }'
crun-ctl reload >/dev/null
ok "with the partition its jobs are back" crun-wait "$waits"
is "and run" "$(cat w.out)" "came back"
is "a held one stays held" "$(job_field "$held" .state)" pending
crun-ctl release "$held"
ok "and starts when released" crun-wait "$held"

# what needs a restart
conf "state_dir = \"$T/elsewhere\"" 'heartbeat = "1s"' 'plugin "gpu/fake" { options { count = 2 } }' 'partition "gone" { }'
is "what cannot change is named" "$(crun-ctl reload)" "the configuration is read again; needs a restart: state_dir, heartbeat, plugin sections"
is "and keeps its value" "$(setting heartbeat)" 5000ms
is "JSON says the same" "$(crun-ctl --json reload | jq -r .text)" "the configuration is read again; needs a restart: state_dir, heartbeat, plugin sections"

# SIGHUP, log level
conf 'kill_grace = 11' 'partition "gone" { }'
kill -HUP "$(daemon_pid crunctld)"
hup() { [ "$(setting kill_grace)" = 11 ]; }
ok "SIGHUP does it too" wait_for 10 hup
conf 'kill_grace ='
kill -HUP "$(daemon_pid crunctld)"
logged() { cat "$H"/log/crunctld.log "$H"/run/crunctld.log 2>/dev/null | grep -q "$1"; }
ok "a broken file is a line in the log" wait_for 10 logged 'error .*reload: .*crun.conf:'
ok "and the controller lives" crun-ctl ping
is "log-level" "$(crun-ctl log-level debug)" "the controller logs at level debug"
must_fail 1 'allowed: debug, info, warn, error' crun-ctl log-level loud
must_fail 2 'needs an argument' crun-ctl log-level

# a backup, and the way back
conf 'partition "gone" { }'
crun-ctl reload >/dev/null
kept=$(submit -H -- true)
mid=$(submit -o mid.out -- sh -c "echo x >>$T/mid.ran; while [ ! -e $T/go ]; do :; done")
wait_for 20 test -s mid.ran
wait_for 20 job_is "$mid" running
crun-ctl backup "$T/copy" >/dev/null
is "a backup is the data and the mark of its format" "$(ls "$T/copy" | tr '\n' ' ')" "data.mdb store.format "
touch go
is "a job that runs in the copy ends afterwards" "$(crun-wait "$mid"; job_field "$mid" .state)" completed
late=$(submit -o /dev/null -- sh -c "echo \$\$ >$T/late.pid; while :; do :; done")
wait_for 20 test -s late.pid
pid=$(daemon_pid crunctld)
crun-ctl shutdown >/dev/null
wait_gone 20 "$pid"
cp "$T/copy"/* "$H/state/"
must_fail 2 'next-id' crunctld -c "$H/crun.conf" --next-id=0
is "the copy takes the place of the state" "$(crunctld -c "$H/crun.conf" --daemonize --next-id=$((late + 100)) >/dev/null 2>&1; echo $?)" 0
is "what it knows is back" "$(job_field "$kept" .state)" pending
must_fail 1 "$late" crun-why "$late"
ok "what runs of a job accepted later is ended" wait_gone 30 "$(cat late.pid)"
crun-wait "$mid"
is "a job that the copy shows as running, and that has ended, runs again" "$(job_field "$mid" .state) $(wc -l <mid.ran)" "completed 2"
is "no id is handed out twice" "$(submit -H -- true)" $((late + 100))
ok "the ledger agrees with the restored state" selfcheck
instance_restart crunctld >/dev/null 2>&1
pid=$(daemon_pid crunctld)
crun-ctl shutdown >/dev/null
wait_gone 20 "$pid"
instance_restart crunctld >/dev/null 2>&1
is "nor after the next start without the option" "$(submit -H -- true)" $((late + 101))
