# Who may do what: jobs under their own user, others' jobs untouched, root refused by default.
. "${CRUN_SRCDIR:?}/testsuite/lib.sh"
[ "$(id -u)" = 0 ] || skip_all "needs root to become other users"
id nobody >/dev/null 2>&1 || skip_all "needs the user nobody"
plan 22
command -v setpriv >/dev/null || skip_all "needs setpriv (util-linux)"
H=$T/i
mkdir -p "$H"
chmod 755 "$T" "$H"
port=$((20000 + $$ % 20000))
instance_start 'admins = "daemon"' "client_listen = \"tcp://127.0.0.1:$port\"" "session_listen = \"tcp://127.0.0.1:$((port + 1))\""
chmod 755 "$H" "$H/run"
chmod 644 "$H/crun.conf"
cd "$T" || exit 1
as() { # USER CMD ...
    u=$1
    shift
    setpriv --reuid="$(id -u "$u")" --regid="$(id -g "$u")" --init-groups env HOME=/ "$@"
}
mkdir -m 777 out
id=$(as nobody crun-submit --parsable -D "$T/out" -o n.out -- sh -c 'id -u; id -g; id -G; echo $CRUN_USER')
like "another user may submit" "$id" '^[0-9]+$'
as nobody crun-wait "$id"
is "the job runs as that user, with its group" "$(head -n 2 out/n.out | tr '\n' ' ')" "$(id -u nobody) $(id -g nobody) "
is "and its supplementary groups" "$(sed -n 3p out/n.out)" "$(id -G nobody)"
is "the output file belongs to the user" "$(stat -c %U out/n.out)" nobody
mkdir -m 700 private
id=$(as nobody crun-submit --parsable -D "$T/out" -o "$T/private/x" -- true)
as nobody crun-wait "$id"
like "a path that the user may not open is refused as the user" "$(job_field "$id" .attempt.message)" 'private.*Permission denied'
ok "and not made" test ! -e private/x
root=$(submit -H -- true)
must_fail 1 "$root" as nobody crun-cancel "$root"
is "another's job is not cancelled" "$(job_field "$root" .state)" pending
must_fail 1 "$root" as nobody crun-logs "$root"
must_fail 1 'admin|permitted' as nobody crun-node drain n1 --reason=x
ok "an admin of the configuration may" as daemon crun-node drain n1 --reason=x
mine=$(as nobody crun-submit --parsable -H -D "$T/out" -- true)
ok "one's own job may be cancelled" as nobody crun-cancel "$mine"
crun-node resume n1
is "a user sees the events of own jobs only, and none of nodes" "$(as nobody crun-events --jsonl | jq -r '[.node, .job_id] | if .[1] == null then "node" else .[1] end' | sort -un | tr '\n' ' ')" "$(as nobody crun-acct -P -n -S 1h -o JobIDRaw | sort -un | tr '\n' ' ')"
must_fail 1 "job $root does not exist" as nobody crun-events "$root"
ok "an administrator sees all" sh -c "crun-events -k node-drain | grep -q drain && crun-events -j $mine | grep -q submit"
id=$(as nobody crun-submit --parsable -D "$T/out" -i /proc/self/maps -o m.out -- cat)
as nobody crun-wait "$id"
like "a file of /proc would be the shepherd's: refused" "$(job_field "$id" .attempt.message)" '/proc/self/maps: Permission denied'
id=$(as nobody crun-submit --parsable -D "$T/out" -i /dev/stdin -o m.out -- cat)
as nobody crun-wait "$id"
like "and so is a link into it" "$(job_field "$id" .attempt.message)" '/dev/stdin: (Too many levels|Permission denied)'
id=$(as nobody crun-submit --parsable -t 1 -D "$T/out" -o u.out -- sleep 300)
wait_for 20 job_is "$id" running
must_fail 1 'administrators may raise' as nobody crun-ctl update "$id" time=500
must_fail 1 'administrators may raise' as nobody crun-ctl update "$id" time=
as nobody crun-cancel "$id"
# One user knocks at the door without end; another still gets in.
as nobody perl -MIO::Socket::UNIX -MSocket -e 'for (1 .. 600) { push @s, IO::Socket::UNIX->new(Type => SOCK_SEQPACKET, Peer => shift @{[@ARGV]}, Blocking => 0) } print "full\n"; close STDOUT; select undef, undef, undef, 8' "$H/run/door.sock" >flood.out &
flood=$!
wait_for 20 grep -q full flood.out
ok "a user that floods the door does not keep others out" timeout 20 setpriv --reuid="$(id -u daemon)" --regid="$(id -g daemon)" --init-groups env HOME=/ crun-ctl ping
kill "$flood"
mkdir -m 755 own
printf 'allow_root_jobs = true\n' >own/crun.conf
crun-start --dir="$T/own" --node=own >/dev/null 2>&1
chmod 755 own/run; chmod 644 own/crun.conf
must_fail 1 'Permission denied: an ipc socket is its owner' as nobody crun-queue --conf "$T/own/crun.conf"
crun-stop --dir="$T/own" >/dev/null
sed -i 's/allow_root_jobs = true/allow_root_jobs = false/' "$CRUN_CONF"
crun-stop --dir="$H" >/dev/null && crun-start --dir="$H" --node=n1 >/dev/null
must_fail 1 'root' crun-submit -- true
