# An instance whose users and nodes are proved by a real munged, without the key at the commands.
. "${CRUN_SRCDIR:?}/testsuite/lib.sh"
[ "$(id -u)" = 0 ] || skip_all "needs root to become other users"
munged=$(command -v munged || echo /usr/sbin/munged)
[ -x "$munged" ] || skip_all "needs munged (package munge)"
[ -e "$LIBEXEC/plugins/auth-munge.so" ] || skip_all "built without libmunge"
command -v setpriv >/dev/null || skip_all "needs setpriv (util-linux)"
plan 10
H=$T/i
mkdir -p "$H" "$T/munge"
chmod 755 "$T" "$H" "$T/munge"
dd if=/dev/urandom of="$T/munge/key" bs=64 count=1 2>/dev/null
chmod 600 "$T/munge/key"
munge_start() {
    "$munged" --force --foreground --key-file="$T/munge/key" --pid-file="$T/munge/pid" --log-file="$T/munge/log" \
        --seed-file="$T/munge/seed" --socket="$T/munge/socket" >"$T/munge/out" 2>&1 &
    munge_pid=$!
    wait_for 20 test -S "$T/munge/socket"
}
munge_start
port=$((20000 + $$ % 20000))
instance_start 'auth = "munge"' "plugin \"auth/munge\" { options { socket = \"$T/munge/socket\" } }" \
    "client_listen = \"tcp://127.0.0.1:$port\"" "session_listen = \"tcp://127.0.0.1:$((port + 1))\""
chmod 755 "$H" "$H/run"
chmod 644 "$H/crun.conf"
is "a node proves itself with munge" "$(crun-info -h | awk '{ print $NF }')" n1
ok "there is no door" test ! -e "$H/run/door.sock"
as() { # USER CMD ...
    u=$1
    shift
    setpriv --reuid="$(id -u "$u")" --regid="$(id -g "$u")" --init-groups env HOME=/ "$@"
}
mkdir -m 777 "$T/out"
cd "$T/out" || exit 1
id=$(as nobody crun-submit --parsable -o n.out -- id -u)
as nobody crun-wait "$id"
is "a user's job runs as munge says" "$(cat n.out)" "$(id -u nobody)"
root=$(submit -H -- true)
must_fail 1 "$root" as nobody crun-cancel "$root"
ok "the log goes through the node with a ticket" test "$(as nobody crun-logs "$id")" = "$(id -u nobody)"
kill "$munge_pid"
wait "$munge_pid" 2>/dev/null
rm -f "$T/munge/socket"
must_fail 240 munge as nobody env CRUN_TIMEOUT=2 crun-queue
munge_start
ok "and when munged is back, all goes on" as nobody crun-queue
sed 's/^auth = .*/auth = "key"/' "$CRUN_CONF" >"$H/other.conf"
must_fail 1 'not one of munge' env CRUN_TIMEOUT=5 crun-queue --conf "$H/other.conf"
daemon_kill9 crunctld
instance_restart crunctld
is "jobs are there after a restart of the controller" "$(job_field "$root" .state)" pending
id=$(as nobody crun-submit --parsable -o n.out -- true)
ok "the node came back with a fresh credential" as nobody crun-wait "$id"
kill "$munge_pid"
wait "$munge_pid" 2>/dev/null
