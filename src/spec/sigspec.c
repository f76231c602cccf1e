/* An early signal as people type it (contract: sigspec.h). Test: sigspec_test.c. */
#include "spec/sigspec.h"

#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "spec/fieldrule.h"

/* 0: no signal has this name. */
static uint32_t by_name(const char *name)
{
    const char *bare = strncasecmp(name, "SIG", 3) == 0 ? name + 3 : name;
    for (int s = 1; s <= (int)CW_SIGSPEC_MAX; s++) {
        const char *abbrev = sigabbrev_np(s);
        if (abbrev != NULL && strcasecmp(abbrev, bare) == 0)
            return (uint32_t)s;
    }
    return 0;
}

int cw_sigspec_parse(const char *text, struct cw_sigspec *ret, struct cw_error *err)
{
    struct cw_sigspec s = {.before_s = CW_SIGSPEC_BEFORE_S};
    bool prefix = (text[0] == 'A' || text[0] == 'B') && text[1] == ':';
    const char *name = text + (prefix ? 2 : 0), *at = strchr(name, '@');
    size_t n = at != NULL ? (size_t)(at - name) : strlen(name);
    char word[16];
    uint64_t v;
    if (n == 0 || n >= sizeof(word))
        return cw_fail(err, -EINVAL, "'%.40s' is not [B:]SIGNAL[@SECONDS]", text);
    memcpy(word, name, n);
    word[n] = '\0';
    s.leader = prefix && text[0] == 'B';
    if (word[0] >= '0' && word[0] <= '9') {
        int rc = cw_field_count(word, 1, CW_SIGSPEC_MAX, &v, err);
        if (rc < 0)
            return cw_wrap(err, rc, "signal");
        s.signal = (uint32_t)v;
    } else if ((s.signal = by_name(word)) == 0) {
        return cw_fail(err, -EINVAL, "'%s' is no signal: USR1, SIGTERM or 10 are some", word);
    }
    if (at != NULL) {
        int rc = cw_field_count(at + 1, 0, CW_SIGSPEC_MAX_BEFORE_S, &v, err);
        if (rc < 0)
            return cw_wrap(err, rc, "seconds before the limit");
        s.before_s = (uint32_t)v;
    }
    *ret = s;
    return 0;
}
