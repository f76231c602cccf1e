/* What parses is folded, and what is folded parses to a list that folds to the same text. */
#include "config.h"

#include <stdlib.h>
#include <string.h>

#include "base/hostlist.h"
#include "base/mem.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    cw_autofree char *text = cw_xstrndup((const char *)data, size);
    cw_autostrv struct cw_strv v = { 0 }, back = { 0 };
    cw_autobuf struct cw_buf b = { 0 }, again = { 0 };

    if (cw_hostlist_parse(text, &v, NULL) < 0)
        return 0;
    cw_hostlist_format(v.v, v.n, &b);
    if (cw_hostlist_parse(cw_buf_str(&b), &back, NULL) < 0 || back.n > v.n)
        abort();
    cw_hostlist_format(back.v, back.n, &again);
    if (strcmp(cw_buf_str(&b), cw_buf_str(&again)) != 0)
        abort();
    return 0;
}
