/* users.c: names of uids, kept for ten minutes, and the rule of administrators. Tested in
 * dispatch_test.c. */
#include "ctld/users.h"

#include <pwd.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "base/clock.h"
#include "base/mem.h"
#include "base/table.h"

#define KEEP_NS (600 * CW_NS_PER_S)
#define NAMES_MAX 100000u

struct user {
    uint32_t uid;
    int64_t until_ns;
    char name[64];
};
struct cw_users {
    struct cw_loop *loop;
    struct cw_idtable *by_uid; /* key uid + 1 */
};
struct lookup {
    struct cw_users *owner;
    uint32_t uid;
    char name[64];
    void (*fn)(void *arg);
    void *arg;
};

struct cw_users *cw_users_create(struct cw_loop *l)
{
    struct cw_users *u = cw_xcalloc(1, sizeof *u);
    u->loop = l;
    u->by_uid = cw_idtable_create();
    return u;
}

static bool user_free(uint64_t key, void *value, void *arg)
{
    (void)key;
    (void)arg;
    free(value);
    return true;
}

void cw_users_destroy(struct cw_users *u)
{
    if (u == NULL)
        return;
    cw_idtable_each(u->by_uid, user_free, NULL);
    cw_idtable_destroy(u->by_uid);
    free(u);
}

const char *cw_users_name(struct cw_users *u, uint32_t uid)
{
    struct user *e = cw_idtable_find(u->by_uid, (uint64_t)uid + 1);
    return e != NULL && cw_clock_mono_ns() < e->until_ns ? e->name : NULL;
}

static void name_of(uint32_t uid, char *name, size_t cap)
{
    char buf[8192];
    struct passwd pw, *found = NULL;
    if (getpwuid_r(uid, &pw, buf, sizeof buf, &found) == 0 && found != NULL)
        snprintf(name, cap, "%s", found->pw_name);
    else
        snprintf(name, cap, "%u", uid);
}

static void lookup_work(void *arg)
{
    struct lookup *l = arg;
    name_of(l->uid, l->name, sizeof l->name);
}

static void users_keep(struct cw_users *u, uint32_t uid, const char *name)
{
    struct user *e = cw_idtable_find(u->by_uid, (uint64_t)uid + 1);
    if (e == NULL) {
        if (cw_idtable_count(u->by_uid) >= NAMES_MAX) {
            cw_idtable_each(u->by_uid, user_free, NULL);
            cw_idtable_destroy(u->by_uid);
            u->by_uid = cw_idtable_create();
        }
        e = cw_xcalloc(1, sizeof *e);
        e->uid = uid;
        cw_idtable_set(u->by_uid, (uint64_t)uid + 1, e);
    }
    snprintf(e->name, sizeof e->name, "%s", name);
    e->until_ns = cw_clock_mono_ns() + KEEP_NS;
}

static void lookup_done(void *arg)
{
    struct lookup *l = arg;
    users_keep(l->owner, l->uid, l->name);
    l->fn(l->arg);
    free(l);
}

void cw_users_lookup(struct cw_users *u, uint32_t uid, void (*fn)(void *arg), void *arg)
{
    struct lookup *l = cw_xcalloc(1, sizeof *l);
    *l = (struct lookup){.owner = u, .uid = uid, .fn = fn, .arg = arg};
    cw_loop_work(u->loop, lookup_work, lookup_done, l);
}

int cw_users_read_admins(const struct cw_conf *conf, struct cw_adminlist *ret, struct cw_error *err)
{
    cw_autofree char *list = cw_xstrdup(conf->admins ? conf->admins : "");
    char *save = NULL;
    for (char *name = strtok_r(list, ", ", &save); name != NULL;
         name = strtok_r(NULL, ", ", &save)) {
        char buf[8192];
        struct passwd pw, *found = NULL;
        if (getpwnam_r(name, &pw, buf, sizeof buf, &found) != 0 || found == NULL)
            return cw_fail(err, -ENOENT, "%s: admins: there is no user '%s'", conf->path, name);
        ret->uids = cw_xrealloc(ret->uids, ret->n + 1, sizeof *ret->uids);
        ret->uids[ret->n++] = (uint32_t)found->pw_uid;
    }
    return 0;
}

int cw_users_load_admins(struct cw_ctld *c, struct cw_error *err)
{
    struct stat st;
    struct cw_adminlist list = {0};
    if (stat(c->conf->state_dir, &st) != 0)
        return cw_fail_errno(err, -errno, "%s", c->conf->state_dir);
    c->owner_uid = (uint32_t)st.st_uid;
    int rc = cw_users_read_admins(c->conf, &list, err);
    c->admin_uids = list.uids;
    c->n_admin_uids = list.n;
    return rc;
}

bool cw_users_is_admin(const struct cw_ctld *c, const struct cw_identity *who)
{
    if (who->node[0] != '\0')
        return false;
    if (who->uid == 0 || who->uid == c->owner_uid)
        return true;
    for (size_t i = 0; i < c->n_admin_uids; i++)
        if (c->admin_uids[i] == who->uid)
            return true;
    return false;
}

bool cw_users_may(const struct cw_ctld *c, const struct cw_identity *who, uint32_t uid)
{
    return who->node[0] == '\0' && (who->uid == uid || cw_users_is_admin(c, who));
}

bool cw_users_in_list(const char *comma_list, const char *name)
{
    size_t n = strlen(name);
    for (const char *p = comma_list; p != NULL && *p != '\0';) {
        p += strspn(p, ", ");
        size_t len = strcspn(p, ", ");
        if (len == n && strncmp(p, name, n) == 0)
            return true;
        p += len;
    }
    return false;
}
