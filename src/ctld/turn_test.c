/* turn_test.c: order of commit, effects and replies, with a real store and a real loop. */
#include "ctld/turn.h"

#include <ftw.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/crashpoint.h"
#include "base/log.h"
#include "base/mem.h"

struct fixture {
    char dir[64];
    struct cw_loop *loop;
    struct cw_store *store;
    struct cw_turn *turn;
    char trace[256];  /* what happened, one letter each */
    bool seen_stored; /* the row was in the store when the first after ran */
    int stop_at;      /* letters after which the loop stops */
};
struct mark {
    struct fixture *f;
    char letter;
};

static void trace(struct fixture *f, char letter)
{
    size_t n = strlen(f->trace);
    if (n + 1 < sizeof f->trace)
        f->trace[n] = letter;
    if ((int)strlen(f->trace) >= f->stop_at)
        cw_loop_stop(f->loop);
}

static void after(void *arg, bool committed)
{
    struct mark *m = arg;
    struct fixture *f = m->f;
    if (committed) {
        cw_autobuf struct cw_buf v = {0};
        if (f->trace[0] == '\0')
            f->seen_stored = cw_store_get(f->store, CW_TABLE_META, "k", 1, &v, NULL) == 1;
        trace(f, m->letter);
    } else {
        trace(f, 'x');
    }
    free(m);
}

static void add(struct fixture *f, enum cw_turn_stage stage, char letter)
{
    struct mark *m = cw_xcalloc(1, sizeof *m);
    *m = (struct mark){f, letter};
    cw_turn_after(f->turn, stage, after, m);
}

static void put(struct fixture *f, const char *value)
{
    cw_batch_put(cw_turn_batch(f->turn), CW_TABLE_META, "k", 1, value, strlen(value));
}

static void turn_end(void *arg)
{
    cw_turn_end(((struct fixture *)arg)->turn);
}

static int remove_entry(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
    (void)st, (void)type, (void)ftw;
    return remove(path);
}

static int setup(void **state)
{
    struct fixture *f = cw_xcalloc(1, sizeof *f);
    snprintf(f->dir, sizeof f->dir, "turn_test.XXXXXX");
    assert_non_null(mkdtemp(f->dir));
    f->loop = cw_loop_create();
    assert_int_equal(cw_store_open(f->dir, CW_STORE_SYNC_NONE, &f->store, NULL), 0);
    f->turn = cw_turn_create(f->loop, f->store);
    cw_loop_on_turn_end(f->loop, turn_end, f);
    *state = f;
    return 0;
}

static int teardown(void **state)
{
    struct fixture *f = *state;
    cw_turn_destroy(f->turn);
    cw_store_close(f->store);
    cw_loop_destroy(f->loop);
    int rc = nftw(f->dir, remove_entry, 16, FTW_DEPTH | FTW_PHYS);
    free(f);
    unsetenv("CRUN_FAULT");
    cw_crashpoint_init();
    return rc;
}

static void a_reply_comes_after_the_commit_and_after_the_effects(void **state)
{
    struct fixture *f = *state;
    add(f, CW_TURN_REPLY, 'r');
    put(f, "1");
    add(f, CW_TURN_EFFECT, 'e');
    add(f, CW_TURN_EFFECT, 'f');
    f->stop_at = 3;
    cw_loop_run(f->loop);
    assert_string_equal(f->trace, "efr");
    assert_true(f->seen_stored);
}

static void question(void *arg)
{
    struct fixture *f = arg;
    assert_true(cw_turn_flying(f->turn));
    add(f, CW_TURN_REPLY, 'q');
}

static void a_reply_without_rows_still_waits_for_the_batch_in_flight(void **state)
{
    struct fixture *f = *state;
    put(f, "1");
    add(f, CW_TURN_REPLY, 'r');
    cw_turn_end(f->turn);
    question(f);
    f->stop_at = 2;
    cw_loop_run(f->loop);
    assert_string_equal(f->trace, "rq");
}

static void a_failed_commit_is_tried_again_and_keeps_the_order(void **state)
{
    struct fixture *f = *state;
    setenv("CRUN_FAULT", "turn.commit:fail=ENOSPC,1", 1);
    cw_crashpoint_init();
    put(f, "1");
    add(f, CW_TURN_REPLY, '1');
    cw_turn_end(f->turn);
    put(f, "2");
    add(f, CW_TURN_EFFECT, '2');
    add(f, CW_TURN_REPLY, '3');
    f->stop_at = 3;
    cw_loop_run(f->loop);
    assert_string_equal(f->trace, "123");
    struct cw_turn_stats st;
    cw_turn_get_stats(f->turn, &st);
    assert_int_equal(st.failures, 1);
    assert_int_equal(st.latency.n, 2);
    assert_false(cw_turn_failing(f->turn, NULL));
    cw_autobuf struct cw_buf v = {0};
    assert_int_equal(cw_store_get(f->store, CW_TABLE_META, "k", 1, &v, NULL), 1);
    assert_string_equal(cw_buf_str(&v), "2");
}

static void decide_more(void *arg, bool committed)
{
    struct fixture *f = arg;
    if (!committed)
        return;
    trace(f, 'm');
    put(f, "3");
    add(f, CW_TURN_REPLY, 'n');
}

static void what_an_effect_decides_is_stored_in_the_next_batch(void **state)
{
    struct fixture *f = *state;
    put(f, "1");
    cw_turn_after(f->turn, CW_TURN_EFFECT, decide_more, f);
    add(f, CW_TURN_REPLY, 'r');
    f->stop_at = 3;
    cw_loop_run(f->loop);
    assert_string_equal(f->trace, "mrn");
}

static void a_turn_that_ends_early_says_so_to_every_after(void **state)
{
    struct fixture *f = *state;
    put(f, "1");
    add(f, CW_TURN_REPLY, 'r');
    add(f, CW_TURN_EFFECT, 'e');
    f->stop_at = 100;
    cw_turn_destroy(f->turn);
    f->turn = NULL;
    assert_string_equal(f->trace, "xx");
}

int main(void)
{
    cw_log_init("turn_test", CW_LOG_ERROR);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(a_reply_comes_after_the_commit_and_after_the_effects, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(a_reply_without_rows_still_waits_for_the_batch_in_flight,
                                        setup, teardown),
        cmocka_unit_test_setup_teardown(a_failed_commit_is_tried_again_and_keeps_the_order, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(what_an_effect_decides_is_stored_in_the_next_batch, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(a_turn_that_ends_early_says_so_to_every_after, setup,
                                        teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
