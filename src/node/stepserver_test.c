/* Steps through the node's own socket: a real crun-shepherd behind a node daemon's parts on a loop
 * in a thread, asked by the blocking client with tickets made here. A daemon that dies is one whose
 * parts go without a word. */
#include <errno.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/clock.h"
#include "node/crund.h"
#include "node/logserver.h"
#include "node/stepserver.h"
#include "node/taskflow.h"
#include "shepherd/shepherdrig.h"
#include "wire/rpc_client.h"
#include "wire/ticket.h"

static struct daemon {
    struct cw_node node;
    struct cw_shepherd_link link;
    struct cw_loop_io *io;
    pthread_t thread;
    bool up;
} d;
static struct cw_rpc_client *client;
static uint64_t job;

/* ---- the node daemon ------------------------------------------------------------------------ */

static void on_packet(enum cw_packet_type type, const void *body, size_t n, int fd, void *arg)
{
    (void)arg;
    cw_taskflow_shepherds_ops.packet(&d.link, type, body, n, fd, &d.node);
}

static void on_io(int fd, int events, void *arg)
{
    (void)fd;
    (void)events;
    (void)arg;
    while (cw_packets_recv(d.link.packets, on_packet, NULL) == 0)
        ;
}

static void on_turn_end(void *arg)
{
    (void)arg;
    cw_packets_flush(d.link.packets);
}

static void *run(void *arg)
{
    cw_loop_run(arg);
    return NULL;
}

static void daemon_start(void)
{
    cw_autofree char *name = cw_xasprintf("%s.sock", cw_rig.id);
    struct cw_node *n = &d.node;
    struct cw_error err;
    int fd;
    n->name = "n1";
    n->loop = cw_loop_create();
    n->epoch = (uint64_t)cw_clock_real_ns();
    n->tasks = cw_tasktab_create();
    n->address = cw_xasprintf("ipc://%s/node.ipc", cw_rig.dir);
    n->steps = cw_stepserver_create(n);
    if (cw_logserver_open(n, &n->logs, &err) < 0)
        fail_msg("%s", err.text);
    assert_int_equal(cw_packet_connect(cw_rig.shep_dir, name, &fd, &err), 0);
    snprintf(d.link.id, sizeof d.link.id, "%s", cw_rig.id);
    d.link.packets = cw_packets_create(fd);
    d.io = cw_loop_io_open(n->loop, fd, CW_LOOP_READ, on_io, NULL);
    cw_loop_on_turn_end(n->loop, on_turn_end, NULL);
    assert_int_equal(pthread_create(&d.thread, NULL, run, n->loop), 0);
    d.up = true;
}

static void daemon_die(void)
{
    struct cw_node *n = &d.node;
    if (!d.up)
        return;
    d.up = false;
    cw_loop_stop(n->loop);
    pthread_join(d.thread, NULL);
    cw_stepserver_destroy(n->steps);
    cw_logserver_close(n->logs);
    cw_tasktab_destroy(n->tasks);
    cw_loop_io_close(d.io);
    cw_packets_destroy(d.link.packets);
    cw_loop_destroy(n->loop);
    free(n->address);
}

static int setup(void **state)
{
    struct cw_rig_job j;
    struct cw_error err;
    if (cw_rig_setup(state) != 0)
        return -1;
    j = cw_rig_job(NULL, NULL);
    j.spec.has_allocation = j.spec.allocation = 1;
    job = cw_rig_run(&j);
    cw_rig_started_of(job);
    memset(d.node.ticket_key, 7, sizeof d.node.ticket_key);
    cw_keypair_make(&d.node.key);
    daemon_start();
    return cw_rpc_client_open(d.node.address, d.node.key.pub, NULL, NULL, &client, &err);
}

static int teardown(void **state)
{
    cw_rpc_client_close(client);
    daemon_die();
    return cw_rig_teardown(state);
}

/* ---- the command ---------------------------------------------------------------------------- */

static ProtobufCBinaryData ticket(const char *right, uint64_t id, int64_t life_ns)
{
    Cw__TicketBody t = CW__TICKET_BODY__INIT;
    Cw__Owner owner = CW__OWNER__INIT;
    Cw__StepLayout l = CW__STEP_LAYOUT__INIT;
    Cw__Grant g = CW__GRANT__INIT;
    struct cw_buf b = { 0 };
    char *node = (char *)(uintptr_t) "n1";
    uint32_t rank = 0, one = 1;
    g.node = node;
    g.cores = g.cpus = (char *)(uintptr_t) "";
    l.nodes = &node;
    l.tasks_per_node = &one;
    l.ranks = &rank;
    l.n_nodes = l.n_tasks_per_node = l.n_ranks = 1;
    l.ntasks = 1;
    l.grant = &g;
    owner.uid = owner.gid = cw_rig.uid;
    t.id = id;
    t.attempt = 1;
    t.right = (char *)(uintptr_t)right;
    t.expires_ns = cw_clock_real_ns() + life_ns;
    t.owner = &owner;
    t.has_step = 1;
    t.layout = &l;
    cw_ticket_make(d.node.ticket_key, &t, &b);
    uint8_t *copy = cw_arena_alloc(cw_rig.arena, b.len);
    memcpy(copy, b.data, b.len);
    ProtobufCBinaryData r = { b.len, copy };
    cw_buf_fini(&b);
    return r;
}

static int call(enum cw_kind kind, const ProtobufCMessage *m, ProtobufCMessage **ret,
                struct cw_error *err)
{
    return cw_rpc_client_call(client, kind, m, 30000, cw_rig.arena, ret, err);
}

static int start_with(ProtobufCBinaryData t, const char *script, struct cw_error *err)
{
    Cw__StepStartRequest m = CW__STEP_START_REQUEST__INIT;
    Cw__StepSpec s = CW__STEP_SPEC__INIT;
    ProtobufCMessage *r;
    char *argv[] = { (char *)(uintptr_t) "/bin/sh", (char *)(uintptr_t) "-c",
                     (char *)(uintptr_t)script };
    s.argv = argv;
    s.n_argv = 3;
    m.ticket = t;
    m.spec = &s;
    return call(CW_KIND_STEP_START, &m.base, &r, err);
}

static const Cw__StepReadReply *read_from(uint64_t seq, uint32_t wait_ms)
{
    Cw__StepReadRequest m = CW__STEP_READ_REQUEST__INIT;
    ProtobufCMessage *r = NULL;
    struct cw_error err;
    m.ticket = ticket("step", job, CW_NS_PER_S * 60);
    m.seq = seq;
    m.has_wait_ms = 1;
    m.wait_ms = wait_ms;
    int rc = call(CW_KIND_STEP_READ, &m.base, &r, &err);
    if (rc < 0)
        fail_msg("%s", err.text);
    return (const Cw__StepReadReply *)r;
}

static void give(const char *text)
{
    Cw__StepWriteRequest m = CW__STEP_WRITE_REQUEST__INIT;
    ProtobufCMessage *r;
    struct cw_error err;
    m.ticket = ticket("step", job, CW_NS_PER_S * 60);
    m.has_data = 1;
    m.data = (ProtobufCBinaryData){ strlen(text), (uint8_t *)(uintptr_t)text };
    assert_int_equal(call(CW_KIND_STEP_WRITE, &m.base, &r, &err), 0);
}

/* The daemon hears of its tasks a moment after it is up. */
static void start(const char *script)
{
    struct cw_error err;
    int64_t end = cw_clock_mono_ns() + 20 * CW_NS_PER_S;
    int rc;
    while ((rc = start_with(ticket("step", job, CW_NS_PER_S * 60), script, &err)) == -ESRCH &&
           cw_clock_mono_ns() < end)
        cw_rpc_client_pause(client, 10);
    if (rc < 0)
        fail_msg("%s", err.text);
}

static const char *text_of(const Cw__StepReadReply *r)
{
    cw_autobuf struct cw_buf b = { 0 };
    for (size_t i = 0; i < r->n_chunks; i++)
        cw_buf_add(&b, r->chunks[i]->data.data, r->chunks[i]->data.len);
    return cw_arena_strdup(cw_rig.arena, cw_buf_str(&b));
}

static void a_step_is_started_read_and_ends_through_the_nodes_socket(void **state)
{
    (void)state;
    start("read x; echo got $x; exit 3");
    give("it\n");
    const Cw__StepReadReply *r = read_from(1, 10000);
    assert_string_equal(text_of(r), "got it\n");
    while (!r->eof)
        r = read_from(r->next_seq, 10000);
    assert_int_equal(r->ends[0]->exit_code, 3);
}

static void a_ticket_that_is_not_for_it_is_refused(void **state)
{
    (void)state;
    struct cw_error err;
    start("true"); /* from here on the task is known */
    assert_int_equal(start_with(ticket("logs", job, CW_NS_PER_S * 60), "true", &err), -EACCES);
    assert_non_null(strstr(err.text, "needed is \"step\""));
    assert_int_equal(start_with(ticket("step", job, -CW_NS_PER_S), "true", &err), -EKEYEXPIRED);
    assert_int_equal(start_with(ticket("step", 777, CW_NS_PER_S * 60), "true", &err), -ESRCH);
    assert_non_null(strstr(err.text, "job 777 is not on node n1"));
    ProtobufCBinaryData forged = ticket("step", job, CW_NS_PER_S * 60);
    forged.data[forged.len - 1] ^= 1;
    assert_int_equal(start_with(forged, "true", &err), -EACCES);
}

static void a_daemon_that_dies_costs_the_step_nothing(void **state)
{
    (void)state;
    start("echo one; read x; echo two; exit 5");
    const Cw__StepReadReply *r = read_from(1, 10000);
    assert_string_equal(text_of(r), "one\n");
    daemon_die();
    daemon_start();
    start("exit 99"); /* the same step: it runs already, nothing begins */
    give("x\n");
    r = read_from(1, 10000); /* what was not acknowledged comes again */
    assert_non_null(strstr(text_of(r), "one\n"));
    while (r->n_chunks > 0 && strstr(text_of(r), "two\n") == NULL)
        r = read_from(r->next_seq, 10000);
    assert_non_null(strstr(text_of(r), "two\n"));
    while (!r->eof)
        r = read_from(r->next_seq, 10000);
    assert_int_equal(r->ends[0]->exit_code, 5);
}

static void usage_is_asked_with_a_right_of_its_own(void **state)
{
    (void)state;
    Cw__StatRequest m = CW__STAT_REQUEST__INIT;
    ProtobufCMessage *r;
    struct cw_error err;
    start("exec sleep 60");
    m.ticket = ticket("step", job, CW_NS_PER_S * 60);
    assert_int_equal(call(CW_KIND_STAT, &m.base, &r, &err), -EACCES);
    m.ticket = ticket("stat", job, CW_NS_PER_S * 60);
    assert_int_equal(call(CW_KIND_STAT, &m.base, &r, &err), 0);
    assert_int_equal(((const Cw__StatReply *)r)->processes, 1);
}

#define T(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
int main(void)
{
    const struct CMUnitTest tests[] = {
        T(a_step_is_started_read_and_ends_through_the_nodes_socket),
        T(a_ticket_that_is_not_for_it_is_refused),
        T(a_daemon_that_dies_costs_the_step_nothing),
        T(usage_is_asked_with_a_right_of_its_own),
    };
    signal(SIGPIPE, SIG_IGN);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
