#pragma once
/* The event loop of a daemon: a thin cover over libuv so that callers see only descriptors, timers,
 * signals, children, deferred calls and workers. One loop, one thread; only cw_loop_post and
 * cw_loop_stop may be called from other threads. Handles are closed by their own close call,
 * allowed inside any callback; after close no callback comes. Test: loop_test.c. */
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/error.h"

struct cw_loop;
struct cw_loop *cw_loop_create(void); /* NULL with errno when descriptors run out */
/* Closes what is left (those pointers are dead then) and waits for work that runs; its done and
 * functions already posted still run, so that nobody's arg leaks. Turn ends do not run. NULL
 * allowed. */
void cw_loop_destroy(struct cw_loop *l);
int cw_loop_run(struct cw_loop *l);        /* until stop; may be run again */
void cw_loop_stop(struct cw_loop *l);      /* after the callbacks of this turn and its turn end */
int64_t cw_loop_now_ms(struct cw_loop *l); /* monotonic, read once per turn */

/* Called once after all callbacks of one turn and before the loop sleeps again, in the order of
 * registration (turn commits here); also once before the first sleep and once when run returns. */
void cw_loop_on_turn_end(struct cw_loop *l, void (*fn)(void *arg), void *arg);

/* A descriptor; level-triggered. events: CW_LOOP_READ | CW_LOOP_WRITE. Made non-blocking here. One
 * io per descriptor. An error state or hang-up is reported as the events asked for, so that the
 * caller's own read or write says what happened; events < 0 means that the descriptor itself is
 * dead. */
#define CW_LOOP_READ  1
#define CW_LOOP_WRITE 2
struct cw_loop_io;
typedef void (*cw_loop_io_fn)(int fd, int events, void *arg); /* events < 0: negative errno */
/* NULL with errno: not pollable (EPERM: a plain file), already open here (EEXIST). */
struct cw_loop_io *cw_loop_io_open(struct cw_loop *l, int fd, int events, cw_loop_io_fn fn,
                                   void *arg);
void cw_loop_io_set(struct cw_loop_io *io, int events); /* 0 pauses */
void cw_loop_io_close(struct cw_loop_io *io);           /* NULL allowed; does not close fd */

struct cw_loop_timer;
typedef void (*cw_loop_timer_fn)(void *arg);
struct cw_loop_timer *cw_loop_timer_open(struct cw_loop *l, cw_loop_timer_fn fn, void *arg);
/* A running one starts anew; repeat_ms 0: once. */
void cw_loop_timer_start(struct cw_loop_timer *t, uint64_t delay_ms, uint64_t repeat_ms);
void cw_loop_timer_stop(struct cw_loop_timer *t);
void cw_loop_timer_close(struct cw_loop_timer *t); /* NULL allowed */

/* For the loop's life. */
void cw_loop_signal(struct cw_loop *l, int signo, void (*fn)(int signo, void *arg), void *arg);

/* Thread-safe: fn(arg) runs on the loop thread soon, never inside this call; in order. */
void cw_loop_post(struct cw_loop *l, void (*fn)(void *arg), void *arg);

/* work(arg) on a worker thread, then done(arg) on the loop thread. There are few workers. */
void cw_loop_work(struct cw_loop *l, void (*work)(void *arg), void (*done)(void *arg), void *arg);

/* A child or any process by pidfd: fn once when it has ended (it is not reaped by us). -ESRCH:
 * there is no such process (a zombie still is one); -ENOSYS: a kernel without pidfds. */
struct cw_loop_child;
struct cw_loop_child *cw_loop_child_open(struct cw_loop *l, pid_t pid,
                                         void (*fn)(pid_t pid, void *arg), void *arg,
                                         struct cw_error *err);
void cw_loop_child_close(struct cw_loop_child *c); /* NULL allowed */
