/* Fuzzes output patterns: what the check accepts also expands, to an absolute path of at most 4095
 * bytes, or is too long. */
#include "spec/outpath.h"

#include <stdlib.h>
#include <string.h>

#include "base/mem.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char *text = cw_xstrndup((const char *)data, size);
    struct cw_outpath_vars v = {UINT64_MAX, UINT64_MAX, UINT64_MAX, UINT32_MAX,
                                "us/er",    "..",       "host"};
    cw_autobuf struct cw_buf out = {0};
    int checked = cw_outpath_check(text, NULL);
    int expanded = cw_outpath_expand(text, "/w", &v, &out, NULL);
    if (checked < 0 && expanded == 0)
        abort();
    if (checked == 0 && expanded < 0 && expanded != -ENAMETOOLONG)
        abort();
    if (expanded == 0 && (out.len == 0 || out.len > 4095 || out.data[0] != '/'))
        abort();
    free(text);
    return 0;
}
