/* The promises of the session, one by one. */
#include "config.h"

#include "wire/sessionworld.h"

#include "base/mem.h"

#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

static void pump(struct cw_sessionworld *w, int n)
{
    while (n-- > 0) {
        w->now_ms += 1;
        cw_sessionworld_deliver_due(w);
    }
}

/* Both sides linked, nothing in flight, no owner at work. */
static struct cw_sessionworld *linked(void)
{
    struct cw_sessionworld *w = cw_sessionworld_create();

    w->delay_ms = 0;
    cw_session_tick(w->node.s, w->now_ms);
    pump(w, 5);
    assert_true(cw_session_up(w->node.s));
    assert_non_null(w->ctl.s);
    assert_true(cw_session_up(w->ctl.s));
    assert_int_equal(w->n, 0);
    return w;
}

static unsigned count_type(const struct cw_sessionworld *w, uint8_t type)
{
    unsigned n = 0;
    struct cw_frame f;

    for (unsigned i = 0; i < w->n; i++)
        n += cw_frame_unpack(w->p[i].data, w->p[i].n, &f, NULL) == 0 && f.type == type;
    return n;
}

static void only_durable_records_are_acknowledged(void **state)
{
    struct cw_sessionworld *w = linked();

    (void)state;
    cw_sessionworld_push_number(&w->node, 1);
    cw_sessionworld_push_number(&w->node, 2);
    cw_session_flush(w->node.s, w->now_ms);
    pump(w, 3);
    assert_int_equal(w->ctl.applied, 2);
    cw_session_flush(w->ctl.s, w->now_ms);
    assert_int_equal(w->n, 0); /* taken in, not yet stored: not a word */
    cw_session_ack(w->ctl.s, 1);
    cw_session_flush(w->ctl.s, w->now_ms);
    assert_int_equal(count_type(w, CW_FRAME_ACK), 1);
    pump(w, 3);
    assert_int_equal(w->node.acked, 1);
    cw_session_ack(w->ctl.s, 99); /* never taken in: ignored */
    cw_session_flush(w->ctl.s, w->now_ms);
    assert_int_equal(w->n, 0);
    cw_sessionworld_destroy(w);
}

static void one_data_frame_is_in_flight(void **state)
{
    struct cw_sessionworld *w = linked();

    (void)state;
    cw_sessionworld_push_number(&w->ctl, 1);
    cw_session_flush(w->ctl.s, w->now_ms);
    cw_sessionworld_push_number(&w->ctl, 2);
    cw_session_flush(w->ctl.s, w->now_ms);
    assert_int_equal(count_type(w, CW_FRAME_DATA), 1);
    pump(w, 3);
    assert_int_equal(w->node.applied, 1);
    cw_session_ack(w->node.s, 1);
    cw_session_flush(w->node.s, w->now_ms);
    pump(w, 3); /* the acknowledgement lets the next one go, without a tick */
    assert_int_equal(w->node.applied, 2);
    cw_sessionworld_destroy(w);
}

static void frames_hold_64_kib_or_one_record(void **state)
{
    struct cw_sessionworld *w = linked();
    Cw__NodeRecordMsg m = CW__NODE_RECORD_MSG__INIT;
    Cw__TaskStarted st = CW__TASK_STARTED__INIT;
    Cw__TaskKey k = CW__TASK_KEY__INIT;
    char *path = cw_xcalloc(1, CW_FRAME_BODY_MAX + 1);

    (void)state;
    st.key = &k;
    st.stdout_path = path;
    m.started = &st;
    memset(path, 'p', CW_FRAME_BODY_MAX);
    assert_int_equal(cw_session_push(w->node.s, &m, NULL), -EMSGSIZE);
    path[200000] = '\0';
    assert_int_equal(cw_session_push(w->node.s, &m, NULL), 0);
    assert_int_equal(cw_session_push(w->node.s, &m, NULL), 0);
    cw_session_flush(w->node.s, w->now_ms);
    assert_int_equal(w->n, 1);
    assert_in_range(w->p[0].n, 200000, 201000);
    free(path);
    cw_sessionworld_destroy(w);
}

static void full_queue_refuses(void **state)
{
    struct cw_sessionworld *w = linked();
    Cw__NodeRecordMsg m = CW__NODE_RECORD_MSG__INIT;

    (void)state;
    for (unsigned i = 0; i < CW_SESSION_QUEUE_MAX; i++)
        assert_int_equal(cw_session_push(w->node.s, &m, NULL), 0);
    assert_int_equal(cw_session_push(w->node.s, &m, NULL), -ENOBUFS);
    cw_sessionworld_destroy(w);
}

static void resend_waits_200_ms_doubling_to_2_s(void **state)
{
    struct cw_sessionworld *w = linked();
    int64_t at[8], last;
    unsigned n = 0;
    uint64_t frames;

    (void)state;
    w->loss_pct = 100;
    cw_sessionworld_push_number(&w->ctl, 1);
    cw_session_flush(w->ctl.s, w->now_ms);
    last = w->now_ms;
    frames = w->ctl.n_frames;
    while (n < 8) {
        w->now_ms += 10;
        cw_session_tick(w->ctl.s, w->now_ms);
        if (w->ctl.n_frames == frames)
            continue;
        frames = w->ctl.n_frames;
        at[n++] = w->now_ms - last;
        last = w->now_ms;
    }
    assert_int_equal(at[0], 200);
    assert_int_equal(at[1], 400);
    assert_int_equal(at[2], 800);
    assert_int_equal(at[3], 1600);
    assert_int_equal(at[4], 2000);
    assert_int_equal(at[7], 2000);
    cw_sessionworld_destroy(w);
}

static void copied_and_changed_frames_are_refused(void **state)
{
    struct cw_sessionworld *w = linked();
    struct cw_frame f;
    struct cw_packet p;

    (void)state;
    cw_sessionworld_push_number(&w->node, 1);
    cw_session_flush(w->node.s, w->now_ms);
    p = w->p[0];
    w->n = 0;
    for (size_t i = 3; i < p.n; i += 3) {
        p.data[i] ^= 0x10;
        if (cw_frame_unpack(p.data, p.n, &f, NULL) == 0)
            assert_true(cw_session_frame(w->ctl.s, &f, w->now_ms, NULL) < 0);
        p.data[i] ^= 0x10;
    }
    assert_int_equal(w->ctl.applied, 0);
    assert_int_equal(cw_frame_unpack(p.data, p.n, &f, NULL), 0);
    assert_int_equal(cw_session_frame(w->ctl.s, &f, w->now_ms, NULL), 0);
    assert_int_equal(cw_session_frame(w->ctl.s, &f, w->now_ms, NULL), -ESTALE);
    assert_int_equal(w->ctl.applied, 1);
    free(p.data);
    cw_sessionworld_destroy(w);
}

static void idle_link_stays_up_by_heartbeats(void **state)
{
    struct cw_sessionworld *w = linked();

    (void)state;
    for (int i = 0; i < 1000; i++) {
        w->now_ms += 20;
        cw_sessionworld_deliver_due(w);
        cw_session_tick(w->node.s, w->now_ms);
        cw_session_tick(w->ctl.s, w->now_ms);
    }
    assert_true(cw_session_up(w->node.s));
    assert_true(cw_session_up(w->ctl.s));
    assert_int_equal(w->node.n_silent + w->ctl.n_silent, 0);
    assert_in_range(w->node.n_frames, 15, 30); /* one PING a heartbeat */
    cw_sessionworld_destroy(w);
}

static void silence_is_told_after_three_heartbeats(void **state)
{
    struct cw_sessionworld *w = linked();
    int64_t from = w->now_ms;

    (void)state;
    w->loss_pct = 100;
    while (w->node.n_silent == 0 || w->ctl.n_silent == 0) {
        w->now_ms += 20;
        cw_session_tick(w->node.s, w->now_ms);
        cw_session_tick(w->ctl.s, w->now_ms);
        assert_true(w->now_ms - from < 3200);
    }
    assert_true(w->now_ms - from >= 2900);
    assert_false(cw_session_up(w->node.s));
    assert_false(cw_session_up(w->ctl.s));
    cw_sessionworld_destroy(w);
}

static void restarted_controller_is_found_by_its_refusal(void **state)
{
    struct cw_sessionworld *w = linked();
    int64_t from;

    (void)state;
    cw_sessionworld_push_number(&w->node, 1);
    cw_sessionworld_restart_ctl(w);
    cw_session_flush(w->node.s, w->now_ms); /* a DATA that the new controller does not know */
    from = w->now_ms;
    while (w->ctl.s == NULL || !cw_session_up(w->ctl.s)) {
        w->now_ms += 20;
        cw_sessionworld_deliver_due(w);
        cw_session_tick(w->node.s, w->now_ms);
        assert_true(w->now_ms - from < 1600); /* with the refusal at once, without it after 1 s */
    }
    assert_int_equal(w->node.n_pairings, 2);
    assert_int_equal(w->ctl.applied,
                     0); /* the record was dropped: its owner has to push it again */
    cw_sessionworld_destroy(w);
}

static bool say_no(const Cw__NodeHello *m, struct cw_buf *ret_welcome, void *arg)
{
    (void)m;
    (void)ret_welcome;
    (void)arg;
    return false;
}

static void refused_hello_is_eacces(void **state)
{
    struct cw_sessionworld *w = cw_sessionworld_create();
    struct cw_session_ops no = cw_sessionworld_ops;
    struct cw_channel ch;
    struct cw_frame f;
    struct cw_session *s;

    (void)state;
    no.hello_arrived = say_no;
    cw_session_tick(w->node.s, w->now_ms);
    assert_int_equal(w->n, 1);
    assert_int_equal(cw_frame_unpack(w->p[0].data, w->p[0].n, &f, NULL), 0);
    assert_int_equal(cw_channel_respond(&w->key, f.channel_key, &ch), 0);
    s = cw_session_create_controller(&ch, 1, CW_SESSIONWORLD_HEARTBEAT_MS, &no, &w->ctl);
    assert_int_equal(cw_session_frame(s, &f, w->now_ms, NULL), -EACCES);
    cw_session_destroy(s);
    cw_sessionworld_destroy(w);
}

static void hello_carries_the_newest_credential(void **state)
{
    struct cw_sessionworld *w = cw_sessionworld_create();
    uint8_t cred[100];
    struct cw_frame f;

    (void)state;
    memset(cred, 5, sizeof(cred));
    cw_session_set_credential(w->node.s, cred, sizeof(cred));
    cw_session_tick(w->node.s, w->now_ms);
    assert_int_equal(cw_frame_unpack(w->p[0].data, w->p[0].n, &f, NULL), 0);
    assert_int_equal(f.cred_len, sizeof(cred));
    assert_memory_equal(f.cred, cred, sizeof(cred));
    cw_sessionworld_destroy(w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(only_durable_records_are_acknowledged),
        cmocka_unit_test(one_data_frame_is_in_flight),
        cmocka_unit_test(frames_hold_64_kib_or_one_record),
        cmocka_unit_test(full_queue_refuses),
        cmocka_unit_test(resend_waits_200_ms_doubling_to_2_s),
        cmocka_unit_test(copied_and_changed_frames_are_refused),
        cmocka_unit_test(idle_link_stays_up_by_heartbeats),
        cmocka_unit_test(silence_is_told_after_three_heartbeats),
        cmocka_unit_test(restarted_controller_is_found_by_its_refusal),
        cmocka_unit_test(refused_hello_is_eacces),
        cmocka_unit_test(hello_carries_the_newest_credential),
    };

    return cmocka_run_group_tests_name("session", tests, NULL, NULL);
}
