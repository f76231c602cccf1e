/* Errors that travel upwards.
 *
 * Owns how a sentence is made: formatted first and copied then, so that arguments may point into
 * the very error that is being filled. Never logs. Test: error_test.c. */
#include "config.h"

#include "base/error.h"

#include <stdio.h>
#include <string.h>

#include "base/printable.h"

static void set_text(struct cw_error *err, char *text, int n)
{
    if (n < 0)
        text[0] = '\0';
    cw_printable_clean(text);
    if (n >= CW_ERROR_MAX)
        cw_printable_ellipsis(text);
    memcpy(err->text, text, strlen(text) + 1);
}

static void fill(struct cw_error *err, int code, enum cw_fault fault, const char *fmt, va_list ap)
{
    char text[CW_ERROR_MAX];
    int n = vsnprintf(text, sizeof(text), fmt, ap);

    err->code = code;
    err->fault = fault;
    set_text(err, text, n);
}

int cw_fail(struct cw_error *err, int code, const char *fmt, ...)
{
    va_list ap;

    if (err == NULL)
        return code;
    va_start(ap, fmt);
    fill(err, code, CW_FAULT_USER, fmt, ap);
    va_end(ap);
    return code;
}

int cw_fail_node(struct cw_error *err, int code, const char *fmt, ...)
{
    va_list ap;

    if (err == NULL)
        return code;
    va_start(ap, fmt);
    fill(err, code, CW_FAULT_NODE, fmt, ap);
    va_end(ap);
    return code;
}

int cw_fail_errno(struct cw_error *err, int code, const char *fmt, ...)
{
    char reason[128], text[2 * CW_ERROR_MAX];
    va_list ap;

    if (err == NULL)
        return code;
    va_start(ap, fmt);
    fill(err, code, CW_FAULT_USER, fmt, ap);
    va_end(ap);
    int n = snprintf(text, sizeof(text), "%s: %s", err->text,
                     strerror_r(code < 0 ? -code : code, reason, sizeof(reason)));
    text[CW_ERROR_MAX - 1] = '\0';
    set_text(err, text, n);
    return code;
}

int cw_wrap(struct cw_error *err, int code_if_null, const char *fmt, ...)
{
    char context[CW_ERROR_MAX], text[2 * CW_ERROR_MAX + 2];
    va_list ap;

    if (err == NULL)
        return code_if_null;
    va_start(ap, fmt);
    if (vsnprintf(context, sizeof(context), fmt, ap) < 0)
        context[0] = '\0';
    va_end(ap);
    int n = snprintf(text, sizeof(text), "%s: %s", context, err->text);
    text[CW_ERROR_MAX - 1] = '\0';
    set_text(err, text, n);
    return err->code;
}
