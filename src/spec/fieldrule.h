#pragma once
/* What single fields may hold, one function per kind of field, used where a value is given (so that
 * the message has a place) and again by cw_check_spec. -EINVAL or -E2BIG with a sentence that
 * quotes the value and says what is allowed. Pure. Test: check_test.c. */
#include <stdint.h>

#include "base/error.h"

#define CW_FIELD_MAX_TASKS 65536u
#define CW_FIELD_MAX_CPUS 65536u
#define CW_FIELD_MAX_GPUS 1024u
#define CW_FIELD_MAX_NODES 16384u
#define CW_FIELD_MAX_RETRIES 1000u
#define CW_FIELD_MAX_RETRY_DELAY_S 3600u
#define CW_FIELD_MAX_HOSTS 8192u /* bytes of a host list */
#define CW_FIELD_MAX_GRACE_S 86400u

int cw_field_name(const char *text,
                  struct cw_error *err); /* a job's name: 1-256 bytes, printable */
int cw_field_word(const char *text,
                  struct cw_error *err); /* partition, account, plugin: 1-64 of A-Za-z0-9._@+- */
int cw_field_note(const char *text,
                  struct cw_error *err); /* up to 1024 bytes, no control characters */
int cw_field_path(const char *text, struct cw_error *err);     /* 1-4095 bytes, no line break */
int cw_field_variable(const char *pair, struct cw_error *err); /* "K=V" with K a C identifier */
int cw_field_label(const char *pair, struct cw_error *err);    /* "k=v" */
int cw_field_target(const char *path, struct cw_error *err);   /* absolute, without . and .. */
/* A decimal number from min to max, nothing around it. */
int cw_field_count(const char *text, uint64_t min, uint64_t max, uint64_t *ret,
                   struct cw_error *err);
