/* ctldrig_test.c: see the header. */
#include "ctld/ctldrig_test.h"

#include <fcntl.h>
#include <ftw.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <sodium.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <setjmp.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/clock.h"
#include "base/file.h"
#include "plug/plug.h"
#include "proto/walk.h"
#include "wire/nnsock.h"
#include "wire/rpc_client.h"
#include "wire/session.h"

#define TASKS_MAX 20000

struct task {
    uint64_t id, end_seq;
    uint32_t attempt;
    bool alive, forgotten;
};
struct rig {
    char dir[64], conf_path[128];
    struct cw_conf *conf;
    struct cw_plug_registry *plugins;
    struct cw_plug *auth;
    pthread_mutex_t auth_lock; /* plugins belong to one thread */
    pid_t pid;
    /* node */
    char name[32];
    struct cw_channel channel;
    struct cw_nnsock *sock;
    struct cw_session *session;
    uint64_t established, received, acked;
    struct task *tasks;
    size_t n_tasks, n_killed;
    bool slow;
};

static void write_text(const char *path, const char *text)
{
    assert_int_equal(cw_file_write_atomic(path, text, strlen(text), 0600, NULL), 0);
}

static int remove_entry(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
    (void)st, (void)type, (void)ftw;
    return remove(path);
}

struct rig *rig_create(void)
{
    struct cw_error err;
    struct rig *r = cw_xcalloc(1, sizeof *r);
    r->tasks = cw_xcalloc(TASKS_MAX, sizeof *r->tasks);
    pthread_mutex_init(&r->auth_lock, NULL);
    assert_true(sodium_init() >= 0);
    setenv("CRUN_PLUGIN_PATH", CW_TEST_PLUGINS, 1);
    snprintf(r->dir, sizeof r->dir, "/tmp/ctldrig.XXXXXX"); /* short: socket paths have 107 bytes */
    assert_non_null(mkdtemp(r->dir));
    snprintf(r->conf_path, sizeof r->conf_path, "%s/crun.conf", r->dir);
    write_text(r->conf_path,
               "cluster = \"rig\"\nallow_root_jobs = true\nheartbeat = 500ms\nnode_lost = 3s\n");
    if (cw_conf_load(r->conf_path, &r->conf, &err) < 0)
        fail_msg("%s", err.text);
    return r;
}

void rig_destroy(struct rig *r)
{
    if (r->pid > 0)
        rig_kill(r);
    cw_session_destroy(r->session);
    cw_nnsock_close(r->sock);
    cw_plug_registry_destroy(r->plugins);
    cw_conf_destroy(r->conf);
    assert_int_equal(nftw(r->dir, remove_entry, 16, FTW_DEPTH | FTW_PHYS), 0);
    free(r->tasks);
    free(r);
}

void rig_start(struct rig *r, const char *fault)
{
    int p[2];
    assert_int_equal(pipe(p), 0);
    r->pid = fork();
    assert_true(r->pid >= 0);
    if (r->pid == 0) {
        char fd[16];
        prctl(PR_SET_PDEATHSIG, SIGKILL); /* a test that fails leaves nothing behind */
        snprintf(fd, sizeof fd, "%d", p[1]);
        setenv("CRUN_READY_FD", fd, 1);
        if (fault != NULL)
            setenv("CRUN_FAULT", fault, 1);
        else
            unsetenv("CRUN_FAULT");
        cw_autofree char *log = cw_file_join(r->dir, "log");
        int out = open(log, O_WRONLY | O_CREAT | O_APPEND, 0600);
        dup2(out, 2);
        close(p[0]);
        execl(CW_TEST_CRUNCTLD, "crunctld", "-c", r->conf_path, (char *)NULL);
        _exit(127);
    }
    close(p[1]);
    char c;
    ssize_t n = read(p[0], &c, 1);
    close(p[0]);
    if (n == 1 && r->plugins == NULL) { /* its first start made the keys */
        struct cw_error err;
        r->plugins = cw_plug_registry_create(r->conf, NULL);
        if (cw_plug_load(r->plugins, "auth", "key", &r->auth, &err) < 0)
            fail_msg("%s", err.text);
    }
}

bool rig_alive(struct rig *r)
{
    if (r->pid > 0 && waitpid(r->pid, NULL, WNOHANG) == r->pid)
        r->pid = 0;
    return r->pid > 0;
}

void rig_kill(struct rig *r)
{
    kill(r->pid, SIGKILL);
    waitpid(r->pid, NULL, 0);
    r->pid = 0;
}

int rig_stop(struct rig *r)
{
    int status = 0;
    kill(r->pid, SIGTERM);
    waitpid(r->pid, &status, 0);
    r->pid = 0;
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

/* ---- the node ------------------------------------------------------------------------------- */

static struct task *task_find(struct rig *r, uint64_t id, uint32_t attempt)
{
    for (size_t i = 0; i < r->n_tasks; i++)
        if (r->tasks[i].id == id && r->tasks[i].attempt == attempt)
            return &r->tasks[i];
    return NULL;
}

size_t rig_ran(struct rig *r, uint64_t id)
{
    size_t n = 0;
    for (size_t i = 0; i < r->n_tasks; i++)
        n += r->tasks[i].id == id;
    return n;
}

void rig_node_slow(struct rig *r)
{
    r->slow = true;
}

size_t rig_killed(struct rig *r)
{
    return r->n_killed;
}

size_t rig_ran_all(struct rig *r)
{
    return r->n_tasks;
}

static void push_started(struct rig *r, struct task *t)
{
    Cw__TaskKey key = CW__TASK_KEY__INIT;
    Cw__TaskStarted started = CW__TASK_STARTED__INIT;
    Cw__NodeRecordMsg m = CW__NODE_RECORD_MSG__INIT;
    key.id = t->id;
    key.attempt = t->attempt;
    started.key = &key;
    started.pid = 1;
    started.start_ns = cw_clock_real_ns();
    m.started = &started;
    assert_int_equal(cw_session_push(r->session, &m, NULL), 0);
}

static void push_end(struct rig *r, struct task *t)
{
    Cw__TaskKey key = CW__TASK_KEY__INIT;
    Cw__TaskEnd end = CW__TASK_END__INIT;
    Cw__NodeRecordMsg m = CW__NODE_RECORD_MSG__INIT;
    key.id = t->id;
    key.attempt = t->attempt;
    end.key = &key;
    end.end_ns = cw_clock_real_ns();
    end.cause = CW__CAUSE__CAUSE_EXIT;
    end.has_exit_code = true;
    end.has_start_ns = true;
    end.start_ns = end.end_ns;
    end.empty = true;
    m.end = &end;
    assert_int_equal(cw_session_push(r->session, &m, &t->end_seq), 0);
}

static void kill_task(struct rig *r, const Cw__TaskKey *key)
{
    struct task *t = task_find(r, key->id, key->attempt);
    if (t == NULL || !t->alive)
        return;
    t->alive = false;
    r->n_killed++;
    push_end(r, t);
}

static void on_send(const void *frame, size_t n, void *arg)
{
    (void)cw_nnsock_send(((struct rig *)arg)->sock, NULL, frame, n);
}

static void on_record(uint64_t seq, const Cw__NodeRecordMsg *m, void *arg)
{
    struct rig *r = arg;
    r->received = seq;
    if (m->kill != NULL)
        kill_task(r, m->kill->key);
    if (m->start == NULL || task_find(r, m->start->key->id, m->start->key->attempt) != NULL)
        return; /* a START may come twice */
    assert_true(r->n_tasks < TASKS_MAX);
    struct task *t = &r->tasks[r->n_tasks++];
    *t =
        (struct task){.id = m->start->key->id, .attempt = m->start->key->attempt, .alive = r->slow};
    push_started(r, t);
    if (!t->alive)
        push_end(r, t);
}

static void on_acked(uint64_t seq, void *arg)
{
    struct rig *r = arg;
    for (size_t i = 0; i < r->n_tasks; i++)
        if (r->tasks[i].end_seq != 0 && r->tasks[i].end_seq <= seq)
            r->tasks[i].forgotten = true;
}

static bool on_hello(struct cw_buf *out, void *arg)
{
    struct rig *r = arg;
    Cw__NodeHello h = CW__NODE_HELLO__INIT;
    Cw__NodeRecord node = CW__NODE_RECORD__INIT;
    Cw__Inventory inv = CW__INVENTORY__INIT;
    Cw__Core core[4], *cores[4];
    struct cw_arena *a = cw_arena_create();
    for (uint32_t i = 0; i < 4; i++) {
        cw__core__init(&core[i]);
        core[i].logical = i;
        core[i].n_pus = 1;
        core[i].pus = &core[i].logical;
        cores[i] = &core[i];
    }
    inv.cores = cores;
    inv.n_cores = 4;
    inv.mem_bytes = 1ull << 34;
    node.name = r->name;
    node.inventory = &inv;
    h.node = &node;
    h.epoch = 1;
    h.tasks = cw_arena_alloc(a, (r->n_tasks + 1) * sizeof *h.tasks);
    for (size_t i = 0; i < r->n_tasks; i++) {
        if (r->tasks[i].forgotten)
            continue;
        Cw__TaskStatus *s = cw_arena_alloc(a, sizeof *s);
        cw__task_status__init(s);
        s->key = cw_arena_alloc(a, sizeof *s->key);
        cw__task_key__init(s->key);
        s->key->id = r->tasks[i].id;
        s->key->attempt = r->tasks[i].attempt;
        s->state = r->tasks[i].alive ? CW__STATE__RUNNING : CW__STATE__COMPLETED;
        h.tasks[h.n_tasks++] = s;
    }
    cw_walk_pack(&h.base, out);
    cw_arena_destroy(a);
    return true;
}

static void on_welcome(const Cw__NodeWelcome *m, void *arg)
{
    struct rig *r = arg;
    r->received = r->acked = 0;
    for (size_t i = 0; i < r->n_tasks; i++)
        r->tasks[i].end_seq = 0;
    for (size_t i = 0; i < r->n_tasks; i++) {
        if (!r->tasks[i].forgotten)
            push_started(r, &r->tasks[i]);
        if (!r->tasks[i].forgotten && !r->tasks[i].alive)
            push_end(r, &r->tasks[i]);
    }
    for (size_t i = 0; i < m->n_kill; i++)
        kill_task(r, m->kill[i]);
}

static void on_silent(void *arg)
{
    cw_nnsock_reconnect(((struct rig *)arg)->sock);
}

static const struct cw_session_ops node_ops = {.send = on_send,
                                               .record = on_record,
                                               .acked = on_acked,
                                               .hello = on_hello,
                                               .welcome_arrived = on_welcome,
                                               .silent = on_silent};

void rig_node_join(struct rig *r, const char *name)
{
    uint8_t pub[32], cred[CW_AUTH_CRED_MAX];
    size_t len = 0;
    struct cw_error err;
    struct cw_plugin_err perr;
    snprintf(r->name, sizeof r->name, "%s", name);
    if (cw_public_key_load(r->conf->public_key_file, pub, &err) < 0)
        fail_msg("%s", err.text);
    assert_int_equal(cw_channel_initiate(pub, &r->channel), 0);
    pthread_mutex_lock(&r->auth_lock);
    assert_int_equal(CW_PLUG_OPS(auth, r->auth)
                         ->node_credential(cw_plug_ctx(r->auth), name, r->channel.eph_pub, cred,
                                           sizeof cred, &len, &perr),
                     0);
    pthread_mutex_unlock(&r->auth_lock);
    assert_int_equal(cw_nnsock_connect(r->conf->node_connect, &r->sock, NULL), 0);
    r->session = cw_session_create_node(&r->channel, cred, len, 1, 500, &node_ops, r);
}

static void node_turn(struct rig *r)
{
    cw_autobuf struct cw_buf in = {0};
    struct cw_frame f;
    int64_t now = cw_clock_mono_ns() / CW_NS_PER_MS;
    uint64_t established = cw_nnsock_established(r->sock);
    if (established != r->established) {
        r->established = established;
        cw_session_reconnected(r->session, now);
    }
    while (cw_nnsock_recv(r->sock, NULL, &in) == 0) {
        if (cw_frame_unpack(in.data, in.len, &f, NULL) == 0)
            (void)cw_session_frame(r->session, &f, now, NULL);
        cw_buf_clear(&in);
    }
    if (r->received != r->acked) {
        cw_session_ack(r->session, r->received);
        r->acked = r->received;
    }
    cw_session_tick(r->session, now);
    cw_session_flush(r->session, now);
}

void rig_node(struct rig *r, uint32_t ms, const atomic_bool *until)
{
    int64_t end = cw_clock_mono_ns() + ms * CW_NS_PER_MS;
    while (cw_clock_mono_ns() < end && (until == NULL || !*until)) {
        struct pollfd p = {.fd = cw_nnsock_fd(r->sock), .events = POLLIN};
        poll(&p, 1, 20);
        node_turn(r);
    }
}

/* ---- clients -------------------------------------------------------------------------------- */

static int credential(const uint8_t bind[32], uint8_t *buf, size_t cap, size_t *ret_len, void *arg,
                      struct cw_error *err)
{
    struct rig *r = arg;
    struct cw_plugin_err perr = {{0}};
    pthread_mutex_lock(&r->auth_lock);
    int rc = CW_PLUG_OPS(auth, r->auth)
                 ->credential(cw_plug_ctx(r->auth), bind, buf, cap, ret_len, &perr);
    pthread_mutex_unlock(&r->auth_lock);
    return rc < 0 ? cw_fail(err, rc, "%s", perr.text) : 0;
}

int rig_call(struct rig *r, enum cw_kind kind, const ProtobufCMessage *m, uint32_t timeout_ms,
             struct cw_arena *a, ProtobufCMessage **ret, struct cw_error *err)
{
    uint8_t pub[32];
    struct cw_rpc_client *c;
    int rc = cw_public_key_load(r->conf->public_key_file, pub, err);
    if (rc == 0)
        rc = cw_rpc_client_open(r->conf->client_connect, pub, credential, r, &c, err);
    if (rc < 0)
        return rc;
    rc = cw_rpc_client_call(c, kind, m, timeout_ms, a, ret, err);
    cw_rpc_client_close(c);
    return rc;
}

uint64_t rig_submit(struct rig *r, const uint8_t key[16])
{
    Cw__SubmitRequest req = CW__SUBMIT_REQUEST__INIT;
    Cw__SubmitItem item = CW__SUBMIT_ITEM__INIT, *items[] = {&item};
    Cw__JobSpec spec = CW__JOB_SPEC__INIT;
    Cw__Payload payload = CW__PAYLOAD__INIT;
    char *argv[] = {(char *)"/bin/true"};
    payload.n_argv = 1;
    payload.argv = argv;
    spec.name = (char *)"true";
    spec.workdir = (char *)"/";
    item.request_key = (ProtobufCBinaryData){16, (uint8_t *)key};
    item.spec = &spec;
    item.payload = &payload;
    req.n_items = 1;
    req.items = items;
    for (;;) {
        struct cw_error err = {0};
        struct cw_arena *a = cw_arena_create();
        ProtobufCMessage *m;
        uint64_t id = 0;
        int rc = rig_call(r, CW_KIND_SUBMIT, &req.base, 3000, a, &m, &err);
        if (rc == 0) {
            const Cw__SubmitReply *reply = (const Cw__SubmitReply *)m;
            if (reply->results[0]->failure != NULL)
                fail_msg("%s", reply->results[0]->failure->text);
            id = reply->results[0]->job_id;
        }
        cw_arena_destroy(a);
        if (id != 0)
            return id;
        poll(NULL, 0, 10); /* the controller is being brought back */
    }
}
