#pragma once
/* Who people are: names of uids, and who counts as an administrator. Name services may block
 * (LDAP), so an unknown uid is looked up on a worker and the request continues when the name is
 * there. */
#include <crunwlm/plugin.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"
#include "ctld/ctld.h"

struct cw_users;
struct cw_users *cw_users_create(struct cw_loop *l);
void cw_users_destroy(struct cw_users *u); /* NULL allowed; no lookup may be running */
/* The name ("1000" for a uid without one), or NULL when it has to be looked up first. */
const char *cw_users_name(struct cw_users *u, uint32_t uid);
/* Looks uid up on a worker, then fn(arg) on the loop; cw_users_name gives it from then on. */
void cw_users_lookup(struct cw_users *u, uint32_t uid, void (*fn)(void *arg), void *arg);
/* Fills admin_uids and owner_uid; blocks (start only). */
struct cw_adminlist {
    uint32_t *uids; /* heap */
    size_t n;
};
/* Fails for a name that nobody has; ret may then hold some already. */
int cw_users_read_admins(const struct cw_conf *conf, struct cw_adminlist *ret, struct cw_error *err);
int cw_users_load_admins(struct cw_ctld *c, struct cw_error *err);
bool cw_users_is_admin(const struct cw_ctld *c, const struct cw_identity *who);
/* May `who` change or look into what uid owns? */
bool cw_users_may(const struct cw_ctld *c, const struct cw_identity *who, uint32_t uid);
bool cw_users_in_list(const char *comma_list, const char *name);
