/* Identities of tasks and acting as them; see runas.h. */
#include "shepherd/runas.h"

#include <grp.h>
#include <pwd.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/mem.h"
#include "base/table.h"

#define FRESH_MS   10000
#define GROUPS_MAX 65536
#define USERS_MAX  10000

struct cw_runas_cache {
    struct cw_idtable *users;
    uid_t own_uid;
    gid_t own_gid;
    gid_t *own_groups;
    int n_own_groups;
    bool away;
};

struct cw_runas_cache *cw_runas_cache_create(void)
{
    struct cw_runas_cache *c = cw_xcalloc(1, sizeof *c);
    c->users = cw_idtable_create();
    c->own_uid = geteuid();
    c->own_gid = getegid();
    int n = getgroups(0, NULL);
    if (n > 0) {
        c->own_groups = cw_xcalloc((size_t)n, sizeof *c->own_groups);
        c->n_own_groups = getgroups(n, c->own_groups);
    }
    return c;
}

static void clear(struct cw_runas *as)
{
    free(as->home);
    free(as->shell);
    free(as->groups);
    memset(as, 0, sizeof *as);
}

static bool drop(uint64_t key, void *value, void *arg)
{
    (void)key;
    (void)arg;
    clear(value);
    free(value);
    return true;
}

void cw_runas_cache_destroy(struct cw_runas_cache *c)
{
    if (c == NULL)
        return;
    cw_idtable_each(c->users, drop, NULL);
    cw_idtable_destroy(c->users);
    free(c->own_groups);
    free(c);
}

static void find_groups(struct cw_runas *as)
{
    int n = 64;
    gid_t *g = cw_xcalloc((size_t)n, sizeof *g);
    while (getgrouplist(as->name, as->gid, g, &n) < 0 && n <= GROUPS_MAX)
        g = cw_xrealloc(g, (size_t)n, sizeof *g);
    as->groups = g;
    as->n_groups = n;
}

static void look_up(struct cw_runas *as, uid_t uid, gid_t gid, int64_t now_ms)
{
    clear(as);
    as->uid = uid;
    as->gid = gid;
    as->fresh_until_ms = now_ms + FRESH_MS;
    const struct passwd *pw = getpwuid(uid);
    if (pw == NULL) {
        snprintf(as->name, sizeof as->name, "%u", uid);
        as->groups = cw_xmemdup(&gid, sizeof gid);
        as->n_groups = 1;
        as->home = cw_xstrdup("/");
        as->shell = cw_xstrdup("/bin/sh");
        return;
    }
    snprintf(as->name, sizeof as->name, "%s", pw->pw_name);
    as->home = cw_xstrdup(pw->pw_dir);
    as->shell = cw_xstrdup(pw->pw_shell != NULL && *pw->pw_shell != '\0' ? pw->pw_shell
                                                                         : "/bin/sh");
    find_groups(as);
}

struct cw_runas *cw_runas_find(struct cw_runas_cache *c, uid_t uid, gid_t gid, int64_t now_ms)
{
    struct cw_runas *as = cw_idtable_find(c->users, uid);
    if (as == NULL) {
        if (cw_idtable_count(c->users) >= USERS_MAX) {
            cw_idtable_each(c->users, drop, NULL);
            cw_idtable_destroy(c->users);
            c->users = cw_idtable_create();
        }
        as = cw_xcalloc(1, sizeof *as);
        cw_idtable_set(c->users, uid, as);
    } else if (as->gid == gid && now_ms < as->fresh_until_ms) {
        return as;
    }
    look_up(as, uid, gid, now_ms);
    return as;
}

int cw_runas_enter(struct cw_runas_cache *c, const struct cw_runas *as, struct cw_error *err)
{
    if (as->uid == c->own_uid && (as->uid != 0 || as->gid == c->own_gid))
        return 0;
    if (c->own_uid != 0)
        return cw_fail(err, -EPERM,
                       "user %s (uid %u): this node runs as uid %u and can start its own jobs only",
                       as->name, as->uid, c->own_uid);
    c->away = true;
    if (setgroups((size_t)as->n_groups, as->groups) < 0 || setegid(as->gid) < 0 ||
        seteuid(as->uid) < 0) {
        int rc = -errno;
        cw_runas_leave(c);
        return cw_fail_node(err, rc, "user %s (uid %u): take its identity: %s", as->name, as->uid,
                            strerror(-rc));
    }
    return 0;
}

void cw_runas_leave(struct cw_runas_cache *c)
{
    if (!c->away)
        return;
    c->away = false;
    /* Staying somebody else would let the next task act with this one's rights. */
    if (seteuid(c->own_uid) < 0 || setegid(c->own_gid) < 0 ||
        setgroups((size_t)c->n_own_groups, c->own_groups) < 0)
        abort();
}
