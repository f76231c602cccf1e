#pragma once
/* The controller's memory of jobs: pure data and state steps. No clock, file, socket or lock: time
 * is an argument. Every change goes through a cw_model_* step, which changes memory and appends
 * *effects*; the owner makes the effects durable first and carries them out afterwards
 * (DESIGN.md 5.2).
 *
 * A plain job is one struct cw_job of at most ~400 bytes plus its packed spec; an array is one
 * struct cw_job with interval sets of ordinals; only elements that are live have a struct
 * cw_attempt. Ids: see JobRecord.id. Finished jobs leave memory (they are found in the store).
 * Test: job_test.c, and model_random_test.c (random steps; the ledger recomputed each time must
 * agree). */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/error.h"
#include "base/idset.h"
#include "base/list.h"
#include "proto/job.pb-c.h"
#include "model/want.h"
#include "proto/wire.pb-c.h"

struct cw_model;
struct cw_node;

/* Why a job waits: one row each (word for lists, used in JobInfo.reason). */
#define CW_REASONS(X)                       \
    X(NONE, "None")                         \
    X(PRIORITY, "Priority")                 \
    X(RESOURCES, "Resources")               \
    X(DEPENDENCY, "Dependency")             \
    X(HELD, "JobHeldUser")                  \
    X(HELD_ADMIN, "JobHeldAdmin")           \
    X(BEGIN, "BeginTime")                   \
    X(NEVER, "DependencyNeverSatisfied")    \
    X(PAUSED, "SchedulingPaused")           \
    X(ARRAY_LIMIT, "JobArrayTaskLimit")     \
    X(PARTITION_DOWN, "PartitionDown")      \
    X(NODES_UNAVAILABLE, "ReqNodeNotAvail") \
    X(SCHEDULING, "Scheduling")             \
    X(DISK, "ControllerDiskFull")
enum cw_reason {
#define X(NAME, word) CW_REASON_##NAME,
    CW_REASONS(X)
#undef X
    CW_REASON_N
};
const char *cw_reason_word(enum cw_reason r);

/* What an element gets on one node. Node 0 of an attempt runs the leader. */
struct cw_partgrant {
    struct cw_node *node;
    const uint64_t *cores; /* mask of the node's core words */
    const Cw__Grant *grant;
};

/* One node's share of an attempt, charged there until that node proves it empty. Those from ENDED
 * on have nothing left to say but that proof. */
enum cw_partphase {
    CW_PART_GRANTED,
    CW_PART_STARTED,
    CW_PART_ENDED, /* not proven empty */
    CW_PART_LOST,  /* its node was given up; may live there */
    CW_PART_FREED
};
struct cw_part {
    struct cw_attempt *attempt;
    struct cw_node *node;
    uint64_t *cores; /* mask of the node's core words */
    uint64_t mem_bytes;
    uint64_t gpus; /* mask of the node's inventory GPUs */
    enum cw_partphase phase;
    struct cw_list on_node; /* linked while charged */
};

struct cw_attempt { /* a live try; from grant until its ledger entry is freed */
    uint64_t id, job_id, ordinal;
    uint32_t attempt;
    Cw__State state; /* STARTING, RUNNING, COMPLETING, or terminal with the ledger not yet freed */
    struct cw_job *job; /* NULL once the job record has left memory */
    Cw__AttemptRecord *rec; /* heap (protobuf_c free_unpacked), the truth that is stored */
    int64_t deadline_ns;    /* time limit; INT64_MAX none */
    uint8_t kill_step;   /* 0 no, 1 asked: deadline_ns is then the end of our patience */
    bool requeue;      /* terminal by a node's fault; its element waits until the ledger is free */
    uint32_t heap_pos; /* model's own */
    struct cw_list on_job;
    struct cw_list ghost; /* linked: on lost nodes, its element goes on without it; job is NULL */
    uint32_t n_parts;     /* at least 1; number 0 is the head, it runs the leader */
    struct cw_part parts[];
};
/* The attempt's share of n; NULL: n has none of it. */
struct cw_part *cw_attempt_part(struct cw_attempt *a, const struct cw_node *n);
uint32_t cw_part_number(const struct cw_part *p);
const Cw__Grant *cw_part_grant(const struct cw_part *p);
/* May the node be told to start its part? The head's comes when the boxes of all others stand. */
bool cw_part_startable(const struct cw_part *p);

struct cw_job {
    uint64_t id, count; /* count 1: plain */
    Cw__State state;    /* PENDING while any element waits, else that of the elements */
    bool is_array, held;
    uint8_t reason; /* enum cw_reason of the last evaluation */
    uint32_t uid, gid, next_attempt, throttle;
    struct cw_want *want;      /* where it can run */
    uint64_t time_limit_s;     /* partition default filled in; UINT64_MAX unlimited */
    uint32_t time_est_s;       /* what backfill plans with; 0: the limit */
    int64_t submit_ns, end_ns; /* end_ns 0: not final */
    int64_t priority;          /* INT64_MIN: not evaluated (sched/order) */
    int64_t set_priority;      /* by an admin; INT64_MIN: not */
    int32_t nice;
    uint16_t partition;        /* index in the model's partition list; UINT16_MAX: gone */
    bool no_requeue, has_deps; /* the spec names dependencies, met or not */
    bool held_by_admin;        /* only an admin lets it go */
    bool early;                /* waits for begin_ns */
    bool keep_invalid;         /* a dependency that can never be met keeps it waiting */
    bool deps_any;             /* one of its dependencies is enough */
    int64_t begin_ns, deadline_ns; /* 0, INT64_MAX: none */
    int64_t timer_ns;              /* the next of the two; timer_pos: model's own */
    uint32_t timer_pos;
    const char *retry_on;          /* interned; NULL: any failure */
    uint32_t retries, retry_delay_s;
    uint32_t node_faults, retries_used; /* plain jobs: by the attempts so far */
    bool parked;               /* waits, but is kept out of the queue (cw_model_queue) */
    uint32_t kill_grace_s;
    const char *end_reason;                     /* interned or NULL */
    const char *account;                        /* interned, NULL: not asked */
    void *spec_packed; /* packed JobRecord with the fields that never change (spec, owner, keys) */
    uint32_t spec_len;
    const char *name, *user;   /* interned */
    struct cw_jobarray *array; /* NULL for plain */
    struct cw_jobdeps *deps;   /* NULL: none left unsatisfied */
    struct cw_list attempts;   /* cw_attempt.on_job */
    struct cw_list in_queue;   /* in the queue or parked, while an element waits */
    struct cw_list waiters;    /* the owner's (long polls) */
};

/* What an element that waits has used up. */
struct cw_tries {
    uint32_t next; /* attempt number */
    uint32_t node_faults, retries_used;
};

struct cw_jobarray {
    struct cw_idset indices;   /* array index of ordinal k = nth(k) */
    struct cw_idset pending;   /* ordinals */
    struct cw_idset cancelled; /* ordinals cancelled before a start */
    uint64_t n_completed, n_failed, n_cancelled;
    uint64_t n_live;         /* attempts not yet terminal: what the throttle counts */
    uint64_t n_running;      /* of them RUNNING */
    uint64_t n_held_back;    /* waiting for an old attempt's ledger before they may start again */
    uint64_t n_element_deps; /* dependencies of other jobs on single elements */
    uint32_t worst_exit;
    struct cw_idtable *tries; /* ordinal -> packed cw_tries, where it is not a fresh one */
};

/* Effects, in the order they must happen after the commit. Rows to store are part of them. The
 * pointers in an effect are valid during the call only (after DONE with ledger_freed the attempt,
 * after JOB_FINAL the job is freed): pack rows in the callback, remember (id, attempt) for what is
 * sent later. The callback must not step the model. */
enum cw_effect_kind {
    CW_EFFECT_PUT_JOB,     /* store the job's row */
    CW_EFFECT_PUT_ATTEMPT, /* store the attempt's row */
    CW_EFFECT_PUT_NODE,
    CW_EFFECT_EVENT, /* append to history */
    CW_EFFECT_DONE,  /* attempt has its terminal state (once): index by end time */
    CW_EFFECT_SEND_START, /* these three: to the effect's node, one of the attempt's */
    CW_EFFECT_SEND_KILL,
    CW_EFFECT_SEND_LIMIT,  /* its time limit changed: to the head's node */
    CW_EFFECT_SEND_SIGNAL,
    CW_EFFECT_JOB_FINAL,   /* all elements terminal: tell waiters (unlink them); then it is freed */
    CW_EFFECT_RUN_CYCLE    /* something may start now */
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
/* Takes over rec's content (copied). Sets ids: *ret_job->id = next id; next_id moves by count+1 for
 * arrays. Emits PUT_JOB, EVENT submit, RUN_CYCLE. -EINVAL with a sentence: partition, indices or a
 * dependency that cannot be satisfied; -ENOENT: an unsatisfied dependency on a job that is not live
 * (the caller looks finished predecessors up first); -ENODATA: on an element of a live array that
 * has ended already with an outcome that only its attempt row knows (look it up and set satisfied,
 * or refuse). */
int cw_model_submit(struct cw_model *m, const Cw__JobRecord *rec, struct cw_job **ret,
                    struct cw_error *err);
/* Gives a job this spec (all of it) instead of its own. The caller has checked that it may change and
 * what it changes to; of a running job only what costs no other room. A changed time limit counts for
 * what runs. new_deps: dependencies are among what changed; else the open ones stay as they are. Emits
 * PUT_JOB, EVENT update (with `what`), SEND_LIMIT. -EINVAL: partition, or a dependency that cannot be
 * met or leads back to the job; nothing changed then. */
int cw_model_update(struct cw_model *m, struct cw_job *j, const Cw__JobSpec *s, bool new_deps,
                    uint32_t uid, const char *what, int64_t now_ns, struct cw_error *err);
/* Rebuilds one job from its stored row (no effects). Jobs come in the order of their ids, before
 * the attempts. *ret is NULL for what need not be in memory: a terminal job, an attempt whose
 * ledger is freed. An attempt of an unknown node makes that node (without inventory). Terminal
 * attempts whose ledger is not freed are quarantine: restore those too, whether or not their job is
 * still live. */
int cw_model_restore_job(struct cw_model *m, const Cw__JobRecord *rec, struct cw_job **ret,
                         struct cw_error *err);
int cw_model_restore_attempt(struct cw_model *m, const Cw__AttemptRecord *rec,
                             struct cw_attempt **ret, struct cw_error *err);
uint64_t cw_model_next_id(const struct cw_model *m);
void cw_model_set_next_id(struct cw_model *m, uint64_t id);

/* By job or element id; NULL: not live. */
struct cw_job *cw_model_job(struct cw_model *m, uint64_t id);
/* Live try of an element. */
struct cw_attempt *cw_model_attempt(struct cw_model *m, uint64_t element_id);
/* This very try, also when it is a ghost on a lost node. */
struct cw_attempt *cw_model_attempt_numbered(struct cw_model *m, uint64_t element_id, uint32_t attempt);
uint64_t cw_job_element_id(const struct cw_job *j, uint64_t ordinal);
bool cw_job_ordinal(const struct cw_job *j, uint64_t element_id, uint64_t *ret);
uint64_t cw_job_index(const struct cw_job *j, uint64_t ordinal); /* array index of an ordinal */
/* The row as it has to be stored now (arena or heap owned by caller:
 * cw__job_record__free_unpacked). */
Cw__JobRecord *cw_job_record(const struct cw_job *j);
size_t cw_model_n_jobs(const struct cw_model *m);
/* Something about the instance as a whole, for the history. */
void cw_model_site_event(struct cw_model *m, uint32_t uid, const char *event, const char *text);
/* By id. */
void cw_model_each_job(struct cw_model *m, bool (*fn)(struct cw_job *j, void *arg), void *arg);
/* Those with an id of at least first_id: a walk in slices does not begin anew. */
void cw_model_each_job_from(struct cw_model *m, uint64_t first_id,
                            bool (*fn)(struct cw_job *j, void *arg), void *arg);
/* Jobs with waiting elements that are not held, whose dependencies are met and whose partition
 * exists, in scheduling order: larger cw_job.priority first, then by id (cw_job.in_queue). The
 * others that wait are parked (cw_model_parked), in no order. */
struct cw_list *cw_model_queue(struct cw_model *m);
struct cw_list *cw_model_parked(struct cw_model *m);
uint64_t cw_model_next_pass(struct cw_model *m); /* numbers passes, from 1 */
/* When all priorities were evaluated last; 0 at first. */
int64_t *cw_model_order_stamp(struct cw_model *m);
void cw_model_queue_reorder(struct cw_model *m, struct cw_job *j); /* after its priority changed */
uint64_t cw_model_n_queued(const struct cw_model *m, uint16_t partition); /* of the queue, in it */
/* Partitions with a job in the queue. */
uint32_t cw_model_n_queued_partitions(const struct cw_model *m);
/* Appends the row as cw_job_record would pack it, cheaply (no unpacking of the spec). */
void cw_job_row(const struct cw_job *j, struct cw_buf *out);
/* Elements that could start as far as they are concerned. */
uint64_t cw_job_n_waiting(const struct cw_job *j);
bool cw_job_next(const struct cw_job *j, uint64_t *ret_ordinal); /* the element to start next */
enum cw_reason cw_job_reason(const struct cw_job *j);            /* why it waits, as of now */

/* ---- steps; each is legal in every state and says what it did ---- */
/* A step may make the job final: then `j` is gone when it returns. What ended an attempt, when we
 * had asked for a kill: our cause wins, except over EXIT (it was faster than our kill) and OOM (the
 * kernel says so). */
/* An attempt on several nodes is one: all parts are charged by its grant. Nodes 1.. are told to
 * start first; when all of them have, the head is. The first part that ends or cannot start ends
 * the attempt: its cause is the attempt's, the others are killed (CAUSE_PEER), and until all have
 * ended the attempt is COMPLETING. Exit code, output and start are the head's, usage is summed.
 *
 * Element `ordinal` (0 for plain) of a waiting job gets these grants, on distinct nodes. PENDING ->
 * STARTING. */
struct cw_attempt *cw_model_grant(struct cw_model *m, struct cw_job *j, uint64_t ordinal,
                                  const struct cw_partgrant *parts, size_t n_parts, int64_t now_ns);
/* What node n says of its part. -ESTALE: fenced, or n has no part of it. */
int cw_model_started(struct cw_model *m, const struct cw_node *n, const Cw__TaskStarted *s,
                     int64_t now_ns);
/* -ESTALE: fenced or seen before. Requeues after a node's fault while attempt <= max_requeues, when
 * nothing is charged for it on a node that lives. Not empty: the part's ledger stays charged until
 * cw_model_emptied, or a second TaskEnd with empty, or cw_model_lost with ledger_free. */
int cw_model_ended(struct cw_model *m, const struct cw_node *n, const Cw__TaskEnd *e,
                   int64_t now_ns, uint32_t max_requeues);
int cw_model_emptied(struct cw_model *m, const struct cw_node *n, uint64_t id, uint32_t attempt,
                     int64_t now_ns);
/* Its node cannot answer for this part any more (lost, or came back without it). Requeue by budget:
 * without ledger_free the part stays charged to its node, and an attempt of which only such parts
 * are left becomes a ghost until the nodes answer for it (cw_model_ended with empty,
 * cw_model_emptied). */
void cw_model_lost(struct cw_model *m, struct cw_part *p, const char *why, bool ledger_free,
                   int64_t now_ns, uint32_t max_requeues);
/* Cancels waiting elements at once and begins to kill live ones. ordinals NULL: all. Returns the
 * elements named that had not ended (so a second call answers the same); only the first call has
 * effects. */
uint64_t cw_model_cancel(struct cw_model *m, struct cw_job *j, const struct cw_idset *ordinals,
                         uint32_t uid, int64_t now_ns);
uint64_t cw_model_signal(struct cw_model *m, struct cw_job *j, const struct cw_idset *ordinals,
                         uint32_t sig);
/* An allocation is given back: it ends with this exit code (-1: none) or signal (0: none) of its
 * owner's command. */
void cw_model_release(struct cw_model *m, struct cw_job *j, int exit_code, uint32_t signal,
                      uint32_t uid, int64_t now_ns);
/* Nobody renews it any more. */
void cw_model_owner_gone(struct cw_model *m, struct cw_job *j, int64_t now_ns);
/* Live attempts of these elements are ended and begin again as the next attempt; with hold they wait
 * for a release first. Returns how many live or waiting ones were named. */
uint64_t cw_model_requeue(struct cw_model *m, struct cw_job *j, const struct cw_idset *ordinals,
                          bool hold, uint32_t uid, int64_t now_ns);
/* What an administrator holds only an administrator may let go (the caller sees to that). */
void cw_model_hold(struct cw_model *m, struct cw_job *j, bool hold, uint32_t uid, bool by_admin,
                   int64_t now_ns);
#define CW_DEPS_ANY "any" /* JobSpec.dependency_rule: one dependency is enough */
/* Asks for the kill of attempts whose time limit has passed. Of those that were asked to die and
 * whose node said nothing for CW_MODEL_KILL_PATIENCE_S beyond the grace, ends the job and keeps the
 * ledger (quarantine). Returns the next deadline or INT64_MAX. */
#define CW_MODEL_KILL_PATIENCE_S 300
/* From grant to STARTED, with several nodes for the boxes and for the leader each; then it is
 * killed as the node's fault (LAUNCH_NODE). */
#define CW_MODEL_LAUNCH_PATIENCE_S 3600
/* So many failed launches in a row, of more than one job, drain a node. */
#define CW_MODEL_LAUNCH_FAULTS 3
int64_t cw_model_deadlines(struct cw_model *m, int64_t now_ns);
/* A job has become final: satisfies or fails the dependents. outcome_ok: COMPLETED throughout. */
void cw_model_dependency_final(struct cw_model *m, uint64_t job_id, bool ok, int64_t now_ns);
/* Not held, dependencies met, throttle allows one more. */
bool cw_job_eligible(const struct cw_job *j);
/* Recomputes every node's ledger from attempts; 0, or the number of differences with a line each. */
int cw_model_selfcheck(struct cw_model *m, struct cw_buf *ret);
