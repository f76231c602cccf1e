#pragma once
/* The one table of what a configuration may say: names, kinds, limits, defaults, a line of
 * explanation. The shape scanner, the loader, the dump and the documentation read it. A new setting
 * is a field in conf.h and a row here. Test: conf_test.c. */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum cw_conf_kind {
    CW_CONF_TEXT,      /* const char *, anything */
    CW_CONF_NAME,      /* const char *, letters, digits, '_', '-', '.' */
    CW_CONF_OPTNAME,   /* as NAME, may be empty */
    CW_CONF_USERS,     /* const char *, names between commas, may be empty */
    CW_CONF_NODES,     /* const char *, a host list or ALL */
    CW_CONF_CHOICE,    /* const char *, one of choices */
    CW_CONF_BASEDIR,   /* const char *, a path relative to the file's directory */
    CW_CONF_PATH,      /* const char *, a path relative to dir */
    CW_CONF_SOCKET,    /* as PATH, short enough for AF_UNIX */
    CW_CONF_PATHS,     /* const char *, paths between colons, each relative to dir */
    CW_CONF_COMMAND,   /* const char *, NULL when not given; a path relative to dir */
    CW_CONF_URL,       /* const char *, ipc://PATH (relative to dir) or tcp://HOST:PORT */
    CW_CONF_BOOL,      /* bool */
    CW_CONF_COUNT32,   /* uint32_t */
    CW_CONF_COUNT64,   /* uint64_t */
    CW_CONF_SECONDS,   /* uint32_t; a bare number is seconds, units s m h d w */
    CW_CONF_SECONDS64, /* uint64_t, as SECONDS */
    CW_CONF_MS,        /* uint32_t; the unit must be given: ms s m h */
    CW_CONF_JOBTIME,   /* uint64_t seconds, the grammar of --time: a bare number is minutes */
    CW_CONF_SIZE,      /* uint64_t bytes; a bare number is MiB */
};

struct cw_conf_row {
    const char *name;
    enum cw_conf_kind kind;
    size_t offset;   /* of the field in the section's struct */
    const char *def; /* as in a file; @NAME@ stands for the text of an earlier setting */
    const char *(*computed)(void); /* the default when def is NULL */
    uint64_t min, max;   /* for numbers, in the unit of the field; max 0: the field's own */
    const char *choices; /* for CHOICE, separated by one space */
    const char *doc;
};

struct cw_conf_section {
    const char *name; /* "" for the file itself */
    bool titled;      /* may then be given many times, each title once */
    bool free_keys;   /* any `key = value` */
    const struct cw_conf_row *rows;
    size_t n_rows;
    const struct cw_conf_section *subs;
    size_t n_subs;
};

extern const struct cw_conf_section cw_conf_schema_root;

const struct cw_conf_row *cw_conf_schema_row(const struct cw_conf_section *s, const char *name);
const struct cw_conf_section *cw_conf_schema_sub(const struct cw_conf_section *s, const char *name);
/* The allowed name that is nearest to a mistyped one; NULL when none is near. */
const char *cw_conf_schema_nearest(const struct cw_conf_section *s, const char *name);
