#pragma once
/* The inside of struct cw_model, for the files of this folder only. Every public step ends with
 * cw_deps_drain, so that what became final reaches its dependents without recursion (a chain of
 * 100,000 dependent jobs must not need 100,000 stack frames). */
#include "base/table.h"
#include "model/job.h"
#include "model/node.h"
#include "model/want.h"

struct cw_jobslot {
    uint64_t id;
    struct cw_job *job;
}; /* job NULL: gone */
struct cw_partslot {
    struct cw_partition part;
    uint64_t n_queued;
};

/* One dependency that is not met: waiting job, on whom. */
struct cw_depset;
struct cw_depedge {
    struct cw_list on_set;
    struct cw_depset *set;
    struct cw_job *job;
    uint64_t pred_id;
    Cw__DependencyKind kind;
    uint64_t delay_s; /* after: from the start */
    bool never;       /* can never be met */
};
struct cw_depset {
    uint64_t pred_id;
    struct cw_list edges;
};
struct cw_jobdeps {
    size_t n_open, n;
    bool never; /* it will wait for ever: kept by its wish */
    struct cw_depedge edges[];
};

/* What became final and has yet to be told to dependents. */
enum cw_depnews {
    CW_DEPNEWS_OK,
    CW_DEPNEWS_FAILED,
    CW_DEPNEWS_FAILING, /* an array that cannot become OK any more */
    CW_DEPNEWS_STARTED  /* runs; an array: all that is left of it does */
};
struct cw_depnote {
    uint64_t id;
    enum cw_depnews news;
    int64_t t_ns; /* STARTED: when */
};

struct cw_model {
    cw_effect_fn emit;
    void *arg;
    uint64_t next_id;
    struct cw_jobslot *slots; /* by id */
    size_t n_slots, cap_slots, n_jobs;
    uint32_t walking;            /* cw_model_each_job in progress: no compaction */
    struct cw_idtable *attempts; /* element id -> cw_attempt */
    struct cw_list ghosts;       /* cw_attempt.ghost: fenced, on lost nodes; not in attempts */
    struct cw_node **nodes;
    uint32_t n_nodes, cap_nodes;
    struct cw_strtable *node_names, *names; /* names: interned, see names.c */
    struct cw_strtable *wants;              /* key -> cw_want */
    uint64_t last_want, n_passes;
    struct cw_partslot *parts;
    uint16_t n_parts;
    uint32_t n_queued_parts;
    struct cw_list queue, parked;
    int64_t order_ns;           /* see cw_model_order_stamp */
    struct cw_idtable *depsets; /* pred id -> cw_depset */
    struct cw_depnote *notes;
    size_t n_notes, cap_notes;
    bool draining;
    struct cw_depset *telling; /* the set that the drain works on */
    struct cw_attempt **heap;  /* by deadline_ns */
    uint32_t n_heap, cap_heap;
    struct cw_job **timers; /* by timer_ns */
    uint32_t n_timers, cap_timers;
    bool has_drain_next;    /* a drain ends at drain_next_ns, or was undone meanwhile */
    int64_t drain_next_ns;
    bool paused;            /* nothing starts */
};

/* names.c: one copy per distinct text, counted. NULL and "" give NULL. */
const char *cw_names_get(struct cw_model *m, const char *text);
void cw_names_put(struct cw_model *m, const char *name);

/* model.c */
void cw_emit(struct cw_model *m, const struct cw_effect *e);
void cw_emit_job(struct cw_model *m, enum cw_effect_kind kind, struct cw_job *j);
void cw_emit_attempt(struct cw_model *m, enum cw_effect_kind kind, struct cw_attempt *a);
void cw_emit_cycle(struct cw_model *m);
void cw_emit_event(struct cw_model *m, struct cw_job *j, struct cw_attempt *a, struct cw_node *n,
                   uint32_t uid, const char *event, const char *fmt, ...)
    __attribute__((format(printf, 7, 8)));
void cw_model_slot_add(struct cw_model *m, struct cw_job *j);
void cw_model_slot_remove(struct cw_model *m, struct cw_job *j);

/* job.c */
void cw_job_settle(struct cw_job *j);     /* state and reason from the elements */
bool cw_job_done(const struct cw_job *j); /* nothing waits or lives */
/* Elements have ended: stores the row; when all have, makes the job final and frees it (true). */
bool cw_job_conclude(struct cw_model *m, struct cw_job *j, Cw__State plain_state, int64_t end_ns);
void cw_job_destroy(struct cw_model *m, struct cw_job *j);

/* job_array.c */
struct cw_jobarray *cw_jobarray_create(const char *indices, struct cw_error *err);
void cw_jobarray_destroy(struct cw_jobarray *a);
int cw_jobarray_restore(struct cw_jobarray *a, const Cw__JobRecord *rec, struct cw_error *err);
void cw_jobarray_save(const struct cw_jobarray *a, Cw__JobRecord *rec); /* heap strings into rec */
struct cw_tries cw_jobarray_tries(const struct cw_jobarray *a, uint64_t ordinal);
/* next 1: forget. */
void cw_jobarray_set_tries(struct cw_jobarray *a, uint64_t ordinal, const struct cw_tries *t);
uint32_t cw_jobarray_next_attempt(const struct cw_jobarray *a, uint64_t ordinal);
/* 1: forget. */
void cw_jobarray_set_next_attempt(struct cw_jobarray *a, uint64_t ordinal, uint32_t n);
/* Out of pending; false: was not in it. */
bool cw_jobarray_took(struct cw_jobarray *a, uint64_t ordinal);
void cw_jobarray_count(struct cw_jobarray *a, Cw__State s, uint32_t exit_status);
uint64_t cw_jobarray_cancel_pending(struct cw_jobarray *a, const struct cw_idset *ordinals,
                                    uint32_t exit_status, struct cw_idset *ret_hit);

/* draindue.c */
void cw_drain_note(struct cw_model *m, const struct cw_node *n); /* its record has come or changed */
void cw_drain_forget(struct cw_node *n);
int64_t cw_drains_run(struct cw_model *m, int64_t now_ns); /* returns the next, or INT64_MAX */

/* jobqueue.c */
/* Into queue or parked or neither, as it is now. */
void cw_queue_place(struct cw_model *m, struct cw_job *j);
void cw_queue_leave(struct cw_model *m, struct cw_job *j);

/* job_deps.c */
/* Would j wait for itself with the dependencies of s? */
bool cw_deps_cycle(struct cw_model *m, const struct cw_job *j, const Cw__JobSpec *s);
int cw_deps_check(struct cw_model *m, const Cw__JobSpec *s, struct cw_error *err);
void cw_deps_attach(struct cw_model *m, struct cw_job *j, const Cw__JobSpec *s, bool restoring);
void cw_deps_detach(struct cw_model *m, struct cw_job *j);
bool cw_deps_open(const struct cw_job *j, const Cw__Dependency *d); /* still unmet? */
void cw_deps_note(struct cw_model *m, uint64_t id, enum cw_depnews news);
bool cw_deps_never(const struct cw_job *j, const Cw__Dependency *d); /* will never be met */
void cw_deps_note_started(struct cw_model *m, const struct cw_attempt *a);
void cw_deps_note_element(struct cw_model *m, struct cw_job *j, uint64_t ordinal, Cw__State s);
void cw_deps_drain(struct cw_model *m, int64_t now_ns);

/* job_control.c */
#define CW_WHY_DEPENDENCY "DependencyNeverSatisfied"
/* Whatever it does: what waits ends in this state, what lives is killed for this cause. J may be
 * gone afterwards. */
void cw_job_end_all(struct cw_model *m, struct cw_job *j, Cw__State state, Cw__Cause cause,
                    uint32_t uid, int64_t now_ns);
/* J is gone afterwards. */
void cw_job_cancel_unmet(struct cw_model *m, struct cw_job *j, const char *kind,
                         unsigned long long pred, int64_t now_ns);

/* attempt.c */
/* Takes rec. Its parts have no node yet (cw_part_init). */
struct cw_attempt *cw_attempt_create(struct cw_job *j, Cw__AttemptRecord *rec);
void cw_attempt_ask_kill(struct cw_model *m, struct cw_attempt *a, Cw__Cause why, uint32_t uid,
                         int64_t now_ns);
/* To the nodes of parts that have not ended. */
void cw_attempt_send_kill(struct cw_model *m, struct cw_attempt *a, Cw__Cause why);
int64_t cw_attempt_launch_end(const struct cw_attempt *a);
int64_t cw_attempt_limit_end(const struct cw_attempt *a); /* RUNNING: its time limit */
/* Until when we wait after a kill. */
int64_t cw_attempt_patience(const struct cw_attempt *a, int64_t now_ns);
/* Times in rows are the controller's: a node's clock may be wrong, but not before the grant nor in
 * the future. */
void cw_attempt_set_start(struct cw_attempt *a, int64_t start_ns, int64_t now_ns);
void cw_attempt_replace(char **field, const char *text); /* NULL: keeps it */
void cw_attempt_destroy(struct cw_model *m, struct cw_attempt *a);

/* attempt_end.c */
/* Patience is over. */
void cw_attempt_quarantine(struct cw_model *m, struct cw_attempt *a, int64_t now_ns);

/* part.c */
void cw_part_init(struct cw_attempt *a, uint32_t number, struct cw_node *n);
void cw_part_set(struct cw_part *p, enum cw_partphase phase); /* in the record too; FREED: uncharges */
void cw_parts_load(struct cw_attempt *a); /* phases from the record */
bool cw_parts_all(const struct cw_attempt *a, enum cw_partphase least); /* are so far, or further */
/* A head that was never told to start: nothing can be there. */
void cw_parts_drop_unsent(struct cw_attempt *a);
/* Is something charged on a node that was not given up? */
bool cw_parts_held(const struct cw_attempt *a);
void cw_parts_add_usage(Cw__AttemptRecord *r, const Cw__Usage *u);

/* ledger.c */
/* Cores, mem, gpus of p to p->node. */
void cw_ledger_charge(struct cw_part *p);
void cw_ledger_free(struct cw_part *p);
void cw_ledger_recompute(struct cw_node *n); /* from the attempts' records */
/* Masks of p from its grant and its node's inventory. */
void cw_ledger_resolve(struct cw_part *p);

/* jobtimer.c */
void cw_jobtimer_leave(struct cw_model *m, struct cw_job *j);
void cw_jobtimer_set(struct cw_model *m, struct cw_job *j); /* after early, begin_ns, deadline_ns */
/* It waits until then at least. */
void cw_jobtimer_not_before(struct cw_model *m, struct cw_job *j, int64_t begin_ns, int64_t now_ns);
int64_t cw_jobtimer_run(struct cw_model *m, int64_t now_ns); /* the next one; INT64_MAX */

/* deadlines.c */
/* INT64_MAX: leaves. */
void cw_heap_set(struct cw_model *m, struct cw_attempt *a, int64_t deadline_ns);

/* node.c, partition.c */
void cw_node_destroy(struct cw_model *m, struct cw_node *n);
void cw_partitions_destroy(struct cw_model *m);
