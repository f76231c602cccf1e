/* The plugins of one process: load once, open with options and host services, hand out, close
 * backwards.
 *
 * Finding and checking a file is plug_file.c, who may have written it plug_trust.c, option values
 * plug_option.c. Never unloads: closing ends a plugin's work, its code stays. Test: plug_test.c. */
#include "plug/plug.h"

#include <string.h>

#include "base/list.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/paths.h"
#include "plug/plan.h"
#include "plug/plug_file.h"
#include "plug/plug_option.h"

const char *const cw_plug_families[] = {
    "isolation", "gpu",  "volume", "image", "secret", "network", "router", "sched",
    "scale",     "auth", "submit", "acct",  "notify", "health",  "power",  NULL};

struct cw_plug_registry {
    struct cw_list plugs; /* in load order */
    const struct cw_conf *conf;
    char *node; /* NULL: not a node's process */
    char *node_dir;
};

struct cw_plug {
    struct cw_list link;
    struct cw_plug_registry *registry;
    char *origin; /* "gpu/fake" */
    char *file;
    const struct cw_plugin *desc;
    struct cw_plug_options *options;
    struct cw_host host;
    void *ctx;
};

/* ---- host services ------------------------------------------------------------------------------
 */

static const struct cw_plug *plug_of(const struct cw_host *host)
{
    return host->priv;
}

static void host_log(const struct cw_host *host, int level, const char *text)
{
    int bounded = level < CW_LOG_ERROR ? CW_LOG_ERROR : level > CW_LOG_DEBUG ? CW_LOG_DEBUG : level;

    cw_log((enum cw_log_level)bounded, "plugin %s: %s", plug_of(host)->origin, text);
}

static const char *host_option(const struct cw_host *host, const char *name)
{
    return cw_plug_options_get(plug_of(host)->options, name);
}

static int host_plan_add(const struct cw_host *host, struct cw_plan *plan,
                         const struct cw_plan_line *line)
{
    return cw_plan_add(plan, plug_of(host)->origin, line);
}

static const struct cw_plan_line *host_plan_get(const struct cw_host *host,
                                                const struct cw_plan *plan, uint32_t i)
{
    (void)host;
    return cw_plan_get(plan, i);
}

static const char *host_instance(const struct cw_host *host, const char *what)
{
    const struct cw_plug_registry *r = plug_of(host)->registry;
    const struct cw_conf *c = r->conf;
    const struct {
        const char *what, *value;
    } rows[] = {
        {"cluster", c != NULL ? c->cluster : NULL},
        {"key_file", c != NULL ? c->key_file : NULL},
        {"door", c != NULL ? c->door : NULL},
        {"run_dir", c != NULL ? c->run_dir : NULL},
        {"node", r->node},
        {"node_dir", r->node_dir},
    };

    for (size_t i = 0; i < CW_ARRAY_LEN(rows); i++)
        if (strcmp(rows[i].what, what) == 0)
            return rows[i].value;
    return NULL;
}

static void host_init(struct cw_plug *p)
{
    p->host = (struct cw_host){
        .size = sizeof(struct cw_host),
        .abi_major = CW_PLUGIN_ABI_MAJOR,
        .abi_minor = CW_PLUGIN_ABI_MINOR,
        .log = host_log,
        .option = host_option,
        .plan_add = host_plan_add,
        .plan_get = host_plan_get,
        .instance = host_instance,
        .priv = p,
    };
}

/* ---- registry -----------------------------------------------------------------------------------
 */

struct cw_plug_registry *cw_plug_registry_create(const struct cw_conf *conf, const char *node)
{
    struct cw_plug_registry *r = cw_xcalloc(1, sizeof(*r));

    cw_list_init(&r->plugs);
    r->conf = conf;
    r->node = cw_xstrdup(node);
    if (conf != NULL && node != NULL && conf->node_dir != NULL)
        r->node_dir = cw_xasprintf("%s/%s", conf->node_dir, node);
    return r;
}

static void plug_destroy(struct cw_plug *p)
{
    if (p == NULL)
        return;
    cw_list_remove(&p->link);
    cw_plug_options_destroy(p->options);
    free(p->origin);
    free(p->file);
    free(p);
}
CW_DEFINE_AUTO(cw_plug, plug_destroy)

void cw_plug_registry_destroy(struct cw_plug_registry *r)
{
    if (r == NULL)
        return;
    while (!cw_list_empty(&r->plugs)) {
        struct cw_plug *last = cw_list_entry(r->plugs.prev, struct cw_plug, link);
        if (last->desc->close != NULL)
            last->desc->close(last->ctx);
        plug_destroy(last);
    }
    free(r->node);
    free(r->node_dir);
    free(r);
}

/* ---- loading ------------------------------------------------------------------------------------
 */

static int check_name(const char *family, const char *name, struct cw_error *err)
{
    static const char allowed[] = "abcdefghijklmnopqrstuvwxyz0123456789_-";

    if (cw_plug_file_required(family) == 0) {
        cw_autobuf struct cw_buf list = {0};
        for (size_t i = 0; cw_plug_families[i] != NULL; i++)
            cw_buf_addf(&list, "%s%s", i > 0 ? ", " : "", cw_plug_families[i]);
        return cw_fail(err, -EINVAL, "unknown family, allowed: %s", list.data);
    }
    if (name[0] == '\0' || name[strspn(name, allowed)] != '\0' || strlen(name) > 64)
        return cw_fail(err, -EINVAL, "a plugin's name has 1 to 64 characters of a-z 0-9 _ -");
    return 0;
}

static int check_not_exec(const struct cw_conf *conf, const struct cw_conf_plugin *site,
                          struct cw_error *err)
{
    if (site == NULL || site->exec == NULL)
        return 0;
    return cw_fail(
        err, -ENOTSUP,
        "%s:%d: exec = \"%s\": external programs are not supported yet, only shared objects",
        conf->path, site->line, site->exec);
}

static int open_plugin(struct cw_plug *p, struct cw_error *err)
{
    struct cw_plugin_err perr = {{0}};
    int r;

    if (p->desc->open == NULL)
        return 0;
    r = p->desc->open(&p->host, &p->ctx, &perr);
    if (r >= 0)
        return 0;
    perr.text[CW_PLUGIN_ERR_MAX - 1] = '\0';
    if (perr.text[0] == '\0')
        return cw_fail_errno(err, r, "open");
    return cw_fail(err, r, "open: %s", perr.text);
}

/* Everything that can be known of a file before the plugin's own code runs. */
static int load_file(struct cw_plug *p, const char *path, const char *family, const char *name,
                     struct cw_error *err)
{
    int r = cw_plug_file_find(path, family, name, &p->file, err);

    if (r == 0)
        r = cw_plug_file_open(p->file, &p->desc, err);
    if (r < 0)
        return r;
    if (cw_plug_file_check(p->desc, family, name, err) < 0)
        return cw_wrap(err, -ENOEXEC, "%s", p->file);
    return 0;
}

static const char *search_path(const struct cw_plug_registry *r)
{
    if (r->conf != NULL && r->conf->plugin_path != NULL && r->conf->plugin_path[0] != '\0')
        return r->conf->plugin_path;
    return cw_paths_plugins();
}

int cw_plug_load(struct cw_plug_registry *r, const char *family, const char *name,
                 struct cw_plug **ret, struct cw_error *err)
{
    cw_auto(plug_destroy) struct cw_plug *p = NULL;
    struct cw_plug *known = cw_plug_find(r, family, name);
    const struct cw_conf_plugin *site = NULL;
    int e;

    if (known != NULL) {
        *ret = known;
        return 0;
    }
    p = cw_xcalloc(1, sizeof(*p));
    p->registry = r;
    p->origin = cw_xasprintf("%s/%s", family, name);
    if (r->conf != NULL)
        site = cw_conf_plugin_find(r->conf, family, name);
    e = check_name(family, name, err);
    if (e == 0)
        e = check_not_exec(r->conf, site, err);
    if (e == 0)
        e = load_file(p, search_path(r), family, name, err);
    if (e < 0)
        return cw_wrap(err, e, "plugin %s", p->origin);
    e = cw_plug_options_create(p->desc->options, site, r->conf != NULL ? r->conf->path : NULL,
                               p->origin, &p->options, err);
    if (e < 0)
        return e;
    host_init(p);
    e = open_plugin(p, err);
    if (e < 0)
        return cw_wrap(err, e, "plugin %s", p->origin);
    cw_list_add_tail(&r->plugs, &p->link);
    *ret = cw_steal(p);
    return 0;
}

struct cw_plug *cw_plug_find(struct cw_plug_registry *r, const char *family, const char *name)
{
    cw_list_each(pos, &r->plugs)
    {
        struct cw_plug *p = cw_list_entry(pos, struct cw_plug, link);
        if (strcmp(p->desc->family, family) == 0 && strcmp(p->desc->name, name) == 0)
            return p;
    }
    return NULL;
}

static bool belongs(const char *const *families, const char *family)
{
    for (; *families != NULL; families++)
        if (strcmp(*families, family) == 0)
            return true;
    return false;
}

int cw_plug_load_configured(struct cw_plug_registry *r, const char *const *families,
                            void (*warn)(const char *text, void *arg), void *arg,
                            struct cw_error *err)
{
    for (size_t i = 0; r->conf != NULL && i < r->conf->n_plugins; i++) {
        const struct cw_conf_plugin *site = &r->conf->plugins[i];
        struct cw_error local = {0};
        struct cw_plug *p;

        if (!belongs(families, site->family) ||
            cw_plug_load(r, site->family, site->name, &p, &local) == 0)
            continue;
        if (site->required) {
            if (err != NULL)
                *err = local;
            return local.code;
        }
        if (warn != NULL)
            warn(local.text, arg);
    }
    return 0;
}

const struct cw_plugin *cw_plug_desc(const struct cw_plug *p)
{
    return p->desc;
}

const struct cw_host *cw_plug_host(const struct cw_plug *p)
{
    return &p->host;
}

const char *cw_plug_file(const struct cw_plug *p)
{
    return p->file;
}

void *cw_plug_ctx(const struct cw_plug *p)
{
    return p->ctx;
}

void cw_plug_each(struct cw_plug_registry *r, const char *family,
                  void (*fn)(struct cw_plug *p, void *arg), void *arg)
{
    cw_list_each_safe(pos, &r->plugs)
    {
        struct cw_plug *p = cw_list_entry(pos, struct cw_plug, link);
        if (family == NULL || strcmp(p->desc->family, family) == 0)
            fn(p, arg);
    }
}
