/* Any text is an expression or is refused; what passes the check can be evaluated. */
#include <assert.h>
#include <stdint.h>
#include <string.h>

#include "spec/constraint.h"

static bool flip(const char *label, size_t len, void *arg)
{
    (void)label;
    bool *b = arg;
    return (*b = !*b) || len > 3;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    char text[CW_CONSTRAINT_MAX + 100];
    bool b = false;
    if (n >= sizeof(text))
        return 0;
    memcpy(text, data, n);
    text[n] = '\0';
    struct cw_error err = {0};
    int r = cw_constraint_check(text, &err);
    bool v = cw_constraint_holds(text, flip, &b);
    assert(r == 0 || !v);
    return 0;
}
