#pragma once
/* Job files: bytes to directives. Errors are `file:line:col: message`.
 * Refused: NUL bytes, CRLF on the first line or in a directive, no #! without --shell, more than
 * CW_JOBFILE_MAX bytes, unknown directives, words that are no option, a directive line whose
 * quoting does not end. Warnings: a directive behind the first command (with its line), a $VAR in a
 * directive (nothing is expanded). "##CRUN" and "# CRUN" are comments. Pure. Test: jobfile_test.c,
 * fuzz_jobfile.c. */
#include "spec/options.h"

#define CW_JOBFILE_MAX (512u * 1024u)

/* Applies the directives of text to r and stores the script in r->payload, with "#!SHELL" in front
 * when the file has no #! and r->shell is set. name is for messages and for the job's name ("-":
 * stdin); prefix NULL: r->directive_prefix, or "#CRUN" and "#SBATCH". Weaker than what the command
 * line has set already. */
int cw_jobfile_parse(struct cw_request *r, const char *name, const void *text, size_t n,
                     const char *prefix, struct cw_error *err);
/* Splits one directive line into words by POSIX shell quoting without expansion; a word that begins
 * with an unquoted # ends the line. cols[i] is the column (from 1) of word i; free() the array. On
 * error the sentence names the column. */
int cw_jobfile_split(const char *line, size_t n, struct cw_strv *ret_words, size_t **ret_cols,
                     struct cw_error *err);
