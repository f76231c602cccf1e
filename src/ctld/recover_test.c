/* recover_test.c: what a restart finds. */
#include "ctld/recover.h"

#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/mem.h"
#include "ctld/ctldworld_test.h"
#include "ctld/effect.h"
#include "ctld/jobview.h"
#include "ctld/reqkey.h"
#include "ctld/row.h"
#include "model/node.h"

static int setup(void **state)
{
    *state = world_create();
    return 0;
}

static int teardown(void **state)
{
    world_destroy(*state);
    return 0;
}

static void waiting_and_running_jobs_come_back(void **state)
{
    struct world *w = *state;
    world_node(w, 1);
    uint64_t a = world_submit(w, NULL)->id, b = world_submit(w, NULL)->id;
    world_commit(w);
    assert_non_null(cw_model_attempt(w->c.model, a)); /* the core is taken */
    world_reopen(w);
    struct cw_attempt *at = cw_model_attempt(w->c.model, a);
    assert_non_null(at);
    assert_int_equal(at->rec->state, CW__STATE__STARTING);
    assert_null(cw_model_attempt(w->c.model, b));
    assert_int_equal(cw_model_job(w->c.model, b)->state, CW__STATE__PENDING);
    assert_int_equal(cw_model_node(w->c.model, "n1")->n_free, 0);
    cw_autobuf struct cw_buf text = {0};
    assert_int_equal(cw_model_selfcheck(w->c.model, &text), 0);
}

static void an_id_is_never_used_again(void **state)
{
    struct world *w = *state;
    world_node(w, 1);
    uint64_t a = world_submit(w, NULL)->id;
    world_commit(w);
    assert_int_equal(world_end(w, a, 1, 0), 0);
    world_commit(w);
    world_reopen(w);
    assert_null(cw_model_job(w->c.model, a));
    assert_true(world_submit(w, NULL)->id > a);
}

static void a_finished_job_is_found_by_its_id(void **state)
{
    struct world *w = *state;
    struct cw_arena *arena = cw_arena_create();
    struct cw_jobsrc s;
    world_node(w, 1);
    uint64_t a = world_submit(w, NULL)->id;
    world_commit(w);
    world_end(w, a, 1, 7);
    world_commit(w);
    world_reopen(w);
    assert_int_equal(cw_jobview_find(&w->c, a, arena, &s, NULL, NULL, NULL), 0);
    Cw__JobInfo *i = cw_jobview_info(&w->c, &s, arena);
    assert_int_equal(i->state, CW__STATE__FAILED);
    assert_int_equal(i->exit_status, 7);
    assert_int_equal(i->attempt->exit_code, 7);
    cw_jobsrc_fini(&s);
    cw_arena_destroy(arena);
}

static void a_request_key_is_found_before_and_after_its_commit(void **state)
{
    struct world *w = *state;
    uint64_t id = 0, count = 0;
    uint8_t key[16];
    struct cw_job *j = world_submit(w, NULL);
    struct cw_arena *arena = cw_arena_create();
    struct cw_jobsrc s;
    cw_jobview_from_live(j, arena, &s);
    memcpy(key, s.rec->request_key.data, 16);
    cw_jobsrc_fini(&s);
    cw_arena_destroy(arena);
    assert_int_equal(cw_reqkeys_find(w->c.reqkeys, 1000, key, &id, &count, NULL), 1);
    assert_int_equal(id, j->id);
    assert_int_equal(cw_reqkeys_find(w->c.reqkeys, 1001, key, &id, &count, NULL), 0);
    world_commit(w);
    world_reopen(w);
    assert_int_equal(cw_reqkeys_find(w->c.reqkeys, 1000, key, &id, &count, NULL), 1);
    assert_int_equal(count, 1);
}

static void a_damaged_row_is_put_aside_and_the_others_load(void **state)
{
    struct world *w = *state;
    uint64_t a = world_submit(w, NULL)->id, b = world_submit(w, NULL)->id;
    world_commit(w);
    uint8_t key[8], junk[] = {CW_ROW_SCHEMA, 0, 0xff, 0xff, 0xff};
    struct cw_batch *batch = cw_batch_create();
    cw_store_key_u64(key, a);
    cw_batch_put(batch, CW_TABLE_JOB, key, sizeof key, junk, sizeof junk);
    assert_int_equal(cw_store_commit(w->c.store, batch, NULL), 0);
    cw_batch_destroy(batch);
    cw_log_set_level(CW_LOG_ERROR);
    world_reopen(w);
    assert_null(cw_model_job(w->c.model, a));
    assert_non_null(cw_model_job(w->c.model, b));
    assert_int_equal(w->c.n_quarantined, 1);
    uint64_t n = 0;
    assert_int_equal(cw_store_count(w->c.store, CW_TABLE_QUARANTINE, &n, NULL), 0);
    assert_int_equal(n, 1);
    world_reopen(w);
    assert_int_equal(w->c.n_quarantined, 0); /* once is enough */
    assert_true(world_submit(w, NULL)->id > b);
}

static void name_a_partition(Cw__JobRecord *rec)
{
    rec->spec->partition = (char *)"main";
}

static void a_job_whose_partition_is_gone_loads_and_waits(void **state)
{
    struct world *w = *state;
    uint64_t a = world_submit(w, name_a_partition)->id;
    world_commit(w);
    /* the same rows under a name that the configuration does not have */
    struct cw_arena *arena = cw_arena_create();
    ProtobufCMessage *m;
    uint8_t key[8];
    cw_store_key_u64(key, a);
    assert_int_equal(
        cw_row_get(w->c.store, CW_TABLE_JOB, key, 8, &cw__job_record__descriptor, arena, &m, NULL),
        0);
    ((Cw__JobRecord *)m)->spec->partition = (char *)"gone";
    struct cw_batch *batch = cw_batch_create();
    cw_row_put(batch, CW_TABLE_JOB, key, 8, 0, m);
    assert_int_equal(cw_store_commit(w->c.store, batch, NULL), 0);
    cw_batch_destroy(batch);
    cw_arena_destroy(arena);
    world_reopen(w);
    world_node(w, 1);
    world_commit(w);
    struct cw_job *j = cw_model_job(w->c.model, a);
    assert_non_null(j);
    assert_int_equal(j->state, CW__STATE__PENDING);
    assert_string_equal(cw_reason_word(cw_job_reason(j)), "PartitionDown");
}

static void a_newer_schema_is_refused(void **state)
{
    struct world *w = *state;
    struct cw_error err;
    uint8_t schema[4];
    struct cw_batch *batch = cw_batch_create();
    cw_store_key_u32(schema, CW_ROW_SCHEMA + 1);
    cw_batch_put(batch, CW_TABLE_META, CW_META_SCHEMA, strlen(CW_META_SCHEMA), schema,
                 sizeof schema);
    assert_int_equal(cw_store_commit(w->c.store, batch, NULL), 0);
    cw_batch_destroy(batch);
    assert_int_equal(cw_recover(&w->c, &err), -EPROTO);
    assert_non_null(strstr(err.text, "schema 2"));
}

static void the_sequence_of_events_goes_on(void **state)
{
    struct world *w = *state;
    world_submit(w, NULL);
    world_commit(w);
    uint64_t seq = cw_effects_event_seq(w->c.effects);
    assert_true(seq > 0);
    world_reopen(w);
    assert_int_equal(cw_effects_event_seq(w->c.effects), seq);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(waiting_and_running_jobs_come_back, setup, teardown),
        cmocka_unit_test_setup_teardown(an_id_is_never_used_again, setup, teardown),
        cmocka_unit_test_setup_teardown(a_finished_job_is_found_by_its_id, setup, teardown),
        cmocka_unit_test_setup_teardown(a_request_key_is_found_before_and_after_its_commit, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(a_damaged_row_is_put_aside_and_the_others_load, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(a_job_whose_partition_is_gone_loads_and_waits, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(a_newer_schema_is_refused, setup, teardown),
        cmocka_unit_test_setup_teardown(the_sequence_of_events_goes_on, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
