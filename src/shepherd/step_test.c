/* Steps in a real crun-shepherd with real commands, asked as a node daemon asks. Needs the built
 * crun-shepherd and plugins in the build folder, where tests run. */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/clock.h"
#include "base/file.h"
#include "proto/walk.h"
#include "shepherd/shepherdrig.h"
#include "shepherd/stepcall.h"

#define RANKS_MAX 8

static uint64_t last_token = 1000;

/* A step as the command and the controller make it. */
struct spec {
    Cw__StepSpec s;
    Cw__StepLayout l;
    Cw__Grant g;
    uint32_t ranks[RANKS_MAX], per_node[1];
    char *argv[16], *env[8], *nodes[1];
    uint64_t job;
    uint32_t step;
};

static char *word(const char *s)
{
    return (char *)(uintptr_t)s;
}

static struct spec *step_of(uint64_t job, uint32_t step, uint32_t ranks, const char *first, ...)
{
    struct spec *p = cw_arena_alloc(cw_rig.arena, sizeof *p);
    va_list ap;
    cw__step_spec__init(&p->s);
    cw__step_layout__init(&p->l);
    cw__grant__init(&p->g);
    p->job = job;
    p->step = step;
    va_start(ap, first);
    for (const char *a = first; a != NULL; a = va_arg(ap, const char *))
        p->argv[p->s.n_argv++] = word(a);
    va_end(ap);
    p->s.argv = p->argv;
    p->s.env = p->env;
    p->env[p->s.n_env++] = word("PATH=/usr/bin:/bin");
    p->g.node = word("n1");
    p->g.cores = p->g.cpus = word("");
    p->l.grant = &p->g;
    for (uint32_t i = 0; i < ranks; i++)
        p->ranks[i] = i;
    p->l.n_ranks = p->l.ntasks = p->per_node[0] = ranks;
    p->l.ranks = p->ranks;
    p->nodes[0] = word("n1");
    p->l.n_nodes = p->l.n_tasks_per_node = 1;
    p->l.nodes = p->nodes;
    p->l.tasks_per_node = p->per_node;
    return p;
}

static uint64_t send_call(const struct spec *p, enum cw_stepcall_kind kind,
                          const ProtobufCMessage *m)
{
    Cw__TicketBody t = CW__TICKET_BODY__INIT;
    Cw__Owner owner = CW__OWNER__INIT;
    cw_autobuf struct cw_buf facts = { 0 }, request = { 0 }, packet = { 0 };
    owner.uid = owner.gid = cw_rig.uid;
    t.id = p->job;
    t.attempt = 1;
    t.right = word("step");
    t.owner = &owner;
    t.has_step = 1;
    t.step = p->step;
    t.layout = (Cw__StepLayout *)(uintptr_t)&p->l;
    cw_walk_pack(&t.base, &facts);
    cw_walk_pack(m, &request);
    struct cw_stepcall c = { ++last_token, kind,       facts.data,
                             request.data, facts.len, request.len };
    cw_stepcall_pack(&c, &packet);
    assert_int_equal(
        cw_packets_add(cw_rig.p, CW_PACKET_STEP_CALL, packet.data, packet.len), 0);
    cw_packets_flush(cw_rig.p);
    return c.token;
}

/* 0 or the refusal's code; the reply is decoded. */
static int answer_to(uint64_t token, const ProtobufCMessageDescriptor *d, ProtobufCMessage **ret)
{
    int64_t end = cw_clock_mono_ns() / CW_NS_PER_MS + 30000;
    do {
        cw_list_each(l, &cw_rig.got) {
            struct cw_rig_got *g = cw_list_entry(l, struct cw_rig_got, link);
            struct cw_stepanswer a;
            if (g->type != CW_PACKET_STEP_ANSWER ||
                cw_stepanswer_unpack(g->body.data, g->body.len, &a) < 0 || a.token != token)
                continue;
            int code = a.code;
            if (code == 0)
                assert_int_equal(cw_walk_unpack(d, a.body, a.n, cw_rig.arena, ret, NULL), 0);
            cw_rig_drop(g);
            return code;
        }
    } while (cw_rig_pump(end));
    fail_msg("no answer");
    return -1;
}

static int start(const struct spec *p)
{
    Cw__StepStartRequest m = CW__STEP_START_REQUEST__INIT;
    ProtobufCMessage *r;
    m.spec = (Cw__StepSpec *)(uintptr_t)&p->s;
    return answer_to(send_call(p, CW_STEPCALL_START, &m.base),
                     &cw__step_start_reply__descriptor, &r);
}

static const Cw__StepReadReply *read_from(const struct spec *p, uint64_t seq, uint32_t wait_ms)
{
    Cw__StepReadRequest m = CW__STEP_READ_REQUEST__INIT;
    ProtobufCMessage *r = NULL;
    m.seq = seq;
    m.has_wait_ms = 1;
    m.wait_ms = wait_ms;
    assert_int_equal(answer_to(send_call(p, CW_STEPCALL_READ, &m.base),
                               &cw__step_read_reply__descriptor, &r),
                     0);
    return (const Cw__StepReadReply *)r;
}

static uint64_t write_at(const struct spec *p, uint64_t offset, const char *text, bool eof)
{
    Cw__StepWriteRequest m = CW__STEP_WRITE_REQUEST__INIT;
    ProtobufCMessage *r = NULL;
    m.offset = offset;
    m.has_data = 1;
    m.data = (ProtobufCBinaryData){ strlen(text), (uint8_t *)word(text) };
    m.has_eof = 1;
    m.eof = eof;
    m.has_wait_ms = 1;
    m.wait_ms = 5000;
    assert_int_equal(answer_to(send_call(p, CW_STEPCALL_WRITE, &m.base),
                               &cw__step_write_reply__descriptor, &r),
                     0);
    return ((const Cw__StepWriteReply *)r)->taken;
}

static int control(const struct spec *p, Cw__StepVerb verb, uint32_t signo, uint32_t rows,
                   uint32_t cols)
{
    Cw__StepCtlRequest m = CW__STEP_CTL_REQUEST__INIT;
    ProtobufCMessage *r;
    m.verb = verb;
    m.has_signal = m.has_rows = m.has_cols = 1;
    m.signal = signo;
    m.rows = rows;
    m.cols = cols;
    return answer_to(send_call(p, CW_STEPCALL_CTL, &m.base), &cw__step_ctl_reply__descriptor, &r);
}

/* Everything from seq to the end: output (and, apart, error) of all ranks, and the last reply. */
static const Cw__StepReadReply *read_all_from(const struct spec *p, uint64_t seq,
                                              struct cw_buf *out, struct cw_buf *err)
{
    for (;;) {
        const Cw__StepReadReply *r = read_from(p, seq, 20000);
        assert_false(r->has_lost && r->lost > seq && seq > 0);
        for (size_t i = 0; i < r->n_chunks; i++) {
            const Cw__StepChunk *c = r->chunks[i];
            assert_true(c->seq >= seq); /* in order, none twice */
            seq = c->seq + 1;
            struct cw_buf *to = c->err && err != NULL ? err : out;
            cw_buf_add(to, c->data.data, c->data.len);
        }
        assert_int_equal(r->n_chunks > 0 ? r->next_seq : seq, seq);
        if (r->eof)
            return r;
    }
}

static const Cw__StepReadReply *read_all(const struct spec *p, struct cw_buf *out)
{
    return read_all_from(p, 1, out, NULL);
}

/* The next report of a step. */
static const Cw__StepReport *report(void)
{
    struct cw_rig_got *g = cw_rig_take(CW_PACKET_STEP_REPORT, 0);
    ProtobufCMessage *m;
    assert_int_equal(cw_walk_unpack(&cw__step_report__descriptor, g->body.data, g->body.len,
                                    cw_rig.arena, &m, NULL),
                     0);
    cw_rig_drop(g);
    return (const Cw__StepReport *)m;
}

static void ack(const struct spec *p, bool end)
{
    struct cw_stepack a = { p->job, 1, p->step, end };
    cw_autobuf struct cw_buf b = { 0 };
    cw_stepack_pack(&a, &b);
    cw_packets_add(cw_rig.p, CW_PACKET_STEP_ACK, b.data, b.len);
    cw_packets_flush(cw_rig.p);
}

static uint64_t allocation(void)
{
    struct cw_rig_job j = cw_rig_job(NULL, NULL);
    j.spec.has_allocation = j.spec.allocation = 1;
    uint64_t id = cw_rig_run(&j);
    cw_rig_started_of(id);
    return id;
}

/* ---- output and ends ------------------------------------------------------------------------ */

static void output_and_exit_codes_of_every_rank_arrive_and_are_reported(void **state)
{
    (void)state;
    cw_autobuf struct cw_buf out = { 0 }, err = { 0 };
    struct spec *p = step_of(allocation(), 0, 3, "sh", "-c",
                             "test $CRUN_PROCID = 1 || exit $CRUN_PROCID; echo out; echo bad >&2",
                             NULL);
    assert_int_equal(start(p), 0);
    const Cw__StepReadReply *r = read_all_from(p, 1, &out, &err);
    assert_string_equal(cw_buf_str(&out), "out\n");
    assert_string_equal(cw_buf_str(&err), "bad\n");
    assert_int_equal(r->n_ends, 3);
    for (size_t i = 0; i < 3; i++)
        assert_int_equal(r->ends[i]->exit_code, r->ends[i]->rank == 1 ? 0 : r->ends[i]->rank);
    assert_int_equal(r->cause, CW__CAUSE__CAUSE_EXIT);
    const Cw__StepReport *s = report(), *e = report();
    assert_true(s->started && s->step->state == CW__STATE__RUNNING && s->step->ntasks == 3);
    assert_false(e->has_started && e->started);
    assert_int_equal(e->step->exit_code, 2);
    assert_int_equal(e->step->state, CW__STATE__FAILED);
    assert_true(e->step->usage != NULL && e->step->usage->maxrss_bytes > 0);
}

static void argv_arrives_byte_for_byte(void **state)
{
    (void)state;
    cw_autobuf struct cw_buf out = { 0 };
    struct spec *p = step_of(allocation(), 0, 1, "sh", "-c", "for a; do printf '%s|' \"$a\"; done",
                             "x", "a b", "", "-n", "*", "$HOME", "q\"'\n", "\xff", NULL);
    assert_int_equal(start(p), 0);
    read_all(p, &out);
    assert_string_equal(cw_buf_str(&out), "a b||-n|*|$HOME|q\"'\n|\xff|");
}

static void a_command_that_is_not_there_is_an_end_with_a_sentence(void **state)
{
    (void)state;
    cw_autobuf struct cw_buf out = { 0 };
    struct spec *p = step_of(allocation(), 0, 2, "no-such-command", NULL);
    assert_int_equal(start(p), 0);
    const Cw__StepReadReply *r = read_all(p, &out);
    assert_int_equal(r->n_ends, 2);
    assert_int_equal(r->ends[0]->exit_code, 127);
    assert_non_null(strstr(r->ends[1]->message, "no-such-command"));
    assert_int_equal(r->cause, CW__CAUSE__CAUSE_LAUNCH_USER);
    report();
    assert_int_equal(report()->step->cause, CW__CAUSE__CAUSE_LAUNCH_USER);
}

static void starting_twice_is_one_step(void **state)
{
    (void)state;
    cw_autobuf struct cw_buf out = { 0 };
    struct spec *p = step_of(allocation(), 4, 1, "sh", "-c", "echo once", NULL);
    assert_int_equal(start(p), 0);
    assert_int_equal(start(p), 0);
    read_all(p, &out);
    assert_string_equal(cw_buf_str(&out), "once\n");
}

static void the_environment_is_the_steps_over_the_jobs(void **state)
{
    (void)state;
    cw_autobuf struct cw_buf out = { 0 };
    uint64_t id = allocation();
    struct spec *p = step_of(
        id, 7, 2, "sh", "-c",
        "test $CRUN_PROCID = 3 && echo "
        "$CRUN_JOB_ID $CRUN_STEP_ID $CRUN_LOCALID $CRUN_NTASKS $CRUN_NODELIST $MINE $SLURM_PROCID",
        NULL);
    p->ranks[0] = 2;
    p->ranks[1] = 3;
    p->l.ntasks = 4;
    p->env[p->s.n_env++] = word("MINE=yes");
    p->env[p->s.n_env++] = word("CRUN_PROCID=77"); /* the system's own: not taken */
    p->s.has_slurm_env = p->s.slurm_env = 1;
    assert_int_equal(start(p), 0);
    read_all(p, &out);
    cw_autofree char *want = cw_xasprintf("%llu 7 1 4 n1 yes 3\n", (unsigned long long)id);
    assert_string_equal(cw_buf_str(&out), want);
}

static void a_command_runs_as_the_jobs_user(void **state)
{
    (void)state;
    cw_autobuf struct cw_buf out = { 0 };
    struct spec *p = step_of(allocation(), 0, 1, "sh", "-c", "id -u; id -G; ulimit -c", NULL);
    p->l.has_exec = p->l.exec = 1;
    assert_int_equal(start(p), 0);
    read_all(p, &out);
    cw_autofree char *want = cw_xasprintf("%u\n%u\n", cw_rig.uid, cw_rig.uid);
    assert_memory_equal(cw_buf_str(&out), want, strlen(want));
}

static void output_files_are_opened_by_pattern_as_the_user(void **state)
{
    (void)state;
    cw_autobuf struct cw_buf out = { 0 };
    struct spec *p = step_of(allocation(), 5, 2, "sh", "-c", "echo $CRUN_PROCID; echo e >&2", NULL);
    p->s.stdout_path = word("o-%s-%t.txt");
    p->s.stderr_path = word("e.txt");
    assert_int_equal(start(p), 0);
    read_all(p, &out);
    assert_int_equal(out.len, 0);
    assert_string_equal(cw_rig_text_of("o-5-0.txt"), "0\n");
    assert_string_equal(cw_rig_text_of("o-5-1.txt"), "1\n");
    assert_string_equal(cw_rig_text_of("e.txt"), "e\ne\n");
    struct stat st;
    assert_int_equal(stat(cw_rig_in_dir("e.txt"), &st), 0);
    assert_int_equal(st.st_uid, cw_rig.uid);
}

/* ---- sessions ------------------------------------------------------------------------------- */

static void input_goes_to_every_rank_by_offset_until_its_end(void **state)
{
    (void)state;
    cw_autobuf struct cw_buf out = { 0 };
    struct spec *p = step_of(allocation(), 0, 2, "cat", NULL);
    assert_int_equal(start(p), 0);
    assert_int_equal(write_at(p, 0, "hello ", false), 6);
    assert_int_equal(write_at(p, 0, "hello ", false), 6); /* sent again: taken once */
    assert_int_equal(write_at(p, 3, "lo world\n", true), 12);
    read_all(p, &out);
    assert_int_equal(out.len, 24);
    assert_non_null(strstr(cw_buf_str(&out), "world\n"));
}

static void input_for_one_rank_leaves_the_others_without(void **state)
{
    (void)state;
    cw_autobuf struct cw_buf out = { 0 };
    struct spec *p = step_of(allocation(), 0, 3, "sed", "s/^/got /", NULL);
    p->s.has_stdin_task = 1;
    p->s.stdin_task = 1;
    assert_int_equal(start(p), 0);
    write_at(p, 0, "it\n", true);
    read_all(p, &out);
    assert_string_equal(cw_buf_str(&out), "got it\n");
}

static void input_that_nobody_reads_is_closed(void **state)
{
    (void)state;
    cw_autobuf struct cw_buf out = { 0 };
    struct spec *p = step_of(allocation(), 0, 1, "sh", "-c", "exec <&-; echo; exec sleep 60", NULL);
    assert_int_equal(start(p), 0);
    read_from(p, 1, 5000);
    Cw__StepWriteRequest m = CW__STEP_WRITE_REQUEST__INIT;
    ProtobufCMessage *r = NULL;
    m.has_data = 1;
    m.data = (ProtobufCBinaryData){ 1, (uint8_t *)word("x") };
    assert_int_equal(answer_to(send_call(p, CW_STEPCALL_WRITE, &m.base),
                               &cw__step_write_reply__descriptor, &r),
                     0);
    assert_true(((const Cw__StepWriteReply *)r)->closed);
    assert_int_equal(control(p, CW__STEP_VERB__STEP_KILL, SIGKILL, 0, 0), 0);
    read_all_from(p, 2, &out, NULL);
}

static void more_output_than_the_ring_waits_for_its_reader_and_comes_once(void **state)
{
    (void)state;
    enum { LINES = 600000 };
    cw_autobuf struct cw_buf out = { 0 };
    cw_autofree char *count = cw_xasprintf("%d", LINES);
    struct spec *p = step_of(allocation(), 0, 1, "seq", count, NULL);
    assert_int_equal(start(p), 0);
    const Cw__StepReadReply *r = read_from(p, 1, 5000);
    assert_false(r->eof); /* 4 MB do not fit: it is still there */
    read_all(p, &out);
    const char *at = cw_buf_str(&out);
    for (int i = 1; i <= LINES; i++) {
        char *end;
        if (strtol(at, &end, 10) != i || *end != '\n')
            fail_msg("line %d is lost or doubled: %.20s", i, at);
        at = end + 1;
    }
    assert_int_equal(*at, '\0');
}

static void a_detached_step_drops_its_oldest_output_and_says_so(void **state)
{
    (void)state;
    cw_autobuf struct cw_buf out = { 0 };
    struct spec *p = step_of(allocation(), 0, 1, "seq", "600000", NULL);
    p->s.has_detached = p->s.detached = 1;
    assert_int_equal(start(p), 0);
    report();
    report(); /* it has ended without a reader */
    const Cw__StepReadReply *r = read_from(p, 1, 5000);
    assert_true(r->has_lost && r->lost > 1);
    read_all_from(p, r->lost, &out, NULL);
    assert_true(out.len > 900000 && out.len < 1024 * 1024);
    assert_string_equal(cw_buf_str(&out) + out.len - 7, "600000\n");
    out.len = 0;
    read_all_from(p, r->lost, &out, NULL); /* another reader sees the same */
    assert_true(out.len > 900000);
}

static void output_is_there_within_50_ms(void **state)
{
    (void)state;
    struct spec *p = step_of(allocation(), 0, 1, "sh", "-c",
                             "read x; echo one; read x; echo two", NULL);
    assert_int_equal(start(p), 0);
    int64_t worst = 0;
    for (int i = 0; i < 2; i++) {
        write_at(p, (uint64_t)i * 2, "g\n", false);
        int64_t t0 = cw_clock_mono_ns();
        const Cw__StepReadReply *r = read_from(p, (uint64_t)i + 1, 20000);
        int64_t ms = (cw_clock_mono_ns() - t0) / CW_NS_PER_MS;
        worst = ms > worst ? ms : worst;
        assert_int_equal(r->n_chunks, 1);
    }
    print_message("# %lld ms\n", (long long)worst);
    assert_true(worst < 50);
}

static void a_terminal_has_its_size_and_its_last_byte_comes_before_the_end(void **state)
{
    (void)state;
    cw_autobuf struct cw_buf out = { 0 };
    struct spec *p = step_of(
        allocation(), 0, 1, "sh", "-c",
        "test -t 0 && test -t 2 && stty size && sh -c 'echo tty >/dev/tty' && read x && stty size "
        "&& seq 20000",
        NULL);
    p->s.has_pty = p->s.pty = 1;
    p->s.has_rows = p->s.has_cols = 1;
    p->s.rows = 31;
    p->s.cols = 97;
    assert_int_equal(start(p), 0);
    assert_int_equal(control(p, CW__STEP_VERB__STEP_WINDOW, 0, 40, 120), 0);
    write_at(p, 0, "go\n", false);
    const Cw__StepReadReply *r = read_all(p, &out);
    assert_int_equal(r->ends[0]->exit_code, 0);
    assert_non_null(strstr(cw_buf_str(&out), "tty\r\n"));
    assert_non_null(strstr(cw_buf_str(&out), "40 120\r\n"));
    assert_string_equal(cw_buf_str(&out) + out.len - 14, "19999\r\n20000\r\n");
}

static void a_terminal_hears_the_interrupt_key_and_the_end_of_input(void **state)
{
    (void)state;
    cw_autobuf struct cw_buf out = { 0 };
    struct spec *p = step_of(allocation(), 0, 1, "sh", "-c",
                             "trap 'echo int' INT; echo ready; read x; cat; echo done", NULL);
    p->s.has_pty = p->s.pty = 1;
    assert_int_equal(start(p), 0);
    read_from(p, 1, 5000);
    write_at(p, 0, "\x03", false);
    const Cw__StepReadReply *r = read_from(p, 2, 5000);
    assert_true(r->n_chunks > 0);
    write_at(p, 1, "x\n", true);
    read_all_from(p, r->next_seq, &out, NULL);
    assert_non_null(strstr(cw_buf_str(&out), "done\r\n"));
}

/* ---- how a step ends ------------------------------------------------------------------------ */

static void a_bad_exit_kills_the_others_where_that_is_asked_for(void **state)
{
    (void)state;
    cw_autobuf struct cw_buf out = { 0 };
    struct spec *p = step_of(allocation(), 0, 3, "sh", "-c",
                             "test $CRUN_PROCID = 1 && exit 9; exec sleep 60", NULL);
    p->s.has_kill_on_bad_exit = p->s.kill_on_bad_exit = 1;
    assert_int_equal(start(p), 0);
    const Cw__StepReadReply *r = read_all(p, &out);
    assert_int_equal(r->n_ends, 3);
    assert_int_equal(r->cause, CW__CAUSE__CAUSE_EXIT);
    for (size_t i = 0; i < 3; i++)
        assert_true(r->ends[i]->rank == 1 ? r->ends[i]->exit_code == 9
                                          : r->ends[i]->signal == SIGTERM);
}

static void ranks_that_sleep_on_are_killed_when_the_wait_is_over(void **state)
{
    (void)state;
    cw_autobuf struct cw_buf out = { 0 };
    struct spec *p = step_of(allocation(), 0, 2, "sh", "-c",
                             "test $CRUN_PROCID = 0 && exit 0; trap '' TERM; sleep 60; sleep 60",
                             NULL);
    p->s.has_wait_s = 1;
    p->s.wait_s = 1;
    assert_int_equal(start(p), 0);
    const Cw__StepReadReply *r = read_all(p, &out);
    assert_int_equal(r->cause, CW__CAUSE__CAUSE_PEER);
}

static void without_a_wait_the_others_go_on(void **state)
{
    (void)state;
    struct spec *p = step_of(allocation(), 0, 2, "sh", "-c",
                             "test $CRUN_PROCID = 0 && exit 0; exec sleep 60", NULL);
    assert_int_equal(start(p), 0);
    const Cw__StepReadReply *r = read_from(p, 1, 10000); /* one end is worth an answer */
    assert_int_equal(r->n_ends, 1);
    assert_false(r->eof);
    r = read_from(p, 1, 300);
    assert_int_equal(r->n_ends, 1);
}

static void the_time_limit_of_a_step_holds(void **state)
{
    (void)state;
    cw_autobuf struct cw_buf out = { 0 };
    struct spec *p = step_of(allocation(), 0, 1, "sleep", "60", NULL);
    p->s.has_time_limit_s = 1;
    p->s.time_limit_s = 1;
    assert_int_equal(start(p), 0);
    assert_int_equal(read_all(p, &out)->cause, CW__CAUSE__CAUSE_TIME_LIMIT);
    report();
    assert_int_equal(report()->step->state, CW__STATE__TIMEOUT);
}

static void a_signal_reaches_every_rank(void **state)
{
    (void)state;
    cw_autobuf struct cw_buf out = { 0 };
    struct spec *p = step_of(allocation(), 0, 2, "sh", "-c",
                             "trap 'echo usr; exit 4' USR1; echo up; while :; do sleep 0.1; done",
                             NULL);
    assert_int_equal(start(p), 0);
    uint64_t seq = 1;
    while (out.len < 6) {
        const Cw__StepReadReply *r = read_from(p, seq, 5000);
        for (size_t i = 0; i < r->n_chunks; i++)
            cw_buf_add(&out, r->chunks[i]->data.data, r->chunks[i]->data.len);
        seq = r->next_seq;
    }
    assert_int_equal(control(p, CW__STEP_VERB__STEP_SIGNAL, SIGUSR1, 0, 0), 0);
    out.len = 0;
    const Cw__StepReadReply *r = read_all_from(p, seq, &out, NULL);
    assert_non_null(strstr(cw_buf_str(&out), "usr\n"));
    assert_int_equal(r->ends[0]->exit_code, 4);
}

static void what_a_rank_leaves_in_the_background_ends_with_it(void **state)
{
    (void)state;
    cw_autobuf struct cw_buf out = { 0 };
    struct spec *p = step_of(allocation(), 0, 1, "sh", "-c", "sleep 60 & echo $!", NULL);
    assert_int_equal(start(p), 0);
    int64_t t0 = cw_clock_mono_ns();
    read_all(p, &out);
    assert_true((cw_clock_mono_ns() - t0) / CW_NS_PER_MS < 5000);
    pid_t pid = (pid_t)strtol(cw_buf_str(&out), NULL, 10);
    assert_true(pid > 1);
    while (kill(pid, 0) == 0) { /* until the shepherd has reaped it */
        assert_true((cw_clock_mono_ns() - t0) / CW_NS_PER_MS < 5000);
        poll(NULL, 0, 5);
    }
}

static void a_killed_job_ends_its_steps_first_and_their_output_can_still_be_read(void **state)
{
    (void)state;
    cw_autobuf struct cw_buf out = { 0 };
    uint64_t id = allocation();
    struct spec *p = step_of(id, 0, 1, "sh", "-c",
                             "trap 'echo bye; exit 3' TERM; echo up; while :; do sleep 0.1; done",
                             NULL);
    assert_int_equal(start(p), 0);
    report();
    read_from(p, 1, 5000);
    cw_rig_kill(id, 5000);
    const Cw__StepReport *e = report();
    assert_int_equal(e->step->cause, CW__CAUSE__CAUSE_CANCEL);
    const Cw__TaskEnd *end = cw_rig_end_of(id);
    assert_true(end->empty && !end->has_exit_code);
    cw_rig_forget(id);
    const Cw__StepReadReply *r = read_all_from(p, 2, &out, NULL);
    assert_non_null(strstr(cw_buf_str(&out), "bye\n"));
    assert_int_equal(r->cause, CW__CAUSE__CAUSE_CANCEL);
    assert_int_equal(start(step_of(id, 1, 1, "true", NULL)), -ESRCH); /* nothing new begins */
}

static void the_leaders_end_ends_the_steps_of_a_batch_job(void **state)
{
    (void)state;
    cw_autobuf struct cw_buf out = { 0 };
    struct cw_rig_job j = cw_rig_job("/bin/sh", "-c", "read x <gate", NULL);
    cw_autofree char *gate = cw_xasprintf("%s/gate", cw_rig.dir);
    assert_int_equal(mkfifo(gate, 0666), 0);
    chmod(gate, 0666);
    uint64_t id = cw_rig_run(&j);
    cw_rig_started_of(id);
    struct spec *p = step_of(id, 0, 2, "sleep", "60", NULL);
    assert_int_equal(start(p), 0);
    assert_int_equal(cw_file_write_all(open(gate, O_WRONLY | O_CLOEXEC), "x\n", 2), 0);
    assert_int_equal(read_all(p, &out)->cause, CW__CAUSE__CAUSE_CANCEL);
    assert_int_equal(cw_rig_end_of(id)->exit_code, 0);
}

static void a_new_daemon_finds_the_step_running_and_hears_its_reports_until_it_acks(void **state)
{
    (void)state;
    cw_autobuf struct cw_buf out = { 0 };
    struct spec *p = step_of(allocation(), 0, 1, "sh", "-c", "echo a; read x; echo b", NULL);
    assert_int_equal(start(p), 0);
    report();
    assert_int_equal(read_from(p, 1, 5000)->n_chunks, 1);
    cw_rig_connect_again(); /* the old one is gone without a word */
    assert_true(report()->started);
    write_at(p, 0, "x\n", false);
    read_all(p, &out); /* nothing was acknowledged to the old daemon's reader */
    assert_string_equal(cw_buf_str(&out), "a\nb\n");
    assert_false(report()->started);
    cw_rig_connect_again();
    assert_true(report()->started);
    assert_false(report()->started);
    ack(p, true);
    cw_rig_connect_again();
    cw_list_each(l, &cw_rig.got)
        assert_int_not_equal(cw_list_entry(l, struct cw_rig_got, link)->type,
                             CW_PACKET_STEP_REPORT);
}

static void an_unread_step_does_not_keep_a_shepherd_that_shall_go(void **state)
{
    (void)state;
    uint64_t id = allocation();
    struct spec *p = step_of(id, 0, 1, "echo", "unread", NULL);
    assert_int_equal(start(p), 0);
    report();
    report();
    cw_rig_kill(id, 0);
    cw_rig_end_of(id);
    cw_rig_forget(id);
    cw_packets_add(cw_rig.p, CW_PACKET_QUIT, NULL, 0);
    cw_packets_flush(cw_rig.p);
    cw_packets_destroy(cw_rig.p);
    cw_rig.p = NULL;
    int64_t t0 = cw_clock_mono_ns();
    assert_int_equal(cw_rig_wait(), 0);
    cw_rig.pid = 0;
    assert_true((cw_clock_mono_ns() - t0) / CW_NS_PER_MS < 10000);
}

static void another_users_ticket_is_refused(void **state)
{
    (void)state;
    struct spec *p = step_of(allocation(), 0, 1, "true", NULL);
    cw_rig.uid++;
    int rc = start(p);
    cw_rig.uid--;
    assert_int_equal(rc, -EACCES);
    p->step = 9;
    assert_int_equal(control(p, CW__STEP_VERB__STEP_KILL, 0, 0, 0), -ENOENT);
}

static void usage_of_a_running_task_can_be_asked_for(void **state)
{
    (void)state;
    struct spec *p = step_of(allocation(), 0, 3, "sleep", "60", NULL);
    Cw__StatRequest m = CW__STAT_REQUEST__INIT;
    ProtobufCMessage *r = NULL;
    assert_int_equal(start(p), 0);
    assert_int_equal(answer_to(send_call(p, CW_STEPCALL_STAT, &m.base),
                               &cw__stat_reply__descriptor, &r),
                     0);
    assert_int_equal(((const Cw__StatReply *)r)->processes, 3);
}

#define T(f) cmocka_unit_test_setup_teardown(f, cw_rig_setup, cw_rig_teardown)
int main(void)
{
    const struct CMUnitTest tests[] = {
        T(output_and_exit_codes_of_every_rank_arrive_and_are_reported),
        T(argv_arrives_byte_for_byte),
        T(a_command_that_is_not_there_is_an_end_with_a_sentence),
        T(starting_twice_is_one_step),
        T(the_environment_is_the_steps_over_the_jobs),
        T(a_command_runs_as_the_jobs_user),
        T(output_files_are_opened_by_pattern_as_the_user),
        T(input_goes_to_every_rank_by_offset_until_its_end),
        T(input_for_one_rank_leaves_the_others_without),
        T(input_that_nobody_reads_is_closed),
        T(more_output_than_the_ring_waits_for_its_reader_and_comes_once),
        T(a_detached_step_drops_its_oldest_output_and_says_so),
        T(output_is_there_within_50_ms),
        T(a_terminal_has_its_size_and_its_last_byte_comes_before_the_end),
        T(a_terminal_hears_the_interrupt_key_and_the_end_of_input),
        T(a_bad_exit_kills_the_others_where_that_is_asked_for),
        T(ranks_that_sleep_on_are_killed_when_the_wait_is_over),
        T(without_a_wait_the_others_go_on),
        T(the_time_limit_of_a_step_holds),
        T(a_signal_reaches_every_rank),
        T(what_a_rank_leaves_in_the_background_ends_with_it),
        T(a_killed_job_ends_its_steps_first_and_their_output_can_still_be_read),
        T(the_leaders_end_ends_the_steps_of_a_batch_job),
        T(a_new_daemon_finds_the_step_running_and_hears_its_reports_until_it_acks),
        T(an_unread_step_does_not_keep_a_shepherd_that_shall_go),
        T(another_users_ticket_is_refused),
        T(usage_of_a_running_task_can_be_asked_for),
    };
    signal(SIGPIPE, SIG_IGN);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
