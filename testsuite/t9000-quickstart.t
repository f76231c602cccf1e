# contrib/quickstart behind its build: as this user and, when that is root, as an ordinary one too; a second
# run is quick and harmless; the instance is left running and can be stopped as the last line says.
. "${CRUN_SRCDIR:?}/testsuite/lib.sh"
plan 10
mkdir "$T/contrib"
cp -r "$CRUN_SRCDIR/contrib/examples" "$CRUN_SRCDIR/contrib/quickstart" "$T/contrib/"
cp -r "$CRUN_STAGE" "$T/inst"
chmod -R u+w,a+rX "$T/contrib" "$T/inst"
cd "$T" || exit 1

quickstart() { # HOME PREFIX ...: runs it there
    home=$1
    shift
    "$@" env -u CRUN_CONF -u CRUN_HOME HOME="$home" CRUN_BIN="$T/inst/bin" timeout 120 sh "$T/contrib/quickstart"
}
both() { # WHO HOME PREFIX ...
    who=$1 home=$2
    shift 2
    quickstart "$home" "$@" >first.out 2>&1
    is "$who: it runs to its end" "$?" 0
    like "$who: the result is pi" "$(cat first.out)" '^pi = 3\.14159[0-9]+$'
    start=$(date +%s)
    quickstart "$home" "$@" >second.out 2>&1
    is "$who: a second run finds the instance running" "$? $(grep -c 'runs already' second.out)" "0 2"
    ok "$who: and is quick" test $(($(date +%s) - start)) -le 20
    stop=$(sed -n 's/^stop it: *//p' second.out)
    like "$who: the line that says how to stop it is right" "$("$@" env HOME="$home" $stop)" 'crunctld stopped'
}
mkdir home
when_finished 'H=$T/home/.crun-wlm; t_stop_all; H=$T/home2/.crun-wlm; t_stop_all'
both "$(id -un)" "$T/home" env
if [ "$(id -u)" = 0 ] && id nobody >/dev/null 2>&1 && command -v setpriv >/dev/null; then
    mkdir home2 && chown nobody home2
    both "an ordinary user" "$T/home2" setpriv --reuid=nobody --regid="$(id -g nobody)" --clear-groups
else
    skip 5 "needs root to become an ordinary user"
fi
