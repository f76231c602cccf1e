# The plugin host through the real daemons: loads, refuses with the true reason, an outside plugin.
. "${CRUN_SRCDIR:?}/testsuite/lib.sh"
plan 8
cd "$T" || exit 1
mkdir conf plugins
cp "$LIBEXEC"/plugins/*.so plugins/
base='cluster = "x"
allow_root_jobs = true'
try() { # CONFLINES: starts a node daemon alone and gives its error
    { printf '%s\n' "$base" "plugin_path = \"$T/plugins\""; printf '%s\n' "$1"; } >conf/c.conf
}
try 'plugin "gpu/none-such" { required = true }'
must_fail 1 'plugin gpu/none-such: .*No such file|plugin gpu/none-such: .*not (found|there)' crund -c conf/c.conf -N n1
printf 'garbage' >plugins/gpu-garbage.so
try 'plugin "gpu/garbage" { required = true }'
must_fail 1 'plugin gpu/garbage: .*gpu-garbage.so: (file too short|invalid ELF header)' crund -c conf/c.conf -N n1
cat >missing.c <<'C'
#include <crunwlm/plugin.h>
extern int nobody_has_this(void);
static int count(void *c, struct cw_plugin_err *e) { (void)c; (void)e; return nobody_has_this(); }
static const struct cw_gpu_ops ops = {.count = count};
const struct cw_plugin cw_plugin = {.magic = CW_PLUGIN_MAGIC, .size = sizeof(cw_plugin), .abi_major = 1,
    .family = "gpu", .name = "missing", .version = "1", .ops = &ops, .ops_size = sizeof(ops)};
C
ok "a plugin builds from the installed header alone" cc -shared -fPIC -I"$CRUN_STAGE/include" -o plugins/gpu-missing.so missing.c
try 'plugin "gpu/missing" { required = true }'
must_fail 1 'plugin gpu/missing: .*undefined symbol: nobody_has_this' crund -c conf/c.conf -N n1
cp plugins/gpu-fake.so plugins/gpu-wide.so && chmod 666 plugins/gpu-wide.so
try 'plugin "gpu/wide" { required = true }'
must_fail 1 'plugin gpu/wide: .*writ' crund -c conf/c.conf -N n1
chmod 644 plugins/gpu-wide.so
must_fail 1 'plugin gpu/wide: .*name|plugin gpu/wide: .*fake' crund -c conf/c.conf -N n1

instance_start 'plugin "gpu/fake" { options { count = 4 } }'
id=$(submit -G 2 -o gpu.out -- sh -c 'echo $CUDA_VISIBLE_DEVICES $CUDA_DEVICE_ORDER')
id0=$(submit -o gpu0.out --env CUDA_VISIBLE_DEVICES=0,1 -- sh -c 'echo $CUDA_VISIBLE_DEVICES')
crun-wait "$id" "$id0"
is "granted GPUs are what the job sees" "$(cat gpu.out) $(job_field "$id" '.attempt.gpus | length')" "0,1 PCI_BUS_ID 2"
is "a job without GPUs is denied them, whatever it sets" "$(cat gpu0.out)" "-1"
