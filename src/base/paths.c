/* Where our own files lie.
 *
 * The configured directories share a prefix; the part behind it names each. When the program's own
 * directory ends in the part of one of them, what stands before is the prefix of this copy.
 * Test: paths_test.c. */
#include "config.h"

#include "base/paths.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/mem.h"

static const char *const configured[] = { CW_BINDIR, CW_SBINDIR, CW_LIBEXECDIR, CW_PKGLIBDIR };
#define N_CONFIGURED ((int)CW_ARRAY_LEN(configured))

/* Length of the longest directory that all dirs lie below, without its slash. */
static size_t shared_prefix(const char *const *dirs, int n)
{
    size_t len = 0;

    for (size_t i = 0; dirs[0][i] != '\0'; i++) {
        for (int k = 1; k < n; k++) {
            if (dirs[k][i] != dirs[0][i])
                return len;
        }
        if (dirs[0][i] == '/')
            len = i;
    }
    return len;
}

char *cw_paths_moved(const char *exe, const char *target, const char *const *dirs, int n)
{
    const char *slash = strrchr(exe, '/');
    size_t own = slash != NULL ? (size_t)(slash - exe) : 0;
    size_t prefix = shared_prefix(dirs, n);

    for (int i = 0; i < n; i++) {
        const char *part = dirs[i] + prefix;
        size_t len = strlen(part);
        if (len > 0 && own >= len && memcmp(exe + own - len, part, len) == 0)
            return cw_xasprintf("%.*s%s", (int)(own - len), exe, target + prefix);
    }
    return cw_xstrdup(target);
}

static char *locate(const char *variable, const char *target, const char *below)
{
    const char *given = secure_getenv(variable);
    char exe[4096];
    ssize_t n = readlink("/proc/self/exe", exe, sizeof(exe) - 1);

    if (given != NULL && given[0] != '\0')
        return cw_xstrdup(given);
    exe[n > 0 ? n : 0] = '\0';
    cw_autofree char *dir = cw_paths_moved(exe, target, configured, N_CONFIGURED);
    return cw_xasprintf("%s%s", dir, below);
}

const char *cw_paths_libexec(void)
{
    static char *path;

    if (path == NULL)
        path = locate("CRUN_LIBEXECDIR", CW_LIBEXECDIR, "");
    return path;
}

const char *cw_paths_sbin(void)
{
    static char *path;

    if (path == NULL)
        path = locate("CRUN_SBINDIR", CW_SBINDIR, "");
    return path;
}

const char *cw_paths_plugins(void)
{
    static char *path;

    if (path == NULL)
        path = locate("CRUN_PLUGIN_PATH", CW_PKGLIBDIR, "/plugins");
    return path;
}
