/* Reports of steps; see stepreports.h. */
#include "node/stepreports.h"

#include <string.h>

#include "base/log.h"
#include "base/mem.h"
#include "node/ctllink.h"
#include "node/shepherds.h"
#include "proto/walk.h"
#include "shepherd/stepcall.h"

static struct cw_stepreports_step *entry(struct cw_list *l)
{
    return cw_list_entry(l, struct cw_stepreports_step, link);
}

static struct cw_stepreports_step *find(struct cw_tasktab_entry *e, uint32_t step, bool end)
{
    cw_list_each(l, &e->steps)
        if (entry(l)->step == step && entry(l)->end == end)
            return entry(l);
    return NULL;
}

static void push(struct cw_node *n, struct cw_tasktab_entry *e, struct cw_stepreports_step *r)
{
    struct cw_arena *a = cw_arena_create();
    ProtobufCMessage *m = NULL;
    if (cw_walk_unpack(&cw__step_report__descriptor, r->packed.data, r->packed.len, a, &m, NULL) ==
        0) {
        Cw__NodeRecordMsg rec = CW__NODE_RECORD_MSG__INIT;
        rec.step = (Cw__StepReport *)m;
        cw_ctllink_push(n->ctl, &rec, e, &r->seq);
    }
    cw_arena_destroy(a);
}

void cw_stepreports_take(struct cw_node *n, struct cw_tasktab_entry *e, const Cw__StepReport *m,
                         const void *packed, size_t len)
{
    bool end = !(m->has_started && m->started);
    if (find(e, m->step->step, end) != NULL)
        return;
    struct cw_stepreports_step *r = cw_xcalloc(1, sizeof *r);
    r->step = m->step->step;
    r->end = end;
    cw_buf_add(&r->packed, packed, len);
    cw_list_add_tail(&e->steps, &r->link);
    e->had_steps = true;
    push(n, e, r);
}

void cw_stepreports_tell(struct cw_node *n, struct cw_tasktab_entry *e)
{
    cw_list_each(l, &e->steps)
        push(n, e, entry(l));
}

static void drop(struct cw_stepreports_step *r)
{
    cw_list_remove(&r->link);
    cw_buf_fini(&r->packed);
    free(r);
}

static void tell_shepherd(struct cw_tasktab_entry *e, const struct cw_stepreports_step *r)
{
    struct cw_stepack a = { e->id, e->attempt, r->step, r->end };
    cw_autobuf struct cw_buf b = { 0 };
    if (e->shepherd == NULL)
        return;
    cw_stepack_pack(&a, &b);
    int rc = cw_packets_add(e->shepherd->packets, CW_PACKET_STEP_ACK, b.data, b.len);
    if (rc < 0)
        cw_log_error("to shepherd %s: %s", e->shepherd->id, strerror(-rc));
}

bool cw_stepreports_acked(struct cw_tasktab_entry *e, uint64_t seq)
{
    cw_list_each_safe(l, &e->steps) {
        if (entry(l)->seq != seq)
            continue;
        tell_shepherd(e, entry(l));
        drop(entry(l));
        return true;
    }
    return false;
}

void cw_stepreports_clear(struct cw_tasktab_entry *e)
{
    cw_list_each_safe(l, &e->steps)
        drop(entry(l));
}
