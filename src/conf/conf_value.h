#pragma once
/* One setting's text, checked and put into its field; and back into text. Test: conf_test.c. */
#include "base/buf.h"
#include "base/error.h"
#include "base/mem.h"
#include "conf/conf_schema.h"

#define CW_CONF_UNIX_PATH_MAX 107 /* sun_path without its NUL */

struct cw_conf_bases {
    struct cw_arena *arena;
    const char *file_dir; /* base of dir */
    const char *dir;      /* base of everything else; NULL until dir itself is known */
};

/* section: the struct that the row's offset is in. The sentence does not name file, line or
 * setting. */
int cw_conf_value_set(const struct cw_conf_bases *b, const struct cw_conf_row *row, void *section,
                      const char *text, struct cw_error *err);
/* What cw_conf_value_set would read as the same value. */
void cw_conf_value_format(const struct cw_conf_row *row, const void *section, struct cw_buf *out);
