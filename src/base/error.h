#pragma once
/* Errors that travel upwards: a negative errno as return value and one sentence for people.
 *
 * Libraries fill a struct cw_error and return; they never log. The edge (a daemon's request, a
 * command's main) prints it once. `err` may be NULL everywhere. Thread: a struct belongs to one
 * caller. Test: error_test.c. */
#include <errno.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>

#define CW_ERROR_MAX 512

/* Whose fault it is decides what happens: the job fails, the node is marked, or we assert. */
enum cw_fault { CW_FAULT_USER = 0, CW_FAULT_NODE, CW_FAULT_BUG };

struct cw_error {
    int code;            /* negative errno, as returned */
    enum cw_fault fault; /* default CW_FAULT_USER */
    char text[CW_ERROR_MAX]; /* "thing act: cause", no newline; cut with "..." when too long */
};

/* Fills err (NULL allowed) with code (negative errno) and a formatted sentence; returns code.
 * Control characters in the result are replaced by '?', so hostile input cannot break a log line. */
int cw_fail(struct cw_error *err, int code, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));
/* As cw_fail with the fault class CW_FAULT_NODE. */
int cw_fail_node(struct cw_error *err, int code, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));
/* As cw_fail, and appends ": " and strerror(-code). */
int cw_fail_errno(struct cw_error *err, int code, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));
/* Puts "context: " in front of the sentence already in err; returns err->code (or code_if_null when
 * err is NULL). */
int cw_wrap(struct cw_error *err, int code_if_null, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));
