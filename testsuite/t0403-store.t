# The state directory: one daemon on it, a full disk, damage, backup.
. "${CRUN_SRCDIR:?}/testsuite/lib.sh"
plan 10
instance_start 'disk_reserve = "1M"'
cd "$T" || exit 1
must_fail 1 "crunctld: .*state.*(pid $(daemon_pid crunctld)|in use).*" crunctld -c "$CRUN_CONF"
must_fail 1 "crund: .*(pid $(daemon_pid crund n1)|in use).*" crund -c "$CRUN_CONF" -N n1
id=$(submit -o /dev/null -- true)
crun-wait "$id"
ok "crun-ctl backup writes a copy" crun-ctl backup "$T/backup"
ok "it holds the state" test -s "$T/backup/data.mdb"
crun-stop --dir="$H" >/dev/null
rm -rf "$H/state.old"
mkdir "$T/restored"
cp "$H"/state/*key* "$T/restored/" 2>/dev/null
cp "$T/backup/data.mdb" "$T/restored/"
mv "$H/state" "$H/state.old" && mv "$T/restored" "$H/state"
crun-start --dir="$H" --node=n1 >/dev/null
is "a controller started on the copy knows the job" "$(job_field "$id" .state)" completed
if [ "$(id -u)" = 0 ] && mkdir small && mount -t tmpfs -o size=24m none small 2>/dev/null; then
    when_finished "umount -l $T/small"
    crun-stop --dir="$H" >/dev/null
    sed -i "1i state_dir = \"$T/small/state\"" "$CRUN_CONF"
    crun-start --dir="$H" --node=n1 >/dev/null
    kept=$(submit -H -- true)
    head -c 40000000 /dev/zero >small/fill 2>/dev/null
    must_fail 1 'state directory.*small.*(free|reserve)' crun-submit -- true
    is "what was accepted is still known" "$(job_field "$kept" .state)" pending
    rm small/fill
    ok "with space again, work is accepted" wait_for 20 crun-submit -Q -- true
    ok "and nothing was half kept" sh -c 'test "$(crun-queue -ah | wc -l)" -ge 2 && crun-ctl selfcheck'
else
    skip 4 "needs root to mount a small file system"
fi
crun-stop --dir="$H" >/dev/null
state=$(sed -n 's/^state_dir = "\(.*\)"/\1/p' "$CRUN_CONF")
state=${state:-$H/state}
head -c 8192 /dev/urandom >"$state/data.mdb"
must_fail 1 'crunctld: .*data.mdb.*' crunctld -c "$CRUN_CONF"
