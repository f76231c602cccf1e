# Library of the end-to-end tests (sourced by testsuite/t*.t). TAP on standard output, diagnostics as
# comments. Each test gets a folder of its own, and all that it started ends with it.
#
#   plan N                     how many results follow
#   ok TEXT CMD ...            one result: CMD succeeds
#   is TEXT GOT WANT           one result: the texts are equal
#   like TEXT GOT PATTERN      one result: GOT contains PATTERN (extended regular expression)
#   must_fail CODE PATTERN CMD ...   one result: exit code CODE and a message that matches, one line
#   skip_all REASON            the whole file needs what this machine lacks
#   skip N REASON              N results need what this machine lacks
#   wait_gone SECONDS PID      until that process has ended
#   wait_for SECONDS CMD ...   repeats CMD until it succeeds (woken by time, with a deadline)
#   when_finished CMD          runs CMD at the end, in reverse order
#   instance_start [CONFLINE ...]    a private instance (real cores of this machine)
#   cluster_start N [CONFLINE ...]   a controller and N nodes n1..nN, each in a network namespace
#   on_head CMD ...            runs CMD where the controller is
#   daemon_pid crunctld | crund NAME ;  daemon_kill9 ... ; daemon_restart ...

set -u
: "${CRUN_STAGE:?}" "${CRUN_SRCDIR:?}" "${CRUN_BUILDDIR:?}"
PATH=$CRUN_STAGE/bin:$CRUN_STAGE/sbin:$PATH
LIBEXEC=$CRUN_STAGE/lib/crun-wlm
unset CRUN_CONF CRUN_HOME CRUN_FAULT CRUN_JOB_ID 2>/dev/null || true
T=$(mktemp -d "${TMPDIR:-/tmp}/crun-test.XXXXXX") || exit 1
chmod 755 "$T"
t_n=0
t_bad=0
t_finish=:
NS=

plan() { echo "1..$1"; }
diag() { printf '%s\n' "$*" | sed 's/^/# /'; }
result() { # 0|1 TEXT
    t_n=$((t_n + 1))
    if [ "$1" = 0 ]; then
        echo "ok $t_n - $2"
    else
        t_bad=$((t_bad + 1))
        echo "not ok $t_n - $2"
    fi
}
ok() {
    t_text=$1
    shift
    if "$@" >"$T/.out" 2>&1; then
        result 0 "$t_text"
    else
        t_rc=$?
        result 1 "$t_text"
        diag "exit code $t_rc of: $*"
        diag "$(head -n 20 "$T/.out")"
    fi
}
is() {
    if [ "$2" = "$3" ]; then result 0 "$1"; else
        result 1 "$1"
        diag "got:  $2"
        diag "want: $3"
    fi
}
like() {
    if printf '%s\n' "$2" | grep -Eq -- "$3"; then result 0 "$1"; else
        result 1 "$1"
        diag "got:  $(printf '%s\n' "$2" | head -n 20)"
        diag "want: $3"
    fi
}
must_fail() {
    t_code=$1 t_pat=$2
    shift 2
    "$@" >"$T/.out" 2>"$T/.err" </dev/null
    t_rc=$?
    if [ "$t_rc" = "$t_code" ] && grep -Eq -- "$t_pat" "$T/.err" && [ "$(wc -l <"$T/.err")" = 1 ]; then
        result 0 "refused with $t_code: $*"
    else
        result 1 "refused with $t_code: $*"
        diag "exit code $t_rc, message: $(head -c 1000 "$T/.err")"
        diag "want one line: $t_pat"
    fi
}
skip() {
    t_k=0
    while [ "$t_k" -lt "$1" ]; do
        t_n=$((t_n + 1))
        t_k=$((t_k + 1))
        echo "ok $t_n # SKIP $2"
    done
}
skip_all() {
    echo "1..0 # SKIP $1"
    t_bad=0
    exit 0
}
wait_for() {
    t_end=$(($(date +%s) + $1))
    shift
    until "$@" >/dev/null 2>&1; do
        [ "$(date +%s)" -lt "$t_end" ] || return 1
        # a shell has no event to wait on here: look again after 20 ms, with the deadline above
        perl -e 'select undef, undef, undef, 0.02'
    done
}
# A process that only waits to be reaped is gone too: its memory, locks and sockets are.
gone() { [ -z "$(readlink "/proc/$1/exe" 2>/dev/null)" ]; }
wait_gone() { wait_for "$1" gone "$2"; } # SECONDS PID
when_finished() { t_finish="$1; $t_finish"; }

t_end_of_test() {
    t_rc=$?
    trap - EXIT INT TERM
    eval "$t_finish"
    if [ "$t_bad" != 0 ] || [ "$t_rc" != 0 ]; then
        for f in "$T"/*/log/*.log; do
            [ -s "$f" ] && { diag "-- $(basename "$f")"; diag "$(tail -n 15 "$f")"; }
        done
    fi
    # A test that leaves the folder to look at: CRUN_TEST_KEEP=1
    [ -n "${CRUN_TEST_KEEP:-}" ] && diag "kept $T" || rm -rf "$T"
    [ "$t_bad" = 0 ] && [ "$t_rc" = 0 ]
    exit $?
}
trap t_end_of_test EXIT
trap 'exit 1' INT TERM

on_head() { if [ -n "$NS" ]; then ip netns exec "$NS" "$@"; else "$@"; fi; }

# ---- daemons -----------------------------------------------------------------------------------
t_pidfile() { # crunctld | crund NAME
    if [ "$1" = crunctld ]; then echo "$H/run/crunctld.pid"; else echo "$H/run/crund.$2.pid"; fi
}
daemon_pid() { cat "$(t_pidfile "$@")"; }
daemon_kill9() {
    t_pid=$(daemon_pid "$@")
    kill -9 "$t_pid" 2>/dev/null
    wait_gone 20 "$t_pid"
}
# All processes below this test's folder: daemons and shepherds, by the ids in their own files.
t_stop_all() {
    for f in "$H"/run/*.pid; do
        [ -e "$f" ] && kill -9 "$(cat "$f")" 2>/dev/null
    done
    # shepherds outlive the daemons on purpose: find them by the folder in their command line
    for p in /proc/[0-9]*; do
        case $({ tr '\0' ' ' <"$p/cmdline"; } 2>/dev/null) in
        *crun-shepherd*"$T"*) kill -9 "${p#/proc/}" 2>/dev/null ;;
        esac
    done
}

instance_start() {
    H=$T/i
    mkdir -p "$H"
    { echo 'cluster = "test"'; echo 'allow_root_jobs = true'; printf '%s\n' "$@"; } >"$H/crun.conf"
    export CRUN_CONF="$H/crun.conf"
    when_finished t_stop_all
    crun-start --dir="$H" --node=n1 ${SYNTHETIC:+--synthetic="$SYNTHETIC"} >"$T/start.out" 2>&1 || {
        diag "$(cat "$T/start.out")"
        echo "Bail out! the instance does not start"
        exit 1
    }
}
instance_restart() { # crunctld | crund NAME
    if [ "$1" = crunctld ]; then
        on_head crun-start --dir="$H" --controller-only
    else
        t_node_start "$2"
    fi
}

# ---- several nodes -------------------------------------------------------------------------------
# One namespace for the controller with a bridge, one per node with a veth pair into it.
need_netns() {
    [ "$(id -u)" = 0 ] || skip_all "needs root for network namespaces"
    command -v ip >/dev/null || skip_all "needs ip (iproute2)"
    ip netns add "cwt$$" 2>/dev/null || skip_all "this kernel or container lets nobody make network namespaces"
    ip netns del "cwt$$"
}
t_ns_add() {
    ip netns add "$1" || exit 1
    when_finished "ip netns del $1 2>/dev/null"
    ip -n "$1" link set lo up
}
t_link_node() { # NAME NUMBER
    ip -n "$NS" link add "v$2" type veth peer name eth0 netns "$NS-$1" &&
        ip -n "$NS" link set "v$2" master br0 up &&
        ip -n "$NS-$1" addr add "10.213.0.$(($2 + 1))/24" dev eth0 &&
        ip -n "$NS-$1" link set eth0 up
}
t_node_start() { # NAME
    t_topo=${SYNTHETIC:-pack:2 numa:1 core:4 pu:2}
    if [ -n "$NS" ]; then
        ip netns exec "$NS-$1" crun-start --dir="$H" --node="$1" --node-only --synthetic="$t_topo"
    else
        crun-start --dir="$H" --node="$1" --node-only --synthetic="$t_topo"
    fi
}
cluster_start() {
    t_count=$1
    shift
    H=$T/c
    NS=cw$$
    mkdir -p "$H"
    {
        echo 'cluster = "test"'
        echo 'allow_root_jobs = true'
        echo 'heartbeat = 500ms'
        echo 'node_listen = "tcp://10.213.0.1:7710"'
        printf '%s\n' "$@"
    } >"$H/crun.conf"
    export CRUN_CONF="$H/crun.conf"
    t_ns_add "$NS"
    ip -n "$NS" link add br0 type bridge && ip -n "$NS" addr add 10.213.0.1/24 dev br0 &&
        ip -n "$NS" link set br0 up || exit 1
    when_finished t_stop_all
    on_head crun-start --dir="$H" --controller-only >"$T/start.out" 2>&1 || {
        diag "$(cat "$T/start.out")"
        echo "Bail out! the controller does not start"
        exit 1
    }
    t_i=1
    while [ "$t_i" -le "$t_count" ]; do
        t_ns_add "$NS-n$t_i"
        t_link_node "n$t_i" "$t_i" || exit 1
        t_node_start "n$t_i" >"$T/start.out" 2>&1 || {
            diag "$(cat "$T/start.out")"
            echo "Bail out! node n$t_i does not start"
            exit 1
        }
        t_i=$((t_i + 1))
    done
}
node_cut() { ip -n "$NS" link set "v${1#n}" down; }
node_join() { ip -n "$NS" link set "v${1#n}" up; }

# ---- jobs ---------------------------------------------------------------------------------------------
job_json() { on_head crun-ctl show job "$1"; }
job_field() { # ID PATH: a field of its JSON, e.g. .state or .attempt.node; "null" when absent
    job_json "$1" 2>/dev/null | jq -r ".jobs[0]$2"
}
job_is() { [ "$(job_field "$1" .state)" = "$2" ]; }
# submit ARG ...: submits and prints the id
submit() { on_head crun-submit --parsable "$@"; }
