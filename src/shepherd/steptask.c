/* Starts the ranks of a step; see steptask.h. */
#include "shepherd/steptask.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "proto/walk.h"
#include "shepherd/leftover.h"
#include "shepherd/outfiles.h"
#include "shepherd/planning.h"
#include "shepherd/spawn.h"
#include "shepherd/stepbind.h"
#include "shepherd/stepio.h"
#include "shepherd/steppty.h"
#include "spec/outpath.h"
#include "spec/stepenv.h"

/* A file of the step here; ranks whose pattern gives the same path share it. */
struct step_file {
    char *path;
    int fd;
};

/* What the ranks of one step share while they start. */
struct launch {
    struct cw_step *s;
    struct cw_herd *h;
    const Cw__StepSpec *spec;
    Cw__TaskStart *job; /* START of the task, its grant the step's */
    struct cw_runas *as;
    struct cw_arena *arena;
    const char *workdir;
    struct cw_stepcpu cpus[CPU_SETSIZE];
    size_t n_cpus;
    bool bound, each_its_share;
    struct step_file *files;
    size_t n_files;
    char number[16];
};

/* Descriptors of one rank-to-be; those of the files are the launch's. */
struct stdio {
    int in, out, err;           /* the child's */
    int own[3], n_own;          /* of these, to be closed here after the start */
    int session[3];             /* ours: by cw_stepfd_kind, -1 none */
    bool tty;
};

/* ---- descriptors ---------------------------------------------------------------------------- */

static int user_error(struct launch *l, int rc, const char *what, const char *path,
                      struct cw_error *err)
{
    return cw_fail(err, rc, "%s %s: %s (as user %s on node %s)", what, path, strerror(-rc),
                   l->as->name, l->h->node);
}

/* Several nodes append to one file; else it begins anew. */
static bool shared_by_nodes(const struct launch *l, const char *pattern)
{
    return l->s->layout->n_nodes > 1 && strstr(pattern, "%t") == NULL &&
           strstr(pattern, "%n") == NULL && strstr(pattern, "%N") == NULL;
}

static int open_file(struct launch *l, const struct cw_steptask *t, const char *pattern,
                     bool output, int *ret, struct cw_error *err)
{
    const Cw__TaskStart *j = l->job;
    struct cw_outpath_vars v = { .id = j->key->id,
                                 .array_id = j->has_index ? j->job_id : 0,
                                 .index = j->index,
                                 .attempt = j->key->attempt,
                                 .user = l->as->name,
                                 .name = l->s->name,
                                 .host = l->h->node,
                                 .step = l->number,
                                 .rank = t->rank,
                                 .node = l->s->layout->node };
    cw_autobuf struct cw_buf path = { 0 };
    int rc = cw_outpath_expand(pattern, l->workdir, &v, &path, err);
    if (rc < 0)
        return cw_wrap(err, rc, output ? "output file" : "input file");
    for (size_t i = 0; output && i < l->n_files; i++)
        if (strcmp(l->files[i].path, cw_buf_str(&path)) == 0) {
            *ret = l->files[i].fd;
            return 0;
        }
    rc = cw_runas_enter(l->h->identities, l->as, err);
    if (rc < 0)
        return rc;
    int fd = output ? cw_outfiles_open_output(cw_buf_str(&path), shared_by_nodes(l, pattern))
                    : cw_outfiles_open_input(cw_buf_str(&path));
    cw_runas_leave(l->h->identities);
    if (fd < 0)
        return user_error(l, fd, output ? "output file" : "input file", cw_buf_str(&path), err);
    l->files = cw_xrealloc(l->files, l->n_files + 1, sizeof *l->files);
    l->files[l->n_files++] = (struct step_file){ cw_buf_steal(&path), fd };
    *ret = fd;
    return 0;
}

/* child_reads: the child has the reading end. */
static int open_pipe(struct stdio *io, enum cw_stepfd_kind kind, int *ret_child,
                     struct cw_error *err)
{
    int p[2];
    if (pipe2(p, O_CLOEXEC) < 0)
        return cw_fail_node(err, -errno, "pipe: %s", strerror(errno));
    bool child_reads = kind == CW_STEPFD_IN;
    *ret_child = p[child_reads ? 0 : 1];
    io->own[io->n_own++] = *ret_child;
    io->session[kind] = p[child_reads ? 1 : 0];
    return 0;
}

static int open_tty(struct launch *l, struct stdio *io, struct cw_error *err)
{
    int master, slave;
    int rc = cw_steppty_open(l->s->task->uid, l->h->root, l->spec->rows, l->spec->cols, &master,
                             &slave, err);
    if (rc < 0)
        return rc;
    io->own[io->n_own++] = slave;
    io->session[CW_STEPFD_OUT] = master;
    io->session[CW_STEPFD_IN] = fcntl(master, F_DUPFD_CLOEXEC, 3);
    l->s->pty = fcntl(master, F_DUPFD_CLOEXEC, 3);
    if (io->session[CW_STEPFD_IN] < 0 || l->s->pty < 0)
        return cw_fail_node(err, -errno, "terminal: %s", strerror(errno));
    io->in = io->out = io->err = slave;
    io->tty = true;
    return 0;
}

static int open_input(struct launch *l, const struct cw_steptask *t, struct stdio *io,
                      struct cw_error *err)
{
    const Cw__StepSpec *s = l->spec;
    if (s->stdin_path != NULL)
        return open_file(l, t, s->stdin_path, false, &io->in, err);
    if (s->has_stdin_task && s->stdin_task >= 0 && (uint32_t)s->stdin_task != t->rank)
        return 0;
    return open_pipe(io, CW_STEPFD_IN, &io->in, err);
}

static int open_stdio(struct launch *l, const struct cw_steptask *t, struct stdio *io,
                      struct cw_error *err)
{
    const Cw__StepSpec *s = l->spec;
    *io = (struct stdio){ l->h->dev_null, l->h->dev_null, l->h->dev_null, { -1, -1, -1 }, 0,
                          { -1, -1, -1 }, false };
    if (s->has_pty && s->pty && t == &l->s->tasks[0])
        return open_tty(l, io, err);
    int rc = open_input(l, t, io, err);
    if (rc == 0)
        rc = s->stdout_path != NULL ? open_file(l, t, s->stdout_path, true, &io->out, err)
                                    : open_pipe(io, CW_STEPFD_OUT, &io->out, err);
    if (rc == 0 && s->stderr_path != NULL)
        rc = open_file(l, t, s->stderr_path, true, &io->err, err);
    else if (rc == 0 && s->stdout_path != NULL)
        io->err = io->out;
    else if (rc == 0)
        rc = open_pipe(io, CW_STEPFD_ERR, &io->err, err);
    return rc;
}

/* ---- one rank ------------------------------------------------------------------------------- */

/* "per-task:N": N of the step's GPUs for each rank in turn; anything else: all for all. */
static void gpus_of(const struct launch *l, size_t local, Cw__Grant *g)
{
    unsigned each = 0;
    const char *rule = l->spec->gpu_bind;
    if (rule == NULL || sscanf(rule, "per-task:%u", &each) != 1 || each == 0)
        return;
    size_t from = local * each < g->n_gpus ? local * each : g->n_gpus;
    g->gpus += from;
    g->n_gpus = g->n_gpus - from < each ? g->n_gpus - from : each;
}

static int make_env(struct launch *l, const struct cw_steptask *t, const char *cpus,
                    struct cw_strv *env, struct cw_error *err)
{
    struct cw_herd *h = l->h;
    const struct cw_task *task = l->s->task;
    size_t local = (size_t)(t - l->s->tasks);
    Cw__Grant grant = *l->s->layout->grant;
    Cw__StepLayout layout = *l->s->layout;
    Cw__TaskStart job = *l->job;
    layout.grant = job.grant = &grant;
    gpus_of(l, local, &grant);
    struct cw_jobenv_node n = { .name = h->node,
                                .hostname = h->hostname,
                                .tmpdir = "/tmp",
                                .home = l->as->home,
                                .user = l->as->name,
                                .shell = l->as->shell,
                                .hostfile = task->hostfile,
                                .now_ns = task->start_ns };
    struct cw_stepenv_task where = { .step = l->s->number,
                                     .rank = t->rank,
                                     .local = (uint32_t)local,
                                     .cpus = cpus };
    cw_stepenv_build(&job, l->spec, &layout, &where, &n, env);
    cw_planning_env_lines(task->plan, env);
    /* The task as it stood when it was started, but with the step's GPUs. */
    struct cw_task face = *task;
    face.arena = l->arena;
    face.start = &job;
    face.as = l->as;
    face.plan = NULL;
    int rc = cw_planning_gpus(h, &face, err);
    cw_planning_env_lines(face.plan, env);
    cw_plan_destroy(face.plan);
    return rc;
}

static bool cpus_of(const struct launch *l, size_t local, cpu_set_t *ret)
{
    if (!l->bound)
        return false;
    return l->each_its_share ? cw_stepbind_share(l->cpus, l->n_cpus, local, l->s->n, ret)
                             : cw_stepbind_share(l->cpus, l->n_cpus, 0, 1, ret);
}

static void format_cpus(const cpu_set_t *set, struct cw_buf *out)
{
    struct cw_idset ids = { 0 };
    for (uint64_t c = 0; c < CPU_SETSIZE; c++)
        if (CPU_ISSET(c, set))
            cw_idset_add(&ids, c, c);
    cw_idset_format(&ids, out);
    cw_idset_fini(&ids);
}

static const char *search_path(const struct cw_strv *env)
{
    for (size_t i = 0; i < env->n; i++)
        if (strncmp(env->v[i], "PATH=", 5) == 0)
            return env->v[i] + 5;
    return NULL;
}

static int spawn(struct launch *l, struct cw_steptask *t, const struct stdio *io,
                 struct cw_error *err)
{
    struct cw_task *task = l->s->task;
    size_t local = (size_t)(t - l->s->tasks);
    cpu_set_t cpus;
    int exit_code = 0;
    cw_autostrv struct cw_strv env = { 0 };
    cw_autobuf struct cw_buf list = { 0 };
    bool bound = cpus_of(l, local, &cpus);
    if (bound)
        format_cpus(&cpus, &list);
    int rc = make_env(l, t, bound ? cw_buf_str(&list) : NULL, &env, err);
    if (rc < 0)
        return rc;
    char **argv = cw_arena_alloc(l->arena, (l->spec->n_argv + 1) * sizeof *argv);
    for (size_t i = 0; i < l->spec->n_argv; i++)
        argv[i] = l->spec->argv[i];
    const struct cw_isolation_ops *ops = CW_PLUG_OPS(isolation, task->isolation);
    struct cw_spawn sp = {
        .file = argv[0],
        .argv = argv,
        .env = env.v,
        .search = search_path(&env),
        .fd_file = -1,
        .workdir = l->workdir,
        .fd_in = io->in,
        .fd_out = io->out,
        .fd_err = io->err,
        .tty = io->tty,
        .as = l->h->root ? l->as : NULL,
        .nofile = l->h->nofile.rlim_max != 0 ? &l->h->nofile : NULL,
        .cpus = bound ? &cpus : NULL,
        .ctx = cw_plug_ctx(task->isolation),
        .box = task->box,
        .enter = CW_PLUG_HAS(isolation, task->isolation, enter) ? ops->enter : NULL,
    };
    cw_planning_limits(task, &sp);
    pid_t pid = cw_spawn(&sp, &exit_code, err);
    t->exit_code = (uint32_t)exit_code;
    if (pid < 0)
        return (int)pid;
    t->pid = pid;
    if (CW_PLUG_HAS(isolation, task->isolation, started))
        ops->started(cw_plug_ctx(task->isolation), task->box, pid);
    return 0;
}

static void not_started(struct cw_steptask *t, const struct cw_error *err)
{
    struct cw_step *s = t->step;
    t->ended = true;
    t->message = cw_xstrdup(err->text);
    s->n_ended++;
    if (err->fault == CW_FAULT_USER)
        s->fault_user = true;
    else
        s->fault_node = true;
}

static void start_one(struct launch *l, struct cw_steptask *t)
{
    struct cw_error err = { 0 };
    struct stdio io;
    int rc = open_stdio(l, t, &io, &err);
    if (rc == 0)
        rc = spawn(l, t, &io, &err);
    for (int i = 0; i < io.n_own; i++)
        close(io.own[i]);
    struct cw_stepfd *to[] = { &t->out, &t->err, &t->in };
    for (int i = 0; i < 3; i++)
        if (io.session[i] >= 0 && rc == 0)
            cw_stepio_open(to[i], t, (enum cw_stepfd_kind)i, io.session[i]);
        else if (io.session[i] >= 0)
            close(io.session[i]);
    if (rc < 0)
        not_started(t, &err);
}

/* ---- all ------------------------------------------------------------------------------------ */

static void bind(struct launch *l)
{
    cpu_set_t set;
    const char *rule = l->spec->cpu_bind;
    l->bound = cw_planning_cpu_set(l->h, l->s->layout->grant->cpus, &set);
    if (l->bound)
        l->n_cpus = cw_stepbind_list(&set, l->cpus);
    l->each_its_share = !(l->spec->has_exec && l->spec->exec) &&
                        (rule == NULL || strcmp(rule, "none") != 0);
}

/* The job's limit as far as it is left, for CRUN_END_TIME. */
static void set_time_left(struct launch *l)
{
    const struct cw_task *t = l->s->task;
    int64_t left = t->limit_at - cw_herd_now_ms();
    int64_t gone = (cw_clock_real_ns() - t->start_ns) / CW_NS_PER_MS;
    l->job->has_time_left_ms = t->limit_at != 0 && left + gone > 0;
    l->job->time_left_ms = l->job->has_time_left_ms ? (uint64_t)(left + gone) : 0;
}

void cw_steptask_start_all(struct cw_step *s, const Cw__StepSpec *spec)
{
    struct cw_error err = { 0 };
    ProtobufCMessage *m = NULL;
    cw_autofree struct launch *l = cw_xcalloc(1, sizeof *l);
    *l = (struct launch){ .s = s, .h = s->herd, .spec = spec, .arena = cw_arena_create() };
    int rc = cw_walk_unpack_stored(&cw__task_start__descriptor, s->task->brief.data,
                                   s->task->brief.len, l->arena, &m, &err);
    if (rc == 0 && spec->n_argv == 0)
        rc = cw_fail(&err, -EINVAL, "there is no command to start");
    for (size_t i = 0; rc < 0 && i < s->n; i++)
        not_started(&s->tasks[i], &err);
    if (rc == 0) {
        l->job = (Cw__TaskStart *)m;
        l->as = cw_runas_find(l->h->identities, s->task->uid, s->task->gid, cw_herd_now_ms());
        l->workdir = spec->workdir != NULL        ? spec->workdir
                     : l->job->spec->workdir != NULL ? l->job->spec->workdir
                                                     : "/";
        snprintf(l->number, sizeof l->number, "%u", s->number);
        set_time_left(l);
        bind(l);
        for (size_t i = 0; i < s->n; i++)
            start_one(l, &s->tasks[i]);
    }
    for (size_t i = 0; i < l->n_files; i++) {
        close(l->files[i].fd);
        free(l->files[i].path);
    }
    free(l->files);
    cw_arena_destroy(l->arena);
}

void cw_steptask_signal(const struct cw_step *s, int signo)
{
    for (size_t i = 0; i < s->n; i++) {
        const struct cw_steptask *t = &s->tasks[i];
        if (t->pid == 0 || t->ended)
            continue; /* not reaped: the number is still its own */
        kill(-t->pid, signo);
        if (signo == SIGKILL)
            cw_leftover_kill_session(t->pid);
    }
}
