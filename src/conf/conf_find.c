/* Which file is the configuration. Test: conf_test.c. */
#include "config.h"

#include "conf/conf.h"

#include <pwd.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/mem.h"

/* Of a private instance: $CRUN_HOME, as crun-start reads it, else ~/.crun-wlm. */
static char *home_file(void)
{
    const char *instance = secure_getenv("CRUN_HOME"), *home = secure_getenv("HOME");

    if (instance != NULL && instance[0] != '\0')
        return cw_xasprintf("%s/crun.conf", instance);
    if (home == NULL || home[0] == '\0') {
        const struct passwd *pw = getpwuid(geteuid());
        home = pw != NULL ? pw->pw_dir : NULL;
    }
    return home != NULL ? cw_xasprintf("%s/.crun-wlm/crun.conf", home) : NULL;
}

static bool exists(const char *path)
{
    /* A file that is there but may not be read is the right one: opening it gives the true reason.
     */
    return path != NULL && (access(path, F_OK) == 0 || errno != ENOENT);
}

int cw_conf_find(const char *explicit_path, char **ret_path, struct cw_error *err)
{
    const char *env = secure_getenv("CRUN_CONF");
    static const char site[] = CW_SYSCONFDIR "/crun-wlm/crun.conf";
    cw_autofree char *home = home_file();

    if (explicit_path != NULL || (env != NULL && env[0] != '\0')) {
        const char *given = explicit_path != NULL ? explicit_path : env;
        if (!exists(given))
            return cw_fail(err, -ENOENT, "configuration: %s%s: No such file or directory", given,
                           explicit_path != NULL ? "" : " (from $CRUN_CONF)");
        *ret_path = cw_xstrdup(given);
        return 0;
    }
    if (exists(home)) {
        *ret_path = cw_steal(home);
        return 0;
    }
    if (!exists(site))
        return cw_fail(err, -ENOENT, "configuration: neither $CRUN_CONF nor %s nor %s is there",
                       home != NULL ? home : "~/.crun-wlm/crun.conf", site);
    *ret_path = cw_xstrdup(site);
    return 0;
}
