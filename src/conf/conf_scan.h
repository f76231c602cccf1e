#pragma once
/* The shape of a configuration: which settings stand in which section, in which file and line.
 *
 * libconfuse reads the values but lets too much pass: a missing closing brace, settings and titles
 * given twice, characters it drops, environment variables. The scanner goes over the same text
 * first, takes only a strict part of the language (in which both agree), and remembers every place.
 * Test: conf_test.c, fuzz_conf.c. */
#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include "base/buf.h"
#include "base/error.h"
#include "base/mem.h"
#include "conf/conf_schema.h"

#define CW_CONF_FILE_MAX (1024U * 1024U) /* bytes of one file */
#define CW_CONF_ITEMS_MAX 10000U         /* settings and sections in all files */
#define CW_CONF_INCLUDES_MAX 8           /* files within files */

struct cw_conf_item {
    const char *name;
    const char *title; /* of a titled section, else NULL */
    const char *value; /* of a setting, as the scanner reads it; libconfuse must read the same */
    const struct cw_conf_section *section; /* NULL: a setting */
    size_t parent; /* position plus 1 of the section it stands in; 0: the file */
    const char *file;
    int line;
};

struct cw_conf_scan {
    struct cw_arena *arena; /* owns all strings; given by the caller */
    struct cw_conf_item *items;
    size_t n, cap;
    uid_t owner; /* of the main file: included ones are its, root's or our own */
    int depth;
};

void cw_conf_scan_fini(struct cw_conf_scan *s);
/* Scans text and everything that it includes; the error is `file:line: sentence`. */
int cw_conf_scan_text(struct cw_conf_scan *s, const char *file, const char *text, size_t len,
                      struct cw_error *err);
/* NULL: not given. title may be NULL. */
const struct cw_conf_item *cw_conf_scan_find(const struct cw_conf_scan *s, size_t parent,
                                             const char *name, const char *title);
/* The path that include("name") in file means; in the arena. */
const char *cw_conf_scan_include_path(struct cw_arena *arena, const char *file, const char *name);
/* Reads a regular file of at most CW_CONF_FILE_MAX that not everybody may write; owner, when not
 * NULL, is who may own it beside root and ourselves. ret_owner may be NULL. */
int cw_conf_scan_read(const char *path, const uid_t *owner, struct cw_buf *ret, uid_t *ret_owner,
                      struct cw_error *err);
