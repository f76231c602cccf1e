/* Exactly once and in order, over a link that loses, doubles, delays and reorders frames and cuts
 * connections, with and without restarts of either side. */
#include "config.h"

#include "wire/sessionworld.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

static void step(struct cw_sessionworld *w, int64_t ms)
{
    w->now_ms += ms;
    cw_sessionworld_deliver_due(w);
    cw_sessionworld_owner_turn(&w->node, w->ctl.applied);
    cw_sessionworld_owner_turn(&w->ctl, w->node.applied);
}

static bool finished(const struct cw_sessionworld *w)
{
    return w->node.durable == CW_SESSIONWORLD_RECORDS && w->ctl.durable == CW_SESSIONWORLD_RECORDS;
}

static void run_hostile(struct cw_sessionworld *w, bool restarts)
{
    int64_t limit_ms = w->now_ms + 4 * 3600 * 1000LL;

    while (!finished(w)) {
        assert_true(w->now_ms < limit_ms);
        step(w, 5);
        if (cw_sessionworld_rng(1500) == 0)
            cw_sessionworld_cut(w);
        if (restarts && cw_sessionworld_rng(8000) == 0)
            cw_sessionworld_restart_node(w);
        if (restarts && cw_sessionworld_rng(8000) == 0)
            cw_sessionworld_restart_ctl(w);
    }
    print_message("# %llu s of link time, %llu + %llu frames, %llu old ones refused, %llu cuts, "
                  "%llu restarts, %llu pairings\n",
                  (unsigned long long)w->now_ms / 1000, (unsigned long long)w->node.n_frames,
                  (unsigned long long)w->ctl.n_frames, (unsigned long long)w->n_old,
                  (unsigned long long)w->n_cuts, (unsigned long long)w->n_restarts,
                  (unsigned long long)w->node.n_pairings);
}

static void hostile_link_delivers_each_record_once_in_order(void **state)
{
    struct cw_sessionworld *w = cw_sessionworld_create();

    (void)state;
    w->loss_pct = 10;
    w->double_pct = 10;
    w->delay_ms = 40;
    w->burst = 10; /* small batches: thousands of frames */
    w->window = 40;
    run_hostile(w, false);
    assert_int_equal(w->node.n_taken,
                     CW_SESSIONWORLD_RECORDS); /* never one twice, even for the owner */
    assert_int_equal(w->ctl.n_taken, CW_SESSIONWORLD_RECORDS);
    assert_int_equal(w->node.n_pairings, 1);
    assert_true(w->n_cuts > 20);
    cw_sessionworld_destroy(w);
}

static void hostile_link_with_restarts_leaves_nothing_out(void **state)
{
    struct cw_sessionworld *w = cw_sessionworld_create();

    (void)state;
    w->loss_pct = 10;
    w->double_pct = 10;
    w->delay_ms = 40;
    w->burst = 10; /* small batches: thousands of frames */
    w->window = 40;
    run_hostile(w, true);
    assert_true(w->n_cuts > 20);
    assert_true(w->n_restarts > 10);
    assert_true(w->node.n_pairings > 10);
    cw_sessionworld_destroy(w);
}

static void good_link_needs_no_resend(void **state)
{
    struct cw_sessionworld *w = cw_sessionworld_create();

    (void)state;
    w->delay_ms = 2;
    run_hostile(w, false);
    assert_true(w->node.n_frames < 2000);
    cw_sessionworld_destroy(w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(good_link_needs_no_resend),
        cmocka_unit_test(hostile_link_delivers_each_record_once_in_order),
        cmocka_unit_test(hostile_link_with_restarts_leaves_nothing_out),
    };

    return cmocka_run_group_tests_name("session_hostile", tests, NULL, NULL);
}
