#pragma once
/* The node daemon's side of shepherd_test.c: starts the built crun-shepherd, speaks its protocol,
 * makes tasks and waits for what comes back. One shepherd at a time. For tests only. */
#include <stdbool.h>
#include <sys/types.h>

#include "base/buf.h"
#include "base/list.h"
#include "base/mem.h"
#include "proto/wire.pb-c.h"
#include "shepherd/packet.h"

struct cw_rig_got {
    struct cw_list link;
    enum cw_packet_type type;
    struct cw_buf body;
    int fd;
};

struct cw_rig {
    char dir[256];
    char *conf, *shep_dir, *build;
    struct cw_packets *p;
    pid_t pid;
    struct cw_list got;
    struct cw_arena *arena;
    uint64_t next_id;
    uid_t uid; /* jobs run as */
    unsigned runs;
    char id[16];
};
extern struct cw_rig cw_rig;

struct cw_rig_job {
    Cw__TaskStart start;
    Cw__TaskKey key;
    Cw__JobSpec spec;
    Cw__Payload payload;
    Cw__Owner owner;
    Cw__Grant grant;
    char *argv[16];
    char *env[8];
    char cpus[8];
};

void cw_rig_drop(struct cw_rig_got *g);
bool cw_rig_pump(int64_t end_ms);
struct cw_rig_got *cw_rig_take(enum cw_packet_type type, uint64_t id);
const Cw__TaskEnd *cw_rig_end_of(uint64_t id);
const Cw__TaskStarted *cw_rig_started_of(uint64_t id);
void cw_rig_forget(uint64_t id);
void cw_rig_kill(uint64_t id, uint32_t grace_ms);
struct cw_rig_job cw_rig_job(const char *first, ...);
uint64_t cw_rig_run(struct cw_rig_job *j);
char *cw_rig_in_dir(const char *name);
const char *cw_rig_text_of(const char *name);
void cw_rig_spawn(const char *id, int fd, uid_t as, const char *extra);
void cw_rig_start(uid_t as);
void cw_rig_connect_again(void);
int cw_rig_wait(void);
int cw_rig_setup(void **state);
int cw_rig_setup_as_user(void **state);
int cw_rig_teardown(void **state);
