/* Cleans up behind a dead shepherd; see reclaim.h. */
#include "shepherd/reclaim.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"
#include "proto/walk.h"
#include "shepherd/hostfile.h"
#include "shepherd/steps.h"

static int reclaim_by(struct cw_herd *h, const char *isolation, const char *key,
                      struct cw_error *err)
{
    struct cw_plug *p = NULL;
    struct cw_plugin_err perr = { "" };
    int rc = cw_steps_isolation(h, isolation, &p, err);
    if (rc < 0)
        return rc;
    rc = CW_PLUG_OPS(isolation, p)->reclaim(cw_plug_ctx(p), key, &perr);
    if (rc < 0)
        return cw_fail_node(err, rc, "isolation %s: reclaim %s: %s", isolation, key,
                            perr.text[0] != '\0' ? perr.text : strerror(-rc));
    return 0;
}

/* The plugin is not known: every one that can be used on this node has to say that it is gone. */
static int reclaim_by_all(struct cw_herd *h, const char *key, struct cw_error *err)
{
    static const char *const ours[] = { "cgroup", "none" };
    int rc = 0;
    for (size_t i = 0; rc == 0 && i < CW_ARRAY_LEN(ours); i++) {
        rc = reclaim_by(h, ours[i], key, err);
        if (rc == -ENOTSUP || rc == -ENOENT)
            rc = 0; /* not usable here, so it made no box */
    }
    for (size_t i = 0; rc == 0 && i < h->conf->n_plugins; i++) {
        const struct cw_conf_plugin *p = &h->conf->plugins[i];
        if (strcmp(p->family, "isolation") == 0)
            rc = reclaim_by(h, p->name, key, err);
    }
    return rc;
}

/* 0 or a negative errno when the box could not be proven gone. */
static int reclaim_box(struct cw_herd *h, const struct cw_journal_task *t, const char *key,
                       struct cw_error *err)
{
    if (t->isolation[0] == '\0')
        return 0; /* refused before it had a box */
    return strcmp(t->isolation, "*") == 0 ? reclaim_by_all(h, key, err)
                                          : reclaim_by(h, t->isolation, key, err);
}

/* The end as far as it is known: what the shepherd still wrote down, else "lost". */
static void make_end(const struct cw_journal_task *t, int gone, const struct cw_error *why,
                     struct cw_buf *out)
{
    struct cw_arena *a = cw_arena_create();
    ProtobufCMessage *m = NULL;
    Cw__TaskKey key = CW__TASK_KEY__INIT;
    Cw__TaskEnd e = CW__TASK_END__INIT;
    if (t->started.len > 0 && cw_walk_unpack(&cw__task_started__descriptor, t->started.data,
                                             t->started.len, a, &m, NULL) == 0) {
        const Cw__TaskStarted *s = (const Cw__TaskStarted *)m;
        e.has_start_ns = 1;
        e.start_ns = s->start_ns;
        e.has_pid = s->pid != 0; /* 0: a task without a leader */
        e.pid = s->pid;
        e.has_cpus_bound = s->has_cpus_bound;
        e.cpus_bound = s->cpus_bound;
        e.stdout_path = s->stdout_path;
        e.stderr_path = s->stderr_path;
    }
    key.id = t->id;
    key.attempt = t->attempt;
    e.key = &key;
    e.cause = CW__CAUSE__CAUSE_NODE_LOST;
    e.message = (char *)(uintptr_t) "its supervisor on the node died";
    e.end_ns = cw_clock_real_ns();
    e.empty = gone == 0;
    if (gone != 0)
        e.leftover = (char *)(uintptr_t)why->text;
    cw_walk_pack(&e.base, out);
    cw_arena_destroy(a);
}

static int add(struct cw_herd *h, enum cw_journal_type type, const struct cw_journal_task *t,
               const struct cw_buf *body, struct cw_error *err)
{
    int rc = cw_journal_add(h->journal, type, t->id, t->attempt, body != NULL ? body->data : NULL,
                            body != NULL ? body->len : 0);
    return rc < 0 ? cw_fail_errno(err, rc, "journal of a dead shepherd") : 0;
}

/* 0, 1 when its box is still there, or a negative errno. */
static int reclaim_task(struct cw_herd *h, const struct cw_journal_task *t, struct cw_error *err)
{
    char key[36];
    struct cw_error why = { 0 };
    cw_autobuf struct cw_buf end = { 0 };
    snprintf(key, sizeof key, "%llu.%u", (unsigned long long)t->id, t->attempt);
    cw_autofree char *script = cw_xasprintf("%s/tasks/%s.sh", h->node_dir, key);
    unlink(script);
    cw_autofree char *hosts = cw_hostfile_path(h, key);
    unlink(hosts);
    int gone = reclaim_box(h, t, key, &why);
    if (gone < 0)
        cw_log_error("task %s: %s", key, why.text);
    if (t->end.len > 0 && !t->emptied && gone == 0)
        return add(h, CW_JOURNAL_EMPTIED, t, NULL,
                   err); /* if its end said that something was left */
    if (t->end.len > 0)
        return gone < 0;
    make_end(t, gone, &why, &end);
    int rc = add(h, CW_JOURNAL_EXIT, t, &end, err);
    return rc < 0 ? rc : gone < 0;
}

int cw_reclaim(struct cw_herd *h, const char *path, struct cw_error *err)
{
    struct cw_list list;
    cw_list_init(&list);
    int left = 0, rc = cw_journal_load(path, &list, err);
    cw_list_each(l, &list) {
        const struct cw_journal_task *t = cw_list_entry(l, struct cw_journal_task, link);
        if (rc < 0 || t->forgotten)
            continue;
        rc = reclaim_task(h, t, err);
        left |= rc > 0;
    }
    cw_journal_tasks_destroy(&list);
    return rc < 0 ? rc : left;
}
