# What people read is there and true: README in each folder, man pages that lint, names that exist.
. "${CRUN_SRCDIR:?}/testsuite/lib.sh"
plan 7
cd "$CRUN_SRCDIR" || exit 1

readmes() {
    for d in src/*/ plugins/*/*/; do
        case $d in plugins/test/*) continue ;; esac
        [ -e "$d/README" ] || { echo "$d has no README"; return 1; }
        [ "$(wc -l <"$d/README")" -le 15 ] || { echo "$d/README is longer than 15 lines"; return 1; }
    done
}
ok "each source folder has a README of at most 15 lines" readmes

map() { # `file:name` in doc/MAP.md: the file is there and the name stands in it
    grep -o '`[a-z][a-zA-Z0-9_/.-]*\(:[a-zA-Z0-9_-]*\)*`' doc/MAP.md | tr -d '`' | sort -u >"$T/refs"
    [ "$(wc -l <"$T/refs")" -ge 20 ] || { echo "doc/MAP.md names too little"; return 1; }
    bad=0
    while IFS=: read -r file name; do
        case $file in */*) ;; *) continue ;; esac
        [ -e "$file" ] || { echo "doc/MAP.md: $file is not there"; bad=1; continue; }
        [ -z "$name" ] || grep -q -- "$name" "$file" || { echo "doc/MAP.md: $name is not in $file"; bad=1; }
    done <"$T/refs"
    for t in testsuite/t*.t; do # no test is left out
        grep -q -- "\`$t\`" doc/MAP.md || { echo "doc/MAP.md does not name $t"; bad=1; }
    done
    return $bad
}
ok "every place that doc/MAP.md names exists" map

lint() {
    out=$(mandoc -Tlint -Wwarning doc/man/*.[1-9] 2>&1 | grep -v 'referenced manual not found' || true)
    [ -z "$out" ] || { echo "$out"; return 1; }
}
if command -v mandoc >/dev/null; then ok "man pages lint" lint; else skip 1 "needs mandoc"; fi

pages() {
    for c in "$CRUN_STAGE"/bin/crun-* "$CRUN_STAGE"/sbin/crun*; do
        n=$(basename "$c")
        ls doc/man/"$n".[1-8] >/dev/null 2>&1 || { echo "$n has no man page"; return 1; }
    done
}
ok "every command and daemon has a man page" pages

options() { # each long option that --help shows is in the man page
    bad=0
    for c in submit queue why cancel wait logs acct info node ctl events diag prio stat run exec alloc attach start stop; do
        for o in $("$CRUN_STAGE/bin/crun-$c" --help | grep -o -- '--[a-z][a-z0-9-]*' | sort -u); do
            grep -Eq -- "Fl ${o#-}( |\$)" "doc/man/crun-$c.1" || { echo "crun-$c.1 lacks $o"; bad=1; }
        done
    done
    return $bad
}
ok "man pages know every option that --help shows" options

crash() { # crash points in the code and in doc/HACKING.md agree
    grep -rhoE --include='*.c' --exclude='*_test.c' 'cw_crashpoint(_fail)?\("[^"]+"\)' src | grep -o '"[^"]*"' | tr -d '"' | sort -u >"$T/a"
    while read -r p; do
        grep -q -- "\`$p\`" doc/HACKING.md || { echo "doc/HACKING.md lacks crash point $p"; return 1; }
    done <"$T/a"
}
ok "doc/HACKING.md lists every crash point" crash

settings() { # each setting that the checker prints is in the man page
    printf 'partition "p" {\n}\nplugin "gpu/fake" {\n}\n' >"$T/c.conf"
    crunctld -t -c "$T/c.conf" | sed 's/ = .*//; s/.*\.//' | sort -u >"$T/names"
    [ "$(wc -l <"$T/names")" -ge 30 ] || { echo "crunctld -t prints too little"; return 1; }
    bad=0
    while read -r n; do
        grep -q "^\.It Ic $n No = " doc/man/crun.conf.5 || { echo "crun.conf.5 lacks $n"; bad=1; }
    done <"$T/names"
    return $bad
}
ok "crun.conf.5 has every setting" settings
