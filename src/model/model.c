/* Owns struct cw_model: making and freeing it, finding jobs and attempts by id, handing effects
 * out. Jobs lie in one vector sorted by id (ids only grow, so new jobs go to the end); an element
 * id is found by the last job that starts at or before it. Freed slots stay empty until half of the
 * vector is. Test: job_test.c, model_random_test.c. */
#include "model/model.h"

#include <stdio.h>
#include <string.h>

#include "base/mem.h"

const char *cw_reason_word(enum cw_reason r)
{
    static const char *const words[] = {
#define X(NAME, word) word,
        CW_REASONS(X)
#undef X
    };
    return (unsigned)r < CW_REASON_N ? words[r] : "Scheduling";
}

struct cw_model *cw_model_create(cw_effect_fn emit, void *arg)
{
    struct cw_model *m = cw_xcalloc(1, sizeof(*m));
    m->emit = emit;
    m->arg = arg;
    m->next_id = 1;
    m->attempts = cw_idtable_create();
    cw_list_init(&m->ghosts);
    m->depsets = cw_idtable_create();
    m->node_names = cw_strtable_create();
    m->names = cw_strtable_create();
    m->wants = cw_strtable_create();
    cw_list_init(&m->queue);
    cw_list_init(&m->parked);
    return m;
}

static bool destroy_attempt(uint64_t key, void *value, void *arg)
{
    (void)key;
    cw_attempt_destroy(arg, value);
    return true;
}

void cw_model_destroy(struct cw_model *m)
{
    if (m == NULL)
        return;
    cw_idtable_each(m->attempts, destroy_attempt, m);
    cw_list_each_safe(pos, &m->ghosts)
        cw_attempt_destroy(m, cw_list_entry(pos, struct cw_attempt, ghost));
    for (size_t i = 0; i < m->n_slots; i++) {
        struct cw_job *j = cw_steal(m->slots[i].job);
        if (j != NULL)
            cw_job_destroy(m, j);
    }
    for (uint32_t i = 0; i < m->n_nodes; i++)
        cw_node_destroy(m, m->nodes[i]);
    cw_partitions_destroy(m);
    cw_idtable_destroy(m->attempts);
    cw_idtable_destroy(m->depsets);
    cw_strtable_destroy(m->node_names);
    cw_strtable_destroy(m->names);
    cw_strtable_destroy(m->wants);
    free(m->timers);
    free(m->slots);
    free(m->nodes);
    free(m->notes);
    free(m->heap);
    free(m);
}

uint64_t cw_model_next_id(const struct cw_model *m) { return m->next_id; }
void cw_model_set_next_id(struct cw_model *m, uint64_t id) { m->next_id = id; }
size_t cw_model_n_jobs(const struct cw_model *m) { return m->n_jobs; }

/* How many slots have an id <= id. */
static size_t slot_upper(const struct cw_model *m, uint64_t id)
{
    size_t lo = 0, hi = m->n_slots;
    while (lo < hi) {
        size_t mid = lo + (hi - lo) / 2;
        if (m->slots[mid].id <= id)
            lo = mid + 1;
        else
            hi = mid;
    }
    return lo;
}

struct cw_job *cw_model_job(struct cw_model *m, uint64_t id)
{
    size_t at = slot_upper(m, id);
    if (at == 0 || m->slots[at - 1].job == NULL)
        return NULL;
    struct cw_job *j = m->slots[at - 1].job;
    return id == j->id || (j->is_array && id - j->id <= j->count) ? j : NULL;
}

struct cw_attempt *cw_model_attempt(struct cw_model *m, uint64_t element_id)
{
    return cw_idtable_find(m->attempts, element_id);
}

static void compact(struct cw_model *m)
{
    if (m->walking > 0 || m->n_slots < 64 || m->n_jobs * 2 > m->n_slots)
        return;
    size_t n = 0;
    for (size_t i = 0; i < m->n_slots; i++)
        if (m->slots[i].job != NULL)
            m->slots[n++] = m->slots[i];
    m->n_slots = n;
}

void cw_model_slot_add(struct cw_model *m, struct cw_job *j)
{
    if (m->n_slots == m->cap_slots) {
        m->cap_slots = m->cap_slots == 0 ? 64 : m->cap_slots * 2;
        m->slots = cw_xrealloc(m->slots, m->cap_slots, sizeof(*m->slots));
    }
    size_t at = slot_upper(m, j->id);
    memmove(m->slots + at + 1, m->slots + at, (m->n_slots - at) * sizeof(*m->slots));
    m->slots[at] = (struct cw_jobslot){j->id, j};
    m->n_slots++;
    m->n_jobs++;
}

void cw_model_slot_remove(struct cw_model *m, struct cw_job *j)
{
    size_t at = slot_upper(m, j->id);
    if (at == 0 || m->slots[at - 1].job != j)
        return;
    m->slots[at - 1].job = NULL;
    m->n_jobs--;
    compact(m);
}

void cw_model_each_job(struct cw_model *m, bool (*fn)(struct cw_job *j, void *arg), void *arg)
{
    cw_model_each_job_from(m, 0, fn, arg);
}

void cw_model_each_job_from(struct cw_model *m, uint64_t first_id,
                            bool (*fn)(struct cw_job *j, void *arg), void *arg)
{
    m->walking++;
    for (size_t i = first_id == 0 ? 0 : slot_upper(m, first_id - 1); i < m->n_slots; i++)
        if (m->slots[i].job != NULL && !fn(m->slots[i].job, arg))
            break;
    m->walking--;
    compact(m);
}

void cw_emit(struct cw_model *m, const struct cw_effect *e)
{
    if (m->emit != NULL)
        m->emit(e, m->arg);
}

void cw_emit_job(struct cw_model *m, enum cw_effect_kind kind, struct cw_job *j)
{
    cw_emit(m, &(struct cw_effect){.kind = kind, .job = j});
}

void cw_emit_attempt(struct cw_model *m, enum cw_effect_kind kind, struct cw_attempt *a)
{
    cw_emit(m, &(struct cw_effect){.kind = kind, .job = a->job, .attempt = a, .node = a->parts[0].node});
}

void cw_emit_cycle(struct cw_model *m)
{
    cw_emit(m, &(struct cw_effect){.kind = CW_EFFECT_RUN_CYCLE});
}

void cw_emit_event(struct cw_model *m, struct cw_job *j, struct cw_attempt *a, struct cw_node *n,
                   uint32_t uid, const char *event, const char *fmt, ...)
{
    struct cw_effect e = {.kind = CW_EFFECT_EVENT, .job = j, .attempt = a, .node = n, .uid = uid};
    snprintf(e.event, sizeof(e.event), "%s", event);
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(e.text, sizeof(e.text), fmt, ap);
    va_end(ap);
    cw_emit(m, &e);
}

void cw_model_site_event(struct cw_model *m, uint32_t uid, const char *event, const char *text)
{
    cw_emit_event(m, NULL, NULL, NULL, uid, event, "%s", text);
}
