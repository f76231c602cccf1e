/* Parts of an attempt, one per node: how far each is, kept in memory and in the attempt's record by
 * the same call, so that a restart finds what was known. The record lists only what the attempt's
 * state does not say: of a running attempt every part has started, of an ended one every part has
 * ended; see cw_parts_load. Test: attempt_parts_test.c, model_random_test.c. */
#include "model/model.h"

#include "base/mem.h"
#include "spec/outcome.h"

struct cw_part *cw_attempt_part(struct cw_attempt *a, const struct cw_node *n)
{
    for (uint32_t k = 0; k < a->n_parts; k++)
        if (a->parts[k].node == n)
            return &a->parts[k];
    return NULL;
}

uint32_t cw_part_number(const struct cw_part *p)
{
    return (uint32_t)(p - p->attempt->parts);
}

const Cw__Grant *cw_part_grant(const struct cw_part *p)
{
    const Cw__AttemptRecord *r = p->attempt->rec;
    uint32_t k = cw_part_number(p);
    return k == 0 ? r->grant : r->more_grants[k - 1];
}

bool cw_part_startable(const struct cw_part *p)
{
    const struct cw_attempt *a = p->attempt;
    bool boxes = a->n_parts == 1 || cw_part_number(p) > 0 || a->rec->has_boxes_ns;
    return boxes && a->state == CW__STATE__STARTING && a->kill_step == 0 &&
           p->phase == CW_PART_GRANTED;
}

void cw_part_init(struct cw_attempt *a, uint32_t number, struct cw_node *n)
{
    a->parts[number].attempt = a;
    a->parts[number].node = n;
}

bool cw_parts_all(const struct cw_attempt *a, enum cw_partphase least)
{
    for (uint32_t k = 0; k < a->n_parts; k++)
        if (a->parts[k].phase < least)
            return false;
    return true;
}

bool cw_parts_held(const struct cw_attempt *a)
{
    return !cw_parts_all(a, CW_PART_LOST);
}

void cw_parts_drop_unsent(struct cw_attempt *a)
{
    if (a->n_parts > 1 && !a->rec->has_boxes_ns && a->parts[0].phase == CW_PART_GRANTED)
        cw_part_set(&a->parts[0], CW_PART_FREED);
}

/* ---- in the record --------------------------------------------------------------------------- */

static void list_phase(const struct cw_attempt *a, enum cw_partphase phase, size_t *n, uint32_t **v)
{
    *n = 0;
    for (uint32_t k = 0; k < a->n_parts; k++)
        if (a->parts[k].phase == phase) {
            if (*n == 0)
                *v = cw_xrealloc(*v, a->n_parts, sizeof(**v));
            (*v)[(*n)++] = k;
        }
}

void cw_part_set(struct cw_part *p, enum cw_partphase phase)
{
    struct cw_attempt *a = p->attempt;
    Cw__AttemptRecord *r = a->rec;
    p->phase = phase;
    if (phase == CW_PART_FREED)
        cw_ledger_free(p);
    if (phase < CW_PART_ENDED)
        return;
    list_phase(a, CW_PART_LOST, &r->n_lost, &r->lost);
    if (a->n_parts > 1) {
        list_phase(a, CW_PART_ENDED, &r->n_ended, &r->ended);
        list_phase(a, CW_PART_FREED, &r->n_freed, &r->freed);
    }
    if (cw_parts_all(a, CW_PART_FREED)) {
        r->has_ledger_freed = r->ledger_freed = true;
        r->n_freed = 0;
    }
}

static void load_list(struct cw_attempt *a, enum cw_partphase phase, size_t n, const uint32_t *v)
{
    for (size_t i = 0; i < n; i++)
        if (v[i] < a->n_parts)
            a->parts[v[i]].phase = phase;
}

void cw_parts_load(struct cw_attempt *a)
{
    const Cw__AttemptRecord *r = a->rec;
    for (uint32_t k = 0; k < a->n_parts; k++) {
        bool boxes = k > 0 && r->has_boxes_ns;
        a->parts[k].phase = cw_state_terminal(r->state)                         ? CW_PART_ENDED
                            : boxes || r->state == CW__STATE__RUNNING           ? CW_PART_STARTED
                            : r->state == CW__STATE__COMPLETING && r->has_start_ns ? CW_PART_STARTED
                                                                                : CW_PART_GRANTED;
    }
    load_list(a, CW_PART_ENDED, r->n_ended, r->ended);
    load_list(a, CW_PART_LOST, r->n_lost, r->lost);
    load_list(a, CW_PART_FREED, r->n_freed, r->freed);
}

/* ---- usage ----------------------------------------------------------------------------------- */

static void add(protobuf_c_boolean *has, uint64_t *sum, protobuf_c_boolean more, uint64_t v)
{
    if (!more)
        return;
    *sum = (*has ? *sum : 0) + v;
    *has = true;
}

static void highest(protobuf_c_boolean *has, uint64_t *top, protobuf_c_boolean more, uint64_t v)
{
    if (!more || (*has && *top >= v))
        return;
    *has = true;
    *top = v;
}

/* Times are summed; a peak is that of the node that had the highest. */
void cw_parts_add_usage(Cw__AttemptRecord *r, const Cw__Usage *u)
{
    Cw__Usage *s = r->usage;
    if (s == NULL) {
        size_t n = cw__usage__get_packed_size(u);
        cw_autofree uint8_t *p = cw_xmalloc(n + 1);
        r->usage = cw__usage__unpack(NULL, cw__usage__pack(u, p), p);
        return;
    }
    add(&s->has_cpu_user_ns, &s->cpu_user_ns, u->has_cpu_user_ns, u->cpu_user_ns);
    add(&s->has_cpu_sys_ns, &s->cpu_sys_ns, u->has_cpu_sys_ns, u->cpu_sys_ns);
    add(&s->has_throttled_ns, &s->throttled_ns, u->has_throttled_ns, u->throttled_ns);
    highest(&s->has_mem_peak_bytes, &s->mem_peak_bytes, u->has_mem_peak_bytes, u->mem_peak_bytes);
    highest(&s->has_maxrss_bytes, &s->maxrss_bytes, u->has_maxrss_bytes, u->maxrss_bytes);
    highest(&s->has_mem_anon_peak_bytes, &s->mem_anon_peak_bytes, u->has_mem_anon_peak_bytes,
            u->mem_anon_peak_bytes);
}
