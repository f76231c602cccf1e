# The structure that src/LAYERS fixes: who includes whom, no circles, one name for one file.
. "${CRUN_SRCDIR:?}/testsuite/lib.sh"
plan 5
cd "$CRUN_SRCDIR" || exit 1

check() { perl "$CRUN_SRCDIR/testsuite/structure.pl" "$@"; }
ok "no folder includes a folder that src/LAYERS does not allow" check layers
ok "no unit includes itself through others" check circles
ok "no two source files share a name" check names
ok "no banned call in src and plugins" check calls

headers() {
    for lang in c c++; do
        for h in include/crunwlm/*.h; do
            std=c11
            [ "$lang" = c++ ] && std=c++17
            printf '#include <%s>\n' "${h#include/}" |
                "$([ "$lang" = c ] && echo cc || echo g++)" -x "$lang" -std="$std" -Wall -Wextra -pedantic -Werror \
                    -fsyntax-only -Iinclude - || return 1
        done
    done
}
ok "each public header compiles alone as C11 and as C++17" headers
