/* retention_test.c: what is old goes, in slices, and nothing else. */
#include "ctld/retention.h"

#include <poll.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "base/clock.h"
#include "ctld/core.h"
#include "ctld/ctldworld_test.h"
#include "ctld/turn.h"
#include "model/node.h"

static uint64_t rows(struct world *w, enum cw_table t)
{
    uint64_t n = 0;
    assert_int_equal(cw_store_count(w->c.store, t, &n, NULL), 0);
    return n;
}

static Cw__ArraySpec array = CW__ARRAY_SPEC__INIT;

static void make_array(Cw__JobRecord *rec)
{
    array.indices = (char *)"0-1199"; /* more attempts than one slice removes */
    rec->spec->array = &array;
}

static void stop_when_removed(void *arg)
{
    struct world *w = arg;
    if (cw_retention_expired(w->c.retention) > 0 && w->c.busy == 0)
        cw_loop_stop(w->c.loop);
}

static void end_all(struct world *w, uint64_t id, uint64_t n)
{
    for (uint64_t done = 0; done < n; done += 64) {
        world_commit(w); /* starts up to 64 */
        for (uint64_t k = done; k < done + 64 && k < n; k++)
            assert_int_equal(world_end(w, id + 1 + k, 1, 0), 0);
    }
    world_commit(w);
}

static void an_old_job_goes_with_all_its_rows_and_a_live_one_stays(void **state)
{
    (void)state;
    struct world *w = world_create();
    world_node(w, 64);
    uint64_t id = world_submit(w, make_array)->id;
    end_all(w, id, 1200);
    assert_null(cw_model_job(w->c.model, id));
    uint64_t held = world_submit(w, NULL)->id;
    world_commit(w);
    assert_int_equal(rows(w, CW_TABLE_ATTEMPT), 1201);
    assert_int_equal(rows(w, CW_TABLE_DONE), 1201);
    assert_int_equal(rows(w, CW_TABLE_PAYLOAD), 2);
    w->c.conf->retention_s = 0; /* everything that has ended is old */
    w->c.retention = cw_retention_create(&w->c);
    cw_loop_on_turn_end(w->c.loop, stop_when_removed, w);
    do
        cw_loop_run(w->c.loop);
    while (cw_retention_expired(w->c.retention) == 0 || w->c.busy > 0);
    cw_retention_destroy(w->c.retention);
    assert_int_equal(rows(w, CW_TABLE_JOB), 1);
    assert_int_equal(rows(w, CW_TABLE_ATTEMPT), 1);
    assert_int_equal(rows(w, CW_TABLE_DONE), 0);
    assert_int_equal(rows(w, CW_TABLE_REQKEY), 1);
    assert_int_equal(rows(w, CW_TABLE_PAYLOAD), 1);
    assert_int_equal(rows(w, CW_TABLE_EVENT), 0);
    assert_non_null(cw_model_job(w->c.model, held));
    world_reopen(w);
    assert_non_null(cw_model_job(w->c.model, held));
    assert_true(world_submit(w, NULL)->id > held);
    world_commit(w);
    world_destroy(w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_old_job_goes_with_all_its_rows_and_a_live_one_stays),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
