/* What parses is printed, and what is printed parses to the same set. */
#include "config.h"

#include <stdlib.h>
#include <string.h>

#include "base/idset.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct cw_idset s = { 0 }, back = { 0 };
    struct cw_error err = { 0 };
    cw_autobuf struct cw_buf b = { 0 };

    if (cw_idset_parse((const char *)data, size, UINT64_MAX, &s, &err) < 0) {
        if (s.n != 0 || err.text[0] == '\0')
            abort();
        return 0;
    }
    cw_idset_format(&s, &b);
    if (cw_idset_parse(cw_buf_str(&b), b.len, UINT64_MAX, &back, NULL) < 0)
        abort();
    if (back.n != s.n || (s.n > 0 && memcmp(back.r, s.r, s.n * sizeof(*s.r)) != 0))
        abort();
    for (size_t i = 0; i < s.n; i++) {
        if (!cw_idset_has(&s, s.r[i].first) || !cw_idset_has(&s, s.r[i].last))
            abort();
    }
    cw_idset_fini(&s);
    cw_idset_fini(&back);
    return 0;
}
