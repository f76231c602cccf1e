/* A task's groups, the part that is the same for both versions. The directory's name is the task's
 * key: after a crash that is all one needs to find them again, so there is no journal. */
#include "isolation/cgroup/groupbox.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "isolation/cgroup/groupfile.h"
#include "isolation/cgroup/groupprocs.h"

#define KILL_WAIT_MS    20 /* a killed process is gone in less than one as a rule */
#define RECLAIM_WAIT_MS 5000
#define RMDIR_TRIES     20 /* a millisecond each: an ended process leaves its group a bit later */
#define MAX_DEPTH       8

static int key_check(const char *key, struct cw_plugin_err *err)
{
    if (key != NULL && key[0] != '\0' && key[0] != '.' && strchr(key, '/') == NULL &&
        strlen(key) < GROUP_KEY_MAX)
        return 0;
    snprintf(err->text, sizeof(err->text), "'%.100s' cannot be a group's name",
             key != NULL ? key : "");
    return -EINVAL;
}

int groupbox_hier(const struct groupbox *b, unsigned controller)
{
    for (size_t i = 0; i < b->site->n; i++)
        if (b->procs[i] >= 0 && (b->site->hier[i].controllers & controller) != 0)
            return (int)i;
    return -1;
}

int groupbox_write(const struct groupbox *b, size_t hier, const char *file, const char *text)
{
    char path[GROUP_KEY_MAX + 64];

    snprintf(path, sizeof(path), "%s/%s", b->key, file);
    return groupfile_write(b->site->hier[hier].dir, path, text, b->site->plain);
}

int groupbox_write_i64(const struct groupbox *b, size_t hier, const char *file, int64_t value)
{
    char text[32];

    snprintf(text, sizeof(text), "%" PRId64, value);
    return groupbox_write(b, hier, file, text);
}

/* ---- removal ------------------------------------------------------------------------------------
 */

/* In a plain directory files do not vanish with it. */
static void unlink_files(int parent, const char *name)
{
    int dir = openat(parent, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
    DIR *list = dir < 0 ? NULL : fdopendir(dir);
    struct dirent *d;

    while (list != NULL && (d = readdir(list)) != NULL)
        if (d->d_type == DT_REG)
            unlinkat(dir, d->d_name, 0);
    if (list != NULL)
        closedir(list);
}

static int remove_tree(int parent, const char *name, int depth);

static int remove_below(int parent, const char *name, int depth)
{
    int dir = openat(parent, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW), r = 0;
    DIR *list = dir < 0 ? NULL : fdopendir(dir);
    struct dirent *d;

    if (list == NULL)
        return dir < 0 ? -errno : -ENOMEM;
    while (r == 0 && (d = readdir(list)) != NULL)
        if (d->d_type == DT_DIR && d->d_name[0] != '.')
            r = remove_tree(dir, d->d_name, depth + 1);
    closedir(list);
    return r;
}

static int remove_tree(int parent, const char *name, int depth)
{
    int r;

    if (unlinkat(parent, name, AT_REMOVEDIR) == 0 || errno == ENOENT)
        return 0;
    if ((errno != EBUSY && errno != ENOTEMPTY) || depth >= MAX_DEPTH)
        return -errno;
    r = remove_below(parent, name, depth);
    if (r < 0)
        return r;
    return unlinkat(parent, name, AT_REMOVEDIR) == 0 || errno == ENOENT ? 0 : -errno;
}

/* For a group that lists no process any more. */
static int remove_empty(const struct groupsite *s, size_t hier, const char *key)
{
    int dir = s->hier[hier].dir, r = -EBUSY;

    if (s->plain)
        unlink_files(dir, key);
    for (int i = 0; i < RMDIR_TRIES && r == -EBUSY; i++) {
        if (i > 0)
            poll(NULL, 0, 1);
        r = remove_tree(dir, key, 0);
    }
    return r;
}

/* ---- making -------------------------------------------------------------------------------------
 */

/* -1 and no file: this box does not need the hierarchy. */
static int make_group(struct groupbox *b, size_t hier)
{
    int dir = b->site->hier[hier].dir;
    char path[GROUP_KEY_MAX + 16];

    if (mkdirat(dir, b->key, 0755) < 0)
        return -errno;
    snprintf(path, sizeof(path), "%s/%s", b->key, b->site->backend->entry);
    b->procs[hier] =
        openat(dir, path, O_WRONLY | O_CLOEXEC | O_NOFOLLOW | (b->site->plain ? O_CREAT : 0), 0644);
    return b->procs[hier] < 0 ? -errno : 0;
}

/* Memory and CPU time are always measured; the others only when there is something to enforce. */
static unsigned controllers_needed(const struct groupbox_want *want)
{
    return GROUP_FREEZER | GROUP_CPUACCT | GROUP_MEMORY |
           (want->plan.pids != BOXPLAN_NONE ? (unsigned)GROUP_PIDS : 0u) |
           (want->plan.cpus != NULL ? (unsigned)GROUP_CPUSET : 0u);
}

static int make_groups(struct groupbox *b, unsigned needed, struct cw_plugin_err *err)
{
    for (size_t i = 0; i < b->site->n; i++) {
        int r;
        if ((b->site->hier[i].controllers & needed) == 0)
            continue;
        r = make_group(b, i);
        if (r < 0) {
            snprintf(err->text, sizeof(err->text), "%.150s/%.60s: %s", b->site->hier[i].path,
                     b->key, strerror(-r));
            return r;
        }
    }
    return 0;
}

static void undo(struct groupbox *b)
{
    for (size_t i = 0; i < b->site->n; i++) {
        if (b->procs[i] >= 0)
            close(b->procs[i]);
        remove_empty(b->site, i, b->key);
    }
    free(b);
}

static int limit_groups(const struct groupbox *b, const struct groupbox_want *want,
                        struct cw_plugin_err *err)
{
    const char *file = "";
    int r = b->site->backend->limit(b, want, &file);

    if (r < 0)
        snprintf(err->text, sizeof(err->text), "group %.60s: %s: %s", b->key, file, strerror(-r));
    return r;
}

/* Processors of a synthetic topology are not on this machine: nothing to bind to then. */
static struct groupbox_want drop_foreign_cpus(const struct groupsite *s,
                                              const struct groupbox_want *want)
{
    struct groupbox_want w = *want;

    if (w.plan.cpus != NULL && !groupfile_list_within(w.plan.cpus, s->cpus_online))
        w.plan.cpus = NULL;
    if (w.plan.mems == NULL || w.plan.mems[0] == '\0' ||
        !groupfile_list_within(w.plan.mems, s->mems_online))
        w.plan.mems = s->mems_base;
    if ((s->have & GROUP_CPUSET) == 0)
        w.plan.cpus = NULL; /* the shepherd's own binding remains */
    return w;
}

static int check_enforceable(const struct groupsite *s, const struct groupbox_want *want,
                             struct cw_plugin_err *err)
{
    const char *missing = NULL;

    if (want->plan.mem_bytes != BOXPLAN_NONE && (s->have & GROUP_MEMORY) == 0)
        missing = "memory";
    if (want->plan.pids != BOXPLAN_NONE && (s->have & GROUP_PIDS) == 0)
        missing = "pids";
    if (missing == NULL)
        return 0;
    snprintf(err->text, sizeof(err->text), "no controller to limit %s with", missing);
    return -ENOTSUP;
}

static struct groupbox *box_alloc(struct groupsite *s, const char *key,
                                  const struct groupbox_want *want)
{
    struct groupbox *b = calloc(1, sizeof(*b));

    if (b == NULL)
        return NULL;
    b->site = s;
    b->limits = want->plan;
    snprintf(b->key, sizeof(b->key), "%s", key);
    for (size_t i = 0; i < GROUP_CONTROLLERS; i++)
        b->procs[i] = -1;
    return b;
}

int groupbox_create(struct groupsite *s, const char *key, const struct groupbox_want *want,
                    struct groupbox **ret, struct cw_plugin_err *err)
{
    struct groupbox_want w = drop_foreign_cpus(s, want);
    struct groupbox *b;
    int r = key_check(key, err);

    if (r == 0)
        r = check_enforceable(s, &w, err);
    if (r < 0)
        return r;
    b = box_alloc(s, key, &w);
    if (b == NULL)
        return -ENOMEM;
    r = make_groups(b, controllers_needed(&w), err);
    if (r == -EEXIST) {
        undo(b);
        r = groupbox_reclaim(s, key, err);
        b = r < 0 ? NULL : box_alloc(s, key, &w);
        if (b == NULL)
            return r < 0 ? r : -ENOMEM;
        r = make_groups(b, controllers_needed(&w), err);
    }
    if (r == 0)
        r = limit_groups(b, &w, err);
    if (r < 0) {
        undo(b);
        return r;
    }
    *ret = b;
    return 0;
}

int groupbox_enter(const struct groupbox *b)
{
    for (size_t i = 0; i < GROUP_CONTROLLERS; i++)
        if (b->procs[i] >= 0 && write(b->procs[i], "0", 1) != 1)
            return errno != 0 ? -errno : -EIO;
    return boxplan_set_rlimits(&b->limits);
}

/* ---- signals and the end ------------------------------------------------------------------------
 */

int groupbox_signal(const struct groupbox *b, int sig)
{
    return groupprocs_signal(b->site->hier[0].dir, b->key, sig);
}

int groupbox_kill(const struct groupbox *b)
{
    int dir = b->site->hier[0].dir;
    int n = groupprocs_signal(dir, b->key, 0);

    if (n <= 0)
        return n;
    n = b->site->backend->kill(b->site, b->key);
    if (n > 0)
        groupprocs_await_empty(dir, b->key, KILL_WAIT_MS);
    return n;
}

int groupbox_destroy(struct groupbox *b)
{
    int n = groupbox_signal(b, 0);

    if (n != 0)
        return n < 0 ? n : -EBUSY;
    for (size_t i = b->site->n; i-- > 0;) {
        int r;
        if (b->procs[i] < 0)
            continue;
        r = remove_empty(b->site, i, b->key);
        if (r < 0)
            return r;
        close(b->procs[i]);
        b->procs[i] = -1;
    }
    free(b);
    return 0;
}

static int reclaim_hier(struct groupsite *s, size_t hier, const char *key)
{
    int dir = s->hier[hier].dir;
    int r = groupprocs_signal(dir, key, 0);

    if (r > 0 && hier == 0)
        r = s->backend->kill(s, key);
    else if (r > 0)
        r = groupprocs_signal(dir, key, SIGKILL);
    if (r > 0)
        r = groupprocs_await_empty(dir, key, RECLAIM_WAIT_MS);
    return r < 0 ? r : remove_empty(s, hier, key);
}

int groupbox_reclaim(struct groupsite *s, const char *key, struct cw_plugin_err *err)
{
    int r = key_check(key, err);

    for (size_t i = 0; r == 0 && i < s->n; i++) {
        r = reclaim_hier(s, i, key);
        if (r < 0)
            snprintf(err->text, sizeof(err->text), "%.150s/%.60s: %s", s->hier[i].path, key,
                     strerror(-r));
    }
    return r;
}
