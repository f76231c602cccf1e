#pragma once
/* Output files of tasks that somebody reads: opened by a shepherd as the user, read here by
 * descriptor, watched by inotify while a reader waits, closed after a while without readers. Test:
 * logfile_test.c. */
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/buf.h"
#include "base/error.h"
#include "base/list.h"
#include "loop/loop.h"

#define CW_LOGFILES_MAX 256

struct cw_logfile {
    struct cw_list link; /* least recently used first */
    char name[48];       /* "12.1/o" */
    int fd;              /* -1: being opened */
    int watch;           /* inotify, -1 none */
    int64_t used_ms;
    unsigned readers; /* that wait; such a file stays */
};
struct cw_logfiles;
/* changed: the file grew (or was cut); readers look again. */
struct cw_logfiles *cw_logfiles_create(struct cw_loop *l,
                                       void (*changed)(struct cw_logfile *f, void *arg), void *arg,
                                       struct cw_error *err);
void cw_logfiles_destroy(struct cw_logfiles *t);
struct cw_logfile *cw_logfiles_find(struct cw_logfiles *t, const char *name);
/* A new entry with fd -1. NULL: all are in use by readers. */
struct cw_logfile *cw_logfiles_add(struct cw_logfiles *t, const char *name);
void cw_logfiles_remove(struct cw_logfiles *t, struct cw_logfile *f);
void cw_logfiles_expire(struct cw_logfiles *t, int64_t now_ms);
size_t cw_logfiles_count(const struct cw_logfiles *t);
void cw_logfile_watch(struct cw_logfiles *t, struct cw_logfile *f); /* one more reader waits */
void cw_logfile_unwatch(struct cw_logfiles *t, struct cw_logfile *f);
/* Up to max bytes from offset (behind the end: none), appended; ret_offset is where they begin. */
int cw_logfile_read(struct cw_logfile *f, uint64_t offset, bool from_end, size_t max,
                    struct cw_buf *out, uint64_t *ret_offset, uint64_t *ret_size);
