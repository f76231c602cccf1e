# contrib/plugin-template builds out of tree from installed headers only, loads, and works in a job.
. "${CRUN_SRCDIR:?}/testsuite/lib.sh"
plan 3
cp -r "$CRUN_SRCDIR/contrib/plugin-template" "$T/template"
chmod -R u+w "$T/template"
ok "it builds with nothing but the installed headers" make -C "$T/template" INCLUDES="-I$CRUN_STAGE/include"
so=$(ls "$T"/template/*.so)
plug=$(basename "$so" .so)
mkdir "$T/plugins"
cp "$LIBEXEC"/plugins/*.so "$so" "$T/plugins/"
chmod 755 "$T/plugins"
instance_start "plugin_path = \"$T/plugins\"" "plugin \"${plug%%-*}/${plug#*-}\" { required = true }"
cd "$T" || exit 1
ok "an instance starts with it as a required plugin" crun-ctl ping
case $plug in
isolation-*) ok "a job runs in it" crun-submit --wait -Q --isolation="${plug#isolation-}" -o /dev/null -- true ;;
*) ok "a job runs beside it" crun-submit --wait -Q -o /dev/null -- true ;;
esac
