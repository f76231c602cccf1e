/* Any text as a format or a list of sort keys is refused or parsed within its bounds. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "cmds/jobformat.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check(struct cw_jobformat *f, int rc)
{
    if (rc == 0 && (f->n == 0 || f->n > CW_JOBFORMAT_COLUMNS_MAX))
        abort();
    if (rc < 0 && f->n != 0)
        abort();
    for (size_t i = 0; i < f->n; i++)
        if (f->v[i].field == NULL || f->v[i].width > CW_JOBFORMAT_WIDTH_MAX)
            abort();
    cw_jobformat_fini(f);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct cw_error err;
    struct cw_jobformat f = {0};
    struct cw_jobsort s;
    cw_autofree char *text = cw_xstrndup((const char *)data, size);
    check(&f, cw_jobformat_letters(text, &f, &err));
    check(&f, cw_jobformat_names(text, 20, &f, &err));
    if (cw_jobsort_parse(text, &s, &err) == 0 && (s.n == 0 || s.n > CW_ARRAY_LEN(s.field)))
        abort();
    return 0;
}
