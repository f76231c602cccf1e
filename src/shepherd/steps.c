/* The set-up of a task, step by step; see steps.h. */
#include "shepherd/steps.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/crashpoint.h"
#include "base/file.h"
#include "base/log.h"
#include "proto/walk.h"
#include "shepherd/hostfile.h"
#include "shepherd/outfiles.h"
#include "shepherd/planning.h"
#include "shepherd/spawn.h"

struct step {
    const char *name;
    int (*make)(struct cw_herd *h, struct cw_task *t, struct cw_error *err);
    void (*undo)(struct cw_herd *h, struct cw_task *t); /* NULL: nothing to undo */
};

static int make_identity(struct cw_herd *h, struct cw_task *t, struct cw_error *err)
{
    const Cw__TaskStart *s = t->start;
    if (t->uid == 0 && !(s->has_allow_root && s->allow_root) && h->root)
        return cw_fail(err, -EPERM, "jobs of root are not allowed on this cluster");
    t->as = cw_runas_find(h->identities, t->uid, t->gid, cw_herd_now_ms());
    return 0;
}

static int make_files(struct cw_herd *h, struct cw_task *t, struct cw_error *err)
{
    int rc = cw_runas_enter(h->identities, t->as, err);
    if (rc < 0)
        return rc;
    rc = cw_outfiles_open(h, t, err);
    cw_runas_leave(h->identities);
    return rc;
}

static void undo_files(struct cw_herd *h, struct cw_task *t)
{
    (void)h;
    cw_outfiles_close(t);
}

int cw_steps_isolation(struct cw_herd *h, const char *name, struct cw_plug **ret,
                       struct cw_error *err)
{
    *ret = cw_plug_find(h->plugs, "isolation", name);
    return *ret != NULL ? 0 : cw_plug_load(h->plugs, "isolation", name, ret, err);
}

static int make_box(struct cw_herd *h, struct cw_task *t, struct cw_error *err)
{
    int rc = cw_steps_isolation(h, t->start->isolation, &t->isolation, err);
    if (rc < 0) {
        if (err != NULL)
            err->fault = CW_FAULT_NODE;
        return rc;
    }
    const struct cw_isolation_ops *ops = CW_PLUG_OPS(isolation, t->isolation);
    struct cw_task_view view = cw_planning_view(h, t);
    struct cw_plugin_err perr = { "" };
    rc = ops->prepare(cw_plug_ctx(t->isolation), &view, t->plan, &t->box, &perr);
    if (rc == 0)
        return 0;
    const char *text = perr.text[0] != '\0' ? perr.text : strerror(-rc);
    return rc == -EINVAL ? cw_fail(err, rc, "isolation %s: %s", t->start->isolation, text)
                         : cw_fail_node(err, rc, "isolation %s: %s", t->start->isolation, text);
}

static int release_box(struct cw_task *t)
{
    if (t->box == NULL)
        return 0;
    int rc = CW_PLUG_OPS(isolation, t->isolation)->release(cw_plug_ctx(t->isolation), t->box);
    if (rc == -EBUSY)
        return rc;
    if (rc < 0)
        cw_log_warn("task %s: release the box: %s", t->key, strerror(-rc));
    t->box = NULL;
    return 0;
}

static void undo_box(struct cw_herd *h, struct cw_task *t)
{
    (void)h;
    release_box(t); /* -EBUSY: the end of the task tries again */
}

/* Where some user could not walk to node_dir (a private instance under a 0700 home), the script is
 * run from a descriptor; $0 is then its name in /proc. */
static int make_script_memfd(struct cw_task *t, const ProtobufCBinaryData *text,
                             struct cw_error *err)
{
    t->fd_script = memfd_create("crun-script", MFD_CLOEXEC);
    if (t->fd_script < 0)
        return cw_fail_node(err, -errno, "script: %s", strerror(errno));
    int rc = cw_file_write_all(t->fd_script, text->data, text->len);
    if (rc == 0 && (fchmod(t->fd_script, 0500) < 0 || fchown(t->fd_script, t->uid, t->gid) < 0))
        rc = -errno;
    if (rc < 0)
        return cw_fail_node(err, rc, "script: %s", strerror(-rc));
    /* A writer would make the exec fail with ETXTBSY. */
    cw_autofree char *self = cw_xasprintf("/proc/self/fd/%d", t->fd_script);
    int fd = open(self, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return cw_fail_node(err, -errno, "script: %s", strerror(errno));
    close(t->fd_script);
    t->fd_script = fd;
    return 0;
}

static int make_script(struct cw_herd *h, struct cw_task *t, struct cw_error *err)
{
    const Cw__Payload *p = t->start->payload;
    if (!p->has_script || t->headless)
        return 0;
    if (!h->reachable && h->root && t->uid != 0)
        return make_script_memfd(t, &p->script, err);
    t->script = cw_xasprintf("%s/tasks/%s.sh", h->node_dir, t->key);
    unlink(t->script); /* of an attempt of the same name before a crash */
    cw_autoclose int fd = open(t->script, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW,
                               0500);
    int rc = fd < 0 ? -errno : cw_file_write_all(fd, p->script.data, p->script.len);
    if (rc == 0 && h->root && fchown(fd, t->uid, t->gid) < 0)
        rc = -errno;
    return rc < 0 ? cw_fail_node(err, rc, "script %s: %s", t->script, strerror(-rc)) : 0;
}

static void undo_script(struct cw_herd *h, struct cw_task *t)
{
    (void)h;
    if (t->script != NULL)
        unlink(t->script);
    free(t->script);
    t->script = NULL;
}

static int make_env(struct cw_herd *h, struct cw_task *t, struct cw_error *err)
{
    (void)err;
    cw_planning_env(h, t);
    return 0;
}

static const struct step steps[] = {
    { "identity", make_identity, NULL },
    { "files", make_files, undo_files },
    { "plan", cw_planning_make, cw_planning_drop },
    { "box", make_box, undo_box },
    { "script", make_script, undo_script },
    { "host file", cw_hostfile_make, cw_hostfile_drop },
    { "environment", make_env, NULL },
};

static const char *search_path(const struct cw_strv *env)
{
    for (size_t i = 0; i < env->n; i++)
        if (strncmp(env->v[i], "PATH=", 5) == 0)
            return env->v[i] + 5;
    return NULL;
}

/* argv of the process: the script and its arguments, or the command as given, byte for byte. */
static char **make_argv(struct cw_task *t, char *script)
{
    const Cw__Payload *p = t->start->payload;
    char **argv = cw_arena_alloc(t->arena, (p->n_argv + 2) * sizeof *argv);
    size_t n = 0;
    if (script != NULL)
        argv[n++] = script;
    for (size_t i = 0; i < p->n_argv; i++)
        argv[n++] = p->argv[i];
    return argv;
}

static int spawn(struct cw_herd *h, struct cw_task *t, int *ret_exit, struct cw_error *err)
{
    cpu_set_t cpus;
    char *script = t->script;
    if (t->fd_script >= 0)
        script = cw_arena_printf(t->arena, "/proc/self/fd/%d", t->fd_script);
    char **argv = make_argv(t, script);
    if (argv[0] == NULL)
        return cw_fail(err, -EINVAL, "the job has neither a script nor a command");
    int fd_out = t->fd_out >= 0 ? t->fd_out : h->dev_null;
    struct cw_spawn s = {
        .file = argv[0],
        .argv = argv,
        .env = t->env.v,
        .search = search_path(&t->env),
        .fd_file = t->fd_script,
        .workdir = t->start->spec->workdir,
        .fd_in = t->fd_in >= 0 ? t->fd_in : h->dev_null,
        .fd_out = fd_out,
        .fd_err = t->fd_err >= 0 ? t->fd_err : fd_out,
        .as = h->root ? t->as : NULL,
        .nofile = h->nofile.rlim_max != 0 ? &h->nofile : NULL,
        .cpus = cw_planning_cpus(h, t, &cpus) ? &cpus : NULL,
        .ctx = cw_plug_ctx(t->isolation),
        .box = t->box,
        .enter = CW_PLUG_HAS(isolation, t->isolation, enter)
                     ? CW_PLUG_OPS(isolation, t->isolation)->enter
                     : NULL,
    };
    cw_planning_limits(t, &s);
    cw_crashpoint("shepherd.before-spawn");
    pid_t pid = cw_spawn(&s, ret_exit, err);
    if (pid < 0)
        return (int)pid;
    cw_crashpoint("shepherd.after-spawn");
    t->pid = pid;
    t->start_ns = cw_clock_real_ns();
    t->cpus_bound = s.ret_bound;
    if (CW_PLUG_HAS(isolation, t->isolation, started))
        CW_PLUG_OPS(isolation, t->isolation)->started(cw_plug_ctx(t->isolation), t->box, pid);
    return 0;
}

/* Nothing to start: it waits for steps. */
static void stand(struct cw_herd *h, struct cw_task *t)
{
    cpu_set_t cpus;
    t->start_ns = cw_clock_real_ns();
    t->cpus_bound = cw_planning_cpus(h, t, &cpus);
}

int cw_steps_run(struct cw_herd *h, struct cw_task *t, int *ret_exit, struct cw_error *err)
{
    int rc = 0;
    size_t done = 0;
    *ret_exit = 0;
    while (rc == 0 && done < CW_ARRAY_LEN(steps)) {
        rc = steps[done].make(h, t, err);
        done++; /* undo tolerates half-done steps, so the failing one is undone too */
    }
    if (rc == 0 && t->headless)
        stand(h, t);
    else if (rc == 0)
        rc = spawn(h, t, ret_exit, err);
    if (rc == 0)
        return 0;
    while (done-- > 0)
        if (steps[done].undo != NULL)
            steps[done].undo(h, t);
    return rc;
}

void cw_steps_finish(struct cw_task *t)
{
    cw_outfiles_close(t);
    cw_strv_fini(&t->env);
    t->start = NULL;
    t->as = NULL;
    cw_arena_destroy(t->arena);
    t->arena = NULL;
}

int cw_steps_tear_down(struct cw_herd *h, struct cw_task *t)
{
    undo_script(h, t);
    cw_hostfile_drop(h, t);
    if (t->plan != NULL || t->n_volumes > 0)
        cw_planning_drop(h, t);
    return release_box(t);
}
