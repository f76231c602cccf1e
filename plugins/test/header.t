# The public header compiles alone, as strict C11 and as C++, and a C++ plugin can be made with it.
header=${CRUN_SRCDIR:?}/include
echo "1..3"
t=$(mktemp -d) || exit 1
trap 'rm -rf "$t"' EXIT
try() { # NUMBER NAME COMMAND...
    n=$1 name=$2
    shift 2
    if "$@" >"$t/log" 2>&1; then echo "ok $n - $name"; else echo "not ok $n - $name"; sed 's/^/# /' "$t/log"; fi
}
echo '#include <crunwlm/plugin.h>' >"$t/alone.c"
cat >"$t/plugin.cc" <<'C'
#include <crunwlm/plugin.h>
static int64_t priority(void *, const cw_sched_job *job) { return -static_cast<int64_t>(job->cores); }
static const cw_sched_ops ops = {priority};
const struct cw_plugin cw_plugin = {
    CW_PLUGIN_MAGIC, sizeof(struct cw_plugin), CW_PLUGIN_ABI_MAJOR, CW_PLUGIN_ABI_MINOR, "sched", "narrow", "1.0",
    0, nullptr, nullptr, nullptr, nullptr, &ops, sizeof(ops)};
C
warn="-Wall -Wextra -Wshadow -Wconversion -pedantic -Werror -fsyntax-only -I$header"
try 1 "plugin.h is clean C11 on its own" ${CC:-cc} -std=c11 $warn "$t/alone.c"
if command -v "${CXX:-c++}" >"$t/log"; then
    try 2 "plugin.h is clean C++ on its own" ${CXX:-c++} -x c++ -std=c++11 $warn "$t/alone.c"
    try 3 "a plugin can be written in C++" ${CXX:-c++} -std=c++11 $warn "$t/plugin.cc"
else
    echo "ok 2 - plugin.h is clean C++ on its own # SKIP no C++ compiler"
    echo "ok 3 - a plugin can be written in C++ # SKIP no C++ compiler"
fi
