# A shepherd whose journal is silent about a task and that then dies: the task's processes are killed and
# proven gone before its element runs again or its cores are given away.
. "${CRUN_SRCDIR:?}/testsuite/lib.sh"
plan 7
instance_start
cd "$T" || exit 1
cores=$(crun-info --json | jq '.nodes[0].cores')
shepherd() { pgrep -f "crun-shepherd .*$T" | head -n 1; }
# Writes when an attempt begins and ends; the first of two runs too long to end by itself in time.
job() { submit -n "$cores" -o /dev/null -- sh -c "echo \$CRUN_ATTEMPT begins >>'$T/$1'; [ \$CRUN_ATTEMPT = 2 ] || perl -e 'select undef, undef, undef, 8'; echo \$CRUN_ATTEMPT ends >>'$T/$1'"; }

id=$(job gone)
wait_for 20 job_is "$id" running
wait_for 20 test -s gone
first=$(job_field "$id" .attempt.pid)
rm "$H"/node/n1/shep/*.journal
kill -9 "$(shepherd)"
ok "without its journal: the job ends well" timeout 60 crun-wait "$id"
is "its first attempt was dead before the second began" "$(tr '\n' ' ' <gone)" "1 begins 2 begins 2 ends "
ok "no process of the first is left" gone "$first"

if [ "$(id -u)" = 0 ] && mkdir small && mount -t tmpfs -o size=1m none small 2>/dev/null; then
    when_finished "umount -l $T/small"
    crun-stop --dir="$H" >/dev/null
    sed -i "1i node_dir = \"$T/small/node\"" "$CRUN_CONF"
    crun-start --dir="$H" --node=n1 >/dev/null
    dd if=/dev/zero of=small/fill bs=1k 2>/dev/null
    # uses up what is left of the journal's last page
    timeout 60 crun-wait "$(submit -a 0-60 -o /dev/null -- true)"
    id=$(job full)
    wait_for 5 test -s full
    is "what cannot be written down is not started" "$(cat full 2>/dev/null)" ""
    rm small/fill
    kill -9 "$(shepherd)" 2>/dev/null
    timeout 5 crun-wait "$id"
    crun-cancel "$id"
    timeout 60 crun-wait "$id"
    crun-node resume n1 # launches that failed in a row have drained it
    ok "with space again, jobs run" timeout 60 crun-submit --wait -Q -o /dev/null -- true
else
    skip 2 "needs root to mount a small file system"
fi
ok "the ledger agrees" crun-ctl selfcheck
ok "and nothing is held" wait_for 20 sh -c 'test "$(crun-info --json | jq ".nodes[0].cores_used")" = 0'
