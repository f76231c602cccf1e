/* See retryrule.h. A rule is read where it is asked: seldom, and it is short. */
#include "spec/retryrule.h"

#include <stdio.h>
#include <string.h>

#include "base/mem.h"
#include "spec/fieldrule.h"
#include "spec/outcome.h"
#include "spec/sigspec.h"

/* A name or a number alone; 0: unknown. */
static uint32_t signal_number(const char *text)
{
    struct cw_sigspec s;
    if (strpbrk(text, ":@") != NULL || cw_sigspec_parse(text, &s, NULL) < 0)
        return 0;
    return s.signal;
}

struct term {
    enum { FAIL, EXIT, SIGNAL, OOM, TIMEOUT } kind;
    uint64_t first, last;
};

static int parse_exit(char *text, struct term *ret, struct cw_error *err)
{
    char *dash = strchr(text, '-');
    if (dash != NULL)
        *dash++ = '\0';
    int r = cw_field_count(text, 0, 255, &ret->first, err);
    ret->last = ret->first;
    if (r == 0 && dash != NULL)
        r = cw_field_count(dash, ret->first, 255, &ret->last, err);
    return r;
}

static int parse_term(char *text, struct term *ret, struct cw_error *err)
{
    *ret = (struct term){.kind = FAIL};
    if (strcmp(text, "fail") == 0)
        return 0;
    if (strcmp(text, "oom") == 0 || strcmp(text, "timeout") == 0) {
        ret->kind = text[0] == 'o' ? OOM : TIMEOUT;
        return 0;
    }
    if (strncmp(text, "exit:", 5) == 0) {
        ret->kind = EXIT;
        return parse_exit(text + 5, ret, err);
    }
    if (strncmp(text, "signal:", 7) == 0) {
        ret->kind = SIGNAL;
        ret->first = signal_number(text + 7);
        return ret->first != 0 ? 0 : cw_fail(err, -EINVAL, "'%.40s' is no signal", text + 7);
    }
    return cw_fail(err, -EINVAL, "'%.40s' is not one of fail, exit:N, exit:N-M, signal:N, oom, timeout",
                   text);
}

static bool holds(const struct term *t, const Cw__AttemptRecord *a)
{
    bool own = a->cause == CW__CAUSE__CAUSE_EXIT || a->cause == CW__CAUSE__CAUSE_SIGNAL;
    switch (t->kind) {
    case EXIT:
        return a->cause == CW__CAUSE__CAUSE_EXIT && a->has_exit_code && a->exit_code >= t->first &&
               a->exit_code <= t->last;
    case SIGNAL: return own && a->has_signal && a->signal == t->first;
    case OOM: return a->cause == CW__CAUSE__CAUSE_OOM;
    case TIMEOUT: return a->cause == CW__CAUSE__CAUSE_TIME_LIMIT;
    case FAIL: break;
    }
    return own || a->cause == CW__CAUSE__CAUSE_OOM || a->cause == CW__CAUSE__CAUSE_TIME_LIMIT ||
           a->cause == CW__CAUSE__CAUSE_LAUNCH_USER;
}

static int walk(const char *text, const Cw__AttemptRecord *a, bool *ret, struct cw_error *err)
{
    *ret = false;
    if (text[0] == '\0' || strlen(text) > CW_RETRYRULE_MAX)
        return cw_fail(err, -EINVAL, "a list of 1 to %d bytes is expected", CW_RETRYRULE_MAX);
    cw_autofree char *copy = cw_xstrdup(text);
    for (char *term = copy, *next; term != NULL; term = next) {
        struct term t;
        next = strchr(term, ',');
        if (next != NULL)
            *next++ = '\0';
        int r = parse_term(term, &t, err);
        if (r < 0)
            return r;
        *ret = *ret || (a != NULL && holds(&t, a));
    }
    return 0;
}

int cw_retryrule_check(const char *text, struct cw_error *err)
{
    bool ignored;
    return walk(text, NULL, &ignored, err);
}

bool cw_retryrule_matches(const char *text, const Cw__AttemptRecord *a)
{
    bool yes = false;
    bool ok = a->cause == CW__CAUSE__CAUSE_EXIT && a->has_exit_code && a->exit_code == 0;
    if (ok && text == NULL)
        return false;
    return walk(text != NULL ? text : "fail", a, &yes, NULL) == 0 && yes && !ok;
}

const char *cw_retryrule_word(const Cw__AttemptRecord *a, char *buf, size_t cap)
{
    if (a->cause == CW__CAUSE__CAUSE_EXIT && a->has_exit_code)
        (void)snprintf(buf, cap, "exit %u", a->exit_code);
    else if (a->cause == CW__CAUSE__CAUSE_SIGNAL && a->has_signal)
        (void)snprintf(buf, cap, "signal %u", a->signal);
    else
        (void)snprintf(buf, cap, "%s", cw_cause_name(a->cause));
    return buf;
}
