/* What parses is printed, and what is printed parses to the same value. */
#include "config.h"

#include <stdlib.h>

#include "base/mem.h"
#include "base/quantity.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    cw_autofree char *text = cw_xstrndup((const char *)data, size);
    uint64_t value, back;
    char buf[32];

    if (cw_size_parse(text, UINT64_C(1) << 20, &value, NULL) == 0) {
        if (cw_size_parse(cw_size_format(value, buf, sizeof(buf)), 1, &back, NULL) < 0 ||
            back != value)
            abort();
    }
    if (cw_duration_parse(text, &value, NULL) == 0) {
        if (cw_duration_parse(cw_duration_format(value, buf, sizeof(buf)), &back, NULL) < 0 ||
            back != value)
            abort();
    }
    return 0;
}
