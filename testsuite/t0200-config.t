# Configuration errors: one line with file and line; -t checks and prints; origins are shown.
. "${CRUN_SRCDIR:?}/testsuite/lib.sh"
plan 16
cd "$T" || exit 1
conf() { printf '%s\n' "$@" >c.conf; }
conf 'cluster = "x"' 'kill_grace = 5'
ok "-t accepts a good file" crunctld -t -c c.conf
like "and shows values with their origin" "$(crunctld -t -c c.conf)" 'kill_grace = 5.*c.conf:2'
like "defaults too" "$(crunctld -t -c c.conf)" 'heartbeat = .*default'
conf 'cluster = "x"' 'kil_grace = 5'
must_fail 1 '^crunctld: .*c.conf:2: .*kil_grace.*kill_grace' crunctld -t -c c.conf
conf 'kill_grace = "soon"'
must_fail 1 'c.conf:1: .*kill_grace' crunctld -t -c c.conf
conf 'kill_grace = 99999999999999999999'
must_fail 1 'c.conf:1: .*kill_grace' crunctld -t -c c.conf
conf 'partition "a" {' '  max_time = "1h"'
must_fail 1 'c.conf:[12]: .*brace' crunctld -t -c c.conf
conf 'partition "a" {' '}' 'partition "a" {' '}'
must_fail 1 'c.conf:3: .*"?a"?.*twice|c.conf:3: ' crunctld -t -c c.conf
conf 'partition "a" { default = true }' 'partition "b" { default = true }'
must_fail 1 'c.conf:2: .*default' crunctld -t -c c.conf
conf 'partition "a" { nodes = "n[3-1]" }'
must_fail 1 'c.conf:1: .*n\[3-1' crunctld -t -c c.conf
conf 'partition "a" { max_time = "long" }'
must_fail 1 'c.conf:1: .*max_time.*long' crunctld -t -c c.conf
conf 'kill_grace = 5' 'kill_grace = 6'
must_fail 1 'c.conf:2: .*kill_grace' crunctld -t -c c.conf
must_fail 1 'nowhere.conf: No such file' crunctld -t -c nowhere.conf
conf 'log_level = "loud"'
must_fail 1 'c.conf:1: .*log_level.*error.*debug' crunctld -t -c c.conf
conf 'plugin "gpu/fake" { required = true' '  options { cuont = 4 }' '}' "plugin_path = \"$LIBEXEC/plugins\""
must_fail 1 'c.conf:[23]: .*cuont' crund -c c.conf -N n1
must_fail 1 'No such file|configuration' env HOME="$T" crun-queue --conf "$T/none.conf"
