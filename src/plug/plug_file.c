/* Finding, loading and checking a plugin's file.
 *
 * Facts that shape this (measured): libltdl says "file not found" for every failure, so a dlopen
 * with RTLD_NOW goes first and yields the true text; it also refuses undefined functions, which a
 * lazy load would only notice at the first call. libltdl looks into LTDL_LIBRARY_PATH and
 * LD_LIBRARY_PATH for a bare name but not for a path with a directory: only absolute, resolved
 * paths are ever passed, and the environment (a user's, in commands) stays as it is. */
#include "plug/plug_file.h"

#include <dlfcn.h>
#include <ltdl.h>
#include <string.h>
#include <unistd.h>

#include "base/mem.h"
#include "plug/plug_trust.h"

#define PLUGIN_SIZE_MIN (offsetof(struct cw_plugin, ops_size) + sizeof(uint32_t)) /* version 1.0   \
                                                                                   */

static const struct {
    const char *family;
    unsigned required;
} families[] = {
    {"isolation", 8}, {"gpu", 3},    {"volume", 2}, {"image", 2},  {"secret", 1},
    {"network", 2},   {"router", 3}, {"sched", 1},  {"scale", 1},  {"auth", 3},
    {"submit", 1},    {"acct", 1},   {"notify", 1}, {"health", 1}, {"power", 2},
};

unsigned cw_plug_file_required(const char *family)
{
    for (size_t i = 0; i < CW_ARRAY_LEN(families); i++)
        if (strcmp(families[i].family, family) == 0)
            return families[i].required;
    return 0;
}

int cw_plug_file_find(const char *path, const char *family, const char *name, char **ret_file,
                      struct cw_error *err)
{
    static const char *const places[] = {"", ".libs/"};

    for (const char *dir = path; *dir != '\0';) {
        size_t len = strcspn(dir, ":");
        for (size_t i = 0; len > 0 && i < CW_ARRAY_LEN(places); i++) {
            cw_autofree char *file =
                cw_xasprintf("%.*s/%s%s-%s.so", (int)len, dir, places[i], family, name);
            if (access(file, F_OK) == 0) {
                *ret_file = cw_steal(file);
                return 0;
            }
        }
        dir += len + (dir[len] == ':');
    }
    return cw_fail(err, -ENOENT, "%s-%s.so: not found in %s", family, name, path);
}

/* The loader's sentence without the file name that our own sentence already begins with. */
static const char *dlerror_cause(const char *file)
{
    const char *text = dlerror();
    size_t n = strlen(file);

    if (text == NULL)
        return "unknown cause";
    if (strncmp(text, file, n) == 0 && strncmp(text + n, ": ", 2) == 0)
        return text + n + 2;
    return text;
}

static int ltdl_init(struct cw_error *err)
{
    static bool done;

    if (!done && lt_dlinit() != 0)
        return cw_fail(err, -EIO, "libltdl: %s", lt_dlerror());
    done = true;
    return 0;
}

static int ltdl_open(const char *file, lt_dlhandle *ret, struct cw_error *err)
{
    lt_dladvise advise;
    lt_dlhandle h = NULL;

    if (lt_dladvise_init(&advise) != 0)
        return cw_fail(err, -EIO, "libltdl: %s", lt_dlerror());
    if (lt_dladvise_local(&advise) != 0 || lt_dladvise_resident(&advise) != 0) {
        lt_dladvise_destroy(&advise);
        return cw_fail(err, -EIO, "libltdl: %s", lt_dlerror());
    }
    h = lt_dlopenadvise(file, advise);
    lt_dladvise_destroy(&advise);
    if (h == NULL)
        return cw_fail_node(err, -ELIBACC, "%s: %s", file, lt_dlerror());
    *ret = h;
    return 0;
}

int cw_plug_file_open(const char *file, const struct cw_plugin **ret, struct cw_error *err)
{
    cw_autofree char *real = NULL;
    const struct cw_plugin *d;
    lt_dlhandle h = NULL;
    int r;

    r = ltdl_init(err);
    if (r == 0)
        r = cw_plug_trust_check(file, &real, err);
    if (r < 0)
        return r;
    if (dlopen(real, RTLD_NOW | RTLD_LOCAL) == NULL)
        return cw_fail_node(err, -ELIBACC, "%s: %s", real, dlerror_cause(real));
    r = ltdl_open(real, &h, err);
    if (r < 0)
        return r;
    d = lt_dlsym(h, "cw_plugin");
    if (d == NULL)
        return cw_fail(err, -ENOEXEC, "%s: exports no symbol cw_plugin", real);
    *ret = d;
    return 0;
}

static int check_version(const struct cw_plugin *d, struct cw_error *err)
{
    if (d->magic != CW_PLUGIN_MAGIC)
        return cw_fail(err, -ENOEXEC, "cw_plugin has magic 0x%08x, not 0x%08x", (unsigned)d->magic,
                       CW_PLUGIN_MAGIC);
    if (d->abi_major != CW_PLUGIN_ABI_MAJOR)
        return cw_fail(err, -ENOEXEC, "made for plugin interface %u.%u, this program has %u.%u",
                       d->abi_major, d->abi_minor, CW_PLUGIN_ABI_MAJOR, CW_PLUGIN_ABI_MINOR);
    if (d->size < PLUGIN_SIZE_MIN)
        return cw_fail(err, -ENOEXEC, "cw_plugin says %u bytes, version 1.0 has %zu",
                       (unsigned)d->size, PLUGIN_SIZE_MIN);
    return 0;
}

static int check_ops(const struct cw_plugin *d, struct cw_error *err)
{
    unsigned required = cw_plug_file_required(d->family);
    void (*member)(void);

    if (d->ops == NULL)
        return cw_fail(err, -ENOEXEC, "cw_plugin has no ops");
    if (d->ops_size < required * sizeof(member))
        return cw_fail(err, -ENOEXEC, "ops has %u bytes, family %s needs %zu",
                       (unsigned)d->ops_size, d->family, required * sizeof(member));
    for (unsigned i = 0; i < required; i++) {
        memcpy(&member, (const char *)d->ops + i * sizeof(member), sizeof(member));
        if (member == NULL)
            return cw_fail(err, -ENOEXEC, "ops member %u of family %s is NULL", i + 1, d->family);
    }
    return 0;
}

int cw_plug_file_check(const struct cw_plugin *d, const char *family, const char *name,
                       struct cw_error *err)
{
    int r = check_version(d, err);

    if (r < 0)
        return r;
    if (d->family == NULL || d->name == NULL || d->version == NULL)
        return cw_fail(err, -ENOEXEC, "cw_plugin lacks family, name or version");
    if (strcmp(d->family, family) != 0 || strcmp(d->name, name) != 0)
        return cw_fail(err, -ENOEXEC, "contains plugin %s/%s, its file name says %s/%s", d->family,
                       d->name, family, name);
    return check_ops(d, err);
}
