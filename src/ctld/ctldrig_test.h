#pragma once
/* For component tests: a real crunctld in a directory of its own, a scripted node that keeps its
 * word over the death of the controller, and clients. Not thread-safe, but for rig_call. */
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/error.h"
#include "base/mem.h"
#include "proto/wire.pb-c.h"
#include "wire/kinds.h"

struct rig;
struct rig *rig_create(void);
void rig_destroy(struct rig *r);
/* fault: CRUN_FAULT of this start, or NULL. Returns when the controller is ready. */
void rig_start(struct rig *r, const char *fault);
bool rig_alive(struct rig *r); /* reaps; false: it has ended */
void rig_kill(struct rig *r);  /* SIGKILL */
int rig_stop(struct rig *r);   /* SIGTERM; its exit code */
/* The node does its part for that long, or until *until is true. It runs each task at once. */
void rig_node(struct rig *r, uint32_t ms, const atomic_bool *until);
void rig_node_join(struct rig *r, const char *name);
/* From now on tasks begin and do not end until they are killed. */
void rig_node_slow(struct rig *r);
size_t rig_killed(struct rig *r);           /* tasks that were ended by a kill */
size_t rig_ran(struct rig *r, uint64_t id); /* how often the node began a task of this element */
size_t rig_ran_all(struct rig *r);

/* One request with its own connection, from any thread. 0 or a negative errno. */
int rig_call(struct rig *r, enum cw_kind kind, const ProtobufCMessage *m, uint32_t timeout_ms,
             struct cw_arena *a, ProtobufCMessage **ret, struct cw_error *err);
/* Submits `true` under this key until it is answered. The id. */
uint64_t rig_submit(struct rig *r, const uint8_t key[16]);
