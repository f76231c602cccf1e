#pragma once
/* The controller's memory of jobs: pure data and state steps. No clock, file, socket or lock: time is an
 * argument. Every change goes through a cw_model_* step, which changes memory and appends *effects*; the
 * owner makes the effects durable first and carries them out afterwards (DESIGN.md 5.2).
 *
 * A plain job is one struct cw_job of at most ~400 bytes plus its packed spec; an array is one struct
 * cw_job with interval sets of ordinals; only elements that are live have a struct cw_attempt. Ids: see
 * JobRecord.id. Finished jobs leave memory (they are found in the store). Test: job_test.c, and
 * model_random_test.c (random steps; the ledger recomputed each time must agree). */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/error.h"
#include "base/idset.h"
#include "base/list.h"
#include "proto/job.pb-c.h"
#include "proto/wire.pb-c.h"

struct cw_model;
struct cw_node;

/* Why a job waits: one row each (word for lists, used in JobInfo.reason). */
#define CW_REASONS(X)                                   \
    X(NONE, "None")                                     \
    X(PRIORITY, "Priority")                             \
    X(RESOURCES, "Resources")                           \
    X(DEPENDENCY, "Dependency")                         \
    X(HELD, "JobHeldUser")                              \
    X(ARRAY_LIMIT, "JobArrayTaskLimit")                 \
    X(PARTITION_DOWN, "PartitionDown")                  \
    X(NODES_UNAVAILABLE, "ReqNodeNotAvail")             \
    X(SCHEDULING, "Scheduling")                         \
    X(DISK, "ControllerDiskFull")
enum cw_reason {
#define X(NAME, word) CW_REASON_##NAME,
    CW_REASONS(X)
#undef X
    CW_REASON_N
};
const char *cw_reason_word(enum cw_reason r);

struct cw_attempt {          /* a live try; from grant until its ledger entry is freed */
    uint64_t id, job_id, ordinal;
    uint32_t attempt;
    Cw__State state;         /* STARTING, RUNNING, COMPLETING, or terminal with the ledger not yet freed */
    struct cw_job *job;      /* NULL once the job record has left memory */
    struct cw_node *node;
    Cw__AttemptRecord *rec;  /* heap (protobuf_c free_unpacked), the truth that is stored */
    uint64_t *cores;         /* mask of the node's core words */
    uint64_t mem_bytes;
    int64_t deadline_ns;     /* time limit; INT64_MAX none */
    uint8_t kill_step;       /* 0 no, 1 asked */
    struct cw_list on_node, on_job;
};

struct cw_job {
    uint64_t id, count;      /* count 1: plain */
    Cw__State state;         /* PENDING while any element waits, else that of the elements */
    bool is_array, held;
    uint8_t reason;          /* enum cw_reason of the last evaluation */
    uint32_t uid, gid, cores, gpus, next_attempt, throttle;
    uint64_t mem_bytes, time_limit_s;
    int64_t submit_ns, priority;
    uint16_t partition;      /* index in the model's partition list; UINT16_MAX: gone */
    void *spec_packed;       /* packed JobRecord with the fields that never change (spec, owner, keys) */
    uint32_t spec_len;
    const char *name, *user; /* interned */
    struct cw_jobarray *array; /* NULL for plain */
    struct cw_jobdeps *deps; /* NULL: none left unsatisfied */
    struct cw_list attempts; /* cw_attempt.on_job */
    struct cw_list in_queue; /* while an element waits */
    struct cw_list waiters;  /* the owner's (long polls) */
};

struct cw_jobarray {
    struct cw_idset indices; /* array index of ordinal k = nth(k) */
    struct cw_idset pending; /* ordinals */
    struct cw_idset cancelled; /* ordinals cancelled before a start */
    uint64_t n_completed, n_failed, n_cancelled, n_live;
    uint32_t worst_exit;
    struct cw_idtable *next_attempt; /* ordinal -> attempt number, where it is not 1 */
};

/* Effects, in the order they must happen after the commit. Rows to store are part of them. */
enum cw_effect_kind {
    CW_EFFECT_PUT_JOB,      /* store the job's row */
    CW_EFFECT_PUT_ATTEMPT,  /* store the attempt's row */
    CW_EFFECT_PUT_NODE,
    CW_EFFECT_EVENT,        /* append to history */
    CW_EFFECT_DONE,         /* attempt is final: index by end time */
    CW_EFFECT_SEND_START, CW_EFFECT_SEND_KILL, CW_EFFECT_SEND_SIGNAL, /* to the attempt's node */
    CW_EFFECT_JOB_FINAL,    /* all elements terminal: tell waiters and dependents; memory goes after it */
    CW_EFFECT_RUN_CYCLE     /* something may start now */
};
struct cw_effect {
    enum cw_effect_kind kind;
    struct cw_job *job;
    struct cw_attempt *attempt;
    struct cw_node *node;
    uint32_t signal;
    Cw__Cause cause;
    char event[24];
    uint32_t uid;
    char text[160];
};
typedef void (*cw_effect_fn)(const struct cw_effect *e, void *arg); /* called at once, in order */

struct cw_model *cw_model_create(cw_effect_fn emit, void *arg);
void cw_model_destroy(struct cw_model *m);

/* ---- partitions and nodes (node.h) are set first; then jobs are restored or submitted ---- */
/* Takes over rec's content (copied). Sets ids: *ret_job->id = next id; next_id moves by count+1 for arrays. */
int cw_model_submit(struct cw_model *m, const Cw__JobRecord *rec, struct cw_job **ret, struct cw_error *err);
/* Rebuilds one job from its stored row (no effects). */
int cw_model_restore_job(struct cw_model *m, const Cw__JobRecord *rec, struct cw_job **ret, struct cw_error *err);
int cw_model_restore_attempt(struct cw_model *m, const Cw__AttemptRecord *rec, struct cw_attempt **ret, struct cw_error *err);
uint64_t cw_model_next_id(const struct cw_model *m);
void cw_model_set_next_id(struct cw_model *m, uint64_t id);

struct cw_job *cw_model_job(struct cw_model *m, uint64_t id);      /* by job or element id; NULL: not live */
struct cw_attempt *cw_model_attempt(struct cw_model *m, uint64_t element_id); /* live try of an element */
uint64_t cw_job_element_id(const struct cw_job *j, uint64_t ordinal);
bool cw_job_ordinal(const struct cw_job *j, uint64_t element_id, uint64_t *ret);
uint64_t cw_job_index(const struct cw_job *j, uint64_t ordinal);   /* array index of an ordinal */
/* The row as it has to be stored now (arena or heap owned by caller: cw__job_record__free_unpacked). */
Cw__JobRecord *cw_job_record(const struct cw_job *j);
size_t cw_model_n_jobs(const struct cw_model *m);
void cw_model_each_job(struct cw_model *m, bool (*fn)(struct cw_job *j, void *arg), void *arg); /* by id */
struct cw_list *cw_model_queue(struct cw_model *m); /* jobs with waiting elements, in submit order (cw_job.in_queue) */

/* ---- steps; each is legal in every state and says what it did ---------------------------------------- */
/* Element `ordinal` (0 for plain) of a waiting job gets this grant. PENDING -> STARTING. */
struct cw_attempt *cw_model_grant(struct cw_model *m, struct cw_job *j, uint64_t ordinal, struct cw_node *n, const uint64_t *cores, const Cw__Grant *grant, int64_t now_ns);
int cw_model_started(struct cw_model *m, const Cw__TaskStarted *s, int64_t now_ns);  /* -ESTALE: fenced */
int cw_model_ended(struct cw_model *m, const Cw__TaskEnd *e, int64_t now_ns, uint32_t max_requeues); /* -ESTALE: fenced or seen before */
int cw_model_emptied(struct cw_model *m, uint64_t id, uint32_t attempt, int64_t now_ns);
/* The node cannot answer for this attempt any more (lost, or came back without it). Requeue by budget. */
void cw_model_lost(struct cw_model *m, struct cw_attempt *a, const char *why, bool ledger_free, int64_t now_ns, uint32_t max_requeues);
/* Cancels waiting elements at once and begins to kill live ones. indices NULL: all. Returns elements touched. */
uint64_t cw_model_cancel(struct cw_model *m, struct cw_job *j, const struct cw_idset *ordinals, uint32_t uid, int64_t now_ns);
uint64_t cw_model_signal(struct cw_model *m, struct cw_job *j, const struct cw_idset *ordinals, uint32_t sig);
void cw_model_hold(struct cw_model *m, struct cw_job *j, bool hold, uint32_t uid, int64_t now_ns);
/* Ends attempts whose time limit has passed (kill asked); returns the next deadline or INT64_MAX. */
int64_t cw_model_deadlines(struct cw_model *m, int64_t now_ns);
/* A job has become final: satisfies or fails the dependents. outcome_ok: COMPLETED throughout. */
void cw_model_dependency_final(struct cw_model *m, uint64_t job_id, bool ok, int64_t now_ns);
/* Adds dependencies at submit: known final jobs are resolved by the caller first (satisfied = true). */
bool cw_job_eligible(const struct cw_job *j); /* not held, dependencies met, throttle allows one more */
/* Recomputes every node's ledger from attempts; 0, or the number of differences with text appended. */
int cw_model_selfcheck(struct cw_model *m, struct cw_buf *ret);
