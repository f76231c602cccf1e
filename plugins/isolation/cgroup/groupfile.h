#pragma once
/* The small files of a control group. Paths are relative to a directory descriptor. */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/* One write(2) of the whole text. create: the directory is a plain one, make the file. */
int groupfile_write(int dir, const char *path, const char *text, bool create);
/* Reads at most cap-1 bytes and ends them with NUL; the length, or a negative errno. */
ssize_t groupfile_read(int dir, const char *path, char *buf, size_t cap);
int groupfile_read_u64(int dir, const char *path, uint64_t *ret);
/* The number behind `name ` at the start of a line, as in "oom_kill 3"; -ENOENT: no such line. */
int groupfile_read_field(int dir, const char *path, const char *name, uint64_t *ret);
/* Is every number of the list inner ("0-3,8") in the list outer, as the kernel prints lists? */
bool groupfile_list_within(const char *inner, const char *outer);
