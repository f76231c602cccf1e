/* What dead shepherds left behind; see graves.h. */
#include "node/graves.h"

#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/log.h"
#include "base/mem.h"
#include "node/shepherds.h"
#include "shepherd/reclaim.h"

#define RETRY_MS      2000
#define RETRY_LEFT_MS 10000 /* something would not die */

struct grave {
    struct cw_list link;
    struct cw_graves *set;
    char id[48];
    struct cw_loop_child *helper;
    struct cw_loop_timer *retry;
    bool done;
    unsigned again; /* how often after it was done */
};
struct cw_graves {
    struct cw_node *node;
    struct cw_list list;
    struct cw_graves_ops ops;
    void *arg;
};

struct cw_graves *cw_graves_create(struct cw_node *node, const struct cw_graves_ops *ops, void *arg)
{
    struct cw_graves *g = cw_xcalloc(1, sizeof *g);
    g->node = node;
    g->ops = *ops;
    g->arg = arg;
    cw_list_init(&g->list);
    return g;
}

static void grave_destroy(struct grave *v)
{
    cw_list_remove(&v->link);
    cw_loop_child_close(v->helper);
    cw_loop_timer_close(v->retry);
    free(v);
}

void cw_graves_destroy(struct cw_graves *g)
{
    if (g == NULL)
        return;
    cw_list_each_safe(l, &g->list)
        grave_destroy(cw_list_entry(l, struct grave, link));
    free(g);
}

static char *file_of(const struct grave *v, const char *suffix)
{
    return cw_xasprintf("%s/shep/%s%s", v->set->node->dir, v->id, suffix);
}

/* Tells every task; true when each has an end and is proven gone. */
static bool tell(struct grave *v, bool done)
{
    struct cw_list tasks;
    struct cw_error err;
    bool complete = true;
    cw_list_init(&tasks);
    cw_autofree char *path = file_of(v, ".journal");
    if (cw_journal_load(path, &tasks, &err) < 0)
        cw_log_error("shepherd %s: %s", v->id, err.text);
    cw_list_each(l, &tasks) {
        const struct cw_journal_task *t = cw_list_entry(l, struct cw_journal_task, link);
        if (t->forgotten)
            continue;
        complete = complete && t->end.len > 0;
        v->set->ops.task(v->id, t, done, v->set->arg);
    }
    cw_journal_tasks_destroy(&tasks);
    return complete;
}

static void start_helper(void *arg);

static void again_later(struct grave *v, uint64_t delay_ms)
{
    if (v->retry == NULL)
        v->retry = cw_loop_timer_open(v->set->node->loop, start_helper, v);
    cw_loop_timer_start(v->retry, delay_ms, 0);
}

static void on_helper(pid_t pid, void *arg)
{
    struct grave *v = arg;
    int status = -1;
    waitpid(pid, &status, WNOHANG);
    cw_loop_child_close(v->helper);
    v->helper = NULL;
    int code = WIFEXITED(status) ? WEXITSTATUS(status) : -1;
    bool told = tell(v, code == 0 || code == CW_RECLAIM_EXIT_LEFT);
    if (!told || code != 0) {
        cw_log_warn("shepherd %s: what it left is not cleaned up yet", v->id);
        again_later(v, code == CW_RECLAIM_EXIT_LEFT ? RETRY_LEFT_MS : RETRY_MS);
        return;
    }
    v->done = true;
    v->set->ops.settled(v->id, v->set->arg);
}

static void start_helper(void *arg)
{
    struct grave *v = arg;
    struct cw_error err = { 0 };
    pid_t pid;
    int rc = cw_shepherds_reclaim(v->set->node->shepherds, v->id, &pid, &err);
    if (rc == 0)
        v->helper = cw_loop_child_open(v->set->node->loop, pid, on_helper, v, &err);
    if (v->helper == NULL) {
        cw_log_error("shepherd %s: clean up: %s", v->id, err.text);
        again_later(v, RETRY_MS);
    }
}

static struct grave *find(struct cw_graves *g, const char *id)
{
    cw_list_each(l, &g->list)
        if (strcmp(cw_list_entry(l, struct grave, link)->id, id) == 0)
            return cw_list_entry(l, struct grave, link);
    return NULL;
}

int cw_graves_claim(struct cw_graves *g, const char *shepherd, uint64_t id, uint32_t attempt)
{
    struct grave *v = find(g, shepherd);
    struct cw_journal *j = NULL;
    struct cw_error err = { 0 };
    if (v == NULL)
        return -ENOENT;
    cw_autofree char *path = file_of(v, ".journal");
    int rc = cw_journal_open(path, &j, &err);
    if (rc == 0)
        rc = cw_journal_add(j, CW_JOURNAL_START, id, attempt, "*", 1);
    if (rc < 0)
        cw_log_error("shepherd %s: journal: %s", shepherd,
                     err.text[0] != '\0' ? err.text : strerror(-rc));
    cw_journal_close(j);
    return rc;
}

void cw_graves_again(struct cw_graves *g, const char *shepherd)
{
    struct grave *v = find(g, shepherd);
    if (v == NULL)
        return;
    v->done = false;
    again_later(v, v->again++ == 0 ? 0 : RETRY_MS);
}

void cw_graves_bury(struct cw_graves *g, const char *shepherd)
{
    if (find(g, shepherd) != NULL)
        return;
    struct grave *v = cw_xcalloc(1, sizeof *v);
    v->set = g;
    snprintf(v->id, sizeof v->id, "%s", shepherd);
    cw_list_add_tail(&g->list, &v->link);
    cw_autofree char *journal = file_of(v, ".journal");
    if (access(journal, F_OK) < 0) { /* it went in peace */
        v->done = true;
        g->ops.settled(v->id, g->arg);
        return;
    }
    tell(v, false);
    start_helper(v);
}

void cw_graves_close(struct cw_graves *g, const char *shepherd)
{
    static const char *const suffixes[] = { ".journal", ".lock", ".sock" };
    struct grave *v = find(g, shepherd);
    if (v == NULL || !v->done)
        return;
    for (size_t i = 0; i < CW_ARRAY_LEN(suffixes); i++) {
        cw_autofree char *path = file_of(v, suffixes[i]);
        unlink(path);
    }
    grave_destroy(v);
}
