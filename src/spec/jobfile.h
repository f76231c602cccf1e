#pragma once
/* Job files: bytes to directives (rules: FEATURES-BATCH 2.3). Errors are `file:line:col: message`.
 * Refused: NUL bytes, CRLF on the first line, no #! without --shell, more than CW_JOBFILE_MAX bytes,
 * unknown directives, a directive line whose quoting does not end. A directive behind the first command
 * gives a warning with its line. Pure. Test: jobfile_test.c, fuzz/fuzz_jobfile.c. */
#include "spec/options.h"

#define CW_JOBFILE_MAX (512u * 1024u)

/* Applies the directives of text to r and stores the script in r->payload. name is for messages;
 * prefix NULL: "#CRUN" and "#SBATCH". */
int cw_jobfile_parse(struct cw_request *r, const char *name, const void *text, size_t n, const char *prefix, struct cw_error *err);
/* Splits one directive line into words by POSIX shell quoting without expansion; a word that begins with
 * an unquoted # ends the line. cols[i] is the column (from 1) of word i. */
int cw_jobfile_split(const char *line, size_t n, struct cw_strv *ret_words, size_t **ret_cols, struct cw_error *err);
