# How daemons come up: in the background, as units of systemd, and with one clear line when they cannot.
. "${CRUN_SRCDIR:?}/testsuite/lib.sh"
plan 16
SYNTHETIC='pack:1 numa:1 core:4 pu:1'
instance_start
cd "$T" || exit 1

# the background
crund -c "$H/crun.conf" -N n2 --synthetic "$SYNTHETIC" --daemonize >/dev/null 2>&1
is "crund --daemonize comes back once it is welcome" $? 0
idle() { [ "$(crun-info -h -N -n "$1" -o %t)" = idle ]; }
ok "its node registers and is up" wait_for 20 idle n2
ok "its process runs on" kill -0 "$(daemon_pid crund n2)"
pid=$(daemon_pid crund n2)
kill "$pid"
ok "and stops" wait_gone 20 "$pid"
crund -c "$H/crun.conf" -N n1 --synthetic "$SYNTHETIC" --daemonize >/dev/null 2>err
is "it says in the foreground when it cannot" "$? $(grep -c 'in use' err)" "1 1"

# start-up errors of the controller: one line, exit code 1
must_fail 1 'crunctld: .*state.*(pid [0-9]+|in use)' crunctld -c "$H/crun.conf"
other() { # NAME LINE ...: another configuration, in its own folder
    mkdir -p "$T/$1"
    # what it loads it tells first, at the level info
    printf '%s\n' 'log_level = "error"' "$2" "$3" >"$T/$1/crun.conf"
}
other key 'cluster = "x"' ''
head -c 32 /dev/zero >key/key
chmod 644 key/key
must_fail 1 'cluster key .*/key/key: .*mode 0600' crunctld -c key/crun.conf
other short 'cluster = "x"' ''
(umask 077; echo abc >short/key)
must_fail 1 'cluster key .*/short/key: it has 4 bytes, 32 are wanted' crunctld -c short/crun.conf
other foreign 'cluster = "x"' ''
mkdir -p foreign/state
echo "not a database" >foreign/state/data.mdb
must_fail 1 'crunctld: .*foreign/state' crunctld -c foreign/crun.conf
other port 'cluster = "x"' 'client_listen = "tcp://127.0.0.1:0"'
port=$(perl -MIO::Socket::INET -e '$| = 1; $s = IO::Socket::INET->new(Listen => 1, LocalAddr => "127.0.0.1") or exit 1; open F, ">", "port.pid"; print F $$; close F; open F, ">", "port.new"; print F $s->sockport; close F; rename "port.new", "port.no"; close STDOUT; close STDERR; $s->accept' </dev/null >/dev/null 2>&1 & wait_for 10 test -s port.no; cat port.no)
other port 'cluster = "x"' "client_listen = \"tcp://127.0.0.1:$port\""
must_fail 1 "127.0.0.1:$port: .*in use" crunctld -c port/crun.conf
kill "$(cat port.pid)"
must_fail 1 "no-such.conf: .*No such file" crunctld -c no-such.conf

# units
units=$CRUN_BUILDDIR/contrib/systemd
sbin=$(sed -n 's|^ExecStart=\(/.*\)/crunctld.*|\1|p' "$units/crunctld.service")
ok "units name the installed daemons" test -n "$sbin"
for u in crunctld crund; do
    if command -v systemd-analyze >/dev/null 2>&1; then
        mkdir -p units
        sed "s|=$sbin/|=$CRUN_STAGE/sbin/|" "$units/$u.service" >"units/$u.service"
        systemd-analyze verify --man=no "units/$u.service" >verify.out 2>&1
        t_rc=$?
        is "systemd takes $u.service" "$t_rc $(grep "$u.service" verify.out)" "0 "
    else
        skip 1 "systemd-analyze is not here"
    fi
done
install_to() { make -s -C "$CRUN_BUILDDIR" cw_install_units "systemdsystemunitdir=$1" DESTDIR="$T/root" >make.out 2>&1; }
ok "no unit is installed where no folder was given" sh -c '! find "$0" -name "*.service" | grep .' "$CRUN_STAGE"
install_to /lib/systemd/system
is "and both where one was" "$(ls root/lib/systemd/system | tr '\n' ' ')" "crunctld.service crund.service "
