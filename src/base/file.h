#pragma once
/* Whole files, directories, locks. All descriptors are O_CLOEXEC. Errors are negative errno with a
 * sentence naming the path. Test: file_test.c. */
#include <stddef.h>
#include <sys/types.h>

#include "base/buf.h"
#include "base/error.h"

/* Reads all of path; -EFBIG when it is larger than max bytes. */
int cw_file_read(const char *path, size_t max, struct cw_buf *ret, struct cw_error *err);
int cw_file_read_fd(int fd, const char *name, size_t max, struct cw_buf *ret, struct cw_error *err);
/* Writes to a temporary name, fsyncs, renames over path, fsyncs the directory. */
int cw_file_write_atomic(const char *path, const void *p, size_t n, mode_t mode, struct cw_error *err);
int cw_file_write_all(int fd, const void *p, size_t n); /* loops over short writes; negative errno */
/* mkdir -p; new components get mode less the umask. Existing directories are left as they are. */
int cw_file_mkdirs(const char *path, mode_t mode, struct cw_error *err);
/* Takes an exclusive lock on path (created 0600, holds our pid as text). -EBUSY when another process
 * holds it: the sentence names its pid. The lock lives as long as the returned fd. */
int cw_file_lock(const char *path, int *ret_fd, struct cw_error *err);
char *cw_file_join(const char *dir, const char *name); /* heap "dir/name"; name absolute gives name */
