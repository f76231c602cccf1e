/* ctldworld_test.c: see the header. */
#include "ctld/ctldworld_test.h"

#include <ftw.h>
#include <setjmp.h>
#include <sodium.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/mem.h"
#include "ctld/core.h"
#include "ctld/payload.h"
#include "ctld/recover.h"
#include "ctld/reqkey.h"
#include "ctld/turn.h"
#include "model/node.h"

static void end_of_turn(void *arg)
{
    cw_core_turn(arg);
}

static void world_open(struct world *w)
{
    struct cw_error err;
    struct cw_ctld *c = &w->c;
    cw_autofree char *text = cw_xasprintf("dir = \"%s\"\ncluster = \"world\"\n", w->dir);
    memset(c, 0, sizeof *c);
    c->start_ns = cw_clock_real_ns();
    if (cw_conf_load_text("world.conf", text, &c->conf, &err) < 0 ||
        cw_store_open(w->dir, CW_STORE_SYNC_NONE, &c->store, &err) < 0)
        fail_msg("%s", err.text);
    c->loop = cw_loop_create();
    cw_core_create(c);
    if (cw_recover(c, &err) < 0)
        fail_msg("%s", err.text);
    cw_loop_on_turn_end(c->loop, end_of_turn, c);
}

static void world_close(struct world *w)
{
    cw_core_destroy(&w->c);
    cw_store_close(w->c.store);
    cw_loop_destroy(w->c.loop);
    cw_conf_destroy(w->c.conf);
}

struct world *world_create(void)
{
    struct world *w = cw_xcalloc(1, sizeof *w);
    assert_true(sodium_init() >= 0);
    cw_log_init("test", CW_LOG_ERROR);
    snprintf(w->dir, sizeof w->dir, "/tmp/ctldworld.XXXXXX");
    assert_non_null(mkdtemp(w->dir));
    world_open(w);
    return w;
}

void world_reopen(struct world *w)
{
    world_close(w);
    world_open(w);
}

static int remove_entry(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
    (void)st, (void)type, (void)ftw;
    return remove(path);
}

void world_destroy(struct world *w)
{
    world_close(w);
    assert_int_equal(nftw(w->dir, remove_entry, 16, FTW_DEPTH | FTW_PHYS), 0);
    free(w);
}

void world_commit(struct world *w)
{
    cw_core_turn(&w->c);
    w->c.stopping = true; /* the loop ends when all is stored */
    do
        cw_loop_run(w->c.loop);
    while (!cw_turn_idle(w->c.turn) || w->c.busy > 0);
    w->c.stopping = false;
}

struct cw_node *world_node(struct world *w, uint32_t cores)
{
    return world_node_named(w, "n1", cores);
}

struct cw_node *world_node_named(struct world *w, const char *name, uint32_t cores)
{
    Cw__NodeRecord rec = CW__NODE_RECORD__INIT;
    Cw__Inventory inv = CW__INVENTORY__INIT;
    Cw__Core core[64], *list[64];
    assert_true(cores <= 64);
    for (uint32_t i = 0; i < cores; i++) {
        cw__core__init(&core[i]);
        core[i].logical = i;
        core[i].n_pus = 1;
        core[i].pus = &core[i].logical;
        list[i] = &core[i];
    }
    inv.n_cores = cores;
    inv.cores = list;
    inv.mem_bytes = 1ull << 36;
    rec.name = (char *)name;
    rec.inventory = &inv;
    struct cw_node *n = cw_model_node_set(w->c.model, &rec, true, cw_clock_real_ns());
    cw_model_node_up(w->c.model, n, true, cw_clock_real_ns());
    return n;
}

struct cw_job *world_submit(struct world *w, void (*change)(Cw__JobRecord *rec))
{
    static uint8_t n;
    struct cw_error err;
    struct cw_job *j;
    uint8_t hash[32], key[16] = {++n};
    Cw__Payload payload = CW__PAYLOAD__INIT;
    char *argv[] = {(char *)"true", cw_xasprintf("%u", n)};
    Cw__JobRecord rec = CW__JOB_RECORD__INIT;
    Cw__JobSpec spec = CW__JOB_SPEC__INIT;
    Cw__Owner owner = CW__OWNER__INIT;
    payload.n_argv = 2;
    payload.argv = argv;
    assert_int_equal(cw_payloads_put(w->c.payloads, cw_turn_batch(w->c.turn), &payload, hash, &err),
                     0);
    free(argv[1]);
    owner.uid = owner.gid = 1000;
    owner.name = (char *)"anna";
    spec.name = (char *)"job";
    rec.spec = &spec;
    rec.owner = &owner;
    rec.payload_hash = (ProtobufCBinaryData){sizeof hash, hash};
    rec.request_key = (ProtobufCBinaryData){sizeof key, key};
    rec.submit_ns = cw_clock_real_ns();
    rec.state = CW__STATE__PENDING;
    if (change != NULL)
        change(&rec);
    if (cw_model_submit(w->c.model, &rec, &j, &err) < 0)
        fail_msg("%s", err.text);
    cw_reqkeys_put(w->c.reqkeys, 1000, key, j->id, j->count);
    return j;
}

int world_end(struct world *w, uint64_t id, uint32_t attempt, uint32_t exit_code)
{
    Cw__TaskEnd e = CW__TASK_END__INIT;
    Cw__TaskKey key = CW__TASK_KEY__INIT;
    key.id = id;
    key.attempt = attempt;
    e.key = &key;
    e.cause = CW__CAUSE__CAUSE_EXIT;
    e.has_exit_code = true;
    e.exit_code = exit_code;
    e.end_ns = cw_clock_real_ns();
    e.empty = true;
    return cw_model_ended(w->c.model, cw_model_node(w->c.model, "n1"), &e, e.end_ns, 3);
}
