/* Fuzzes times: what is accepted lies in the range, and prints as a time that means the same
 * second. */
#include "spec/datetime.h"

#include <stdlib.h>

#include "base/clock.h"
#include "base/mem.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char *text = cw_xstrndup((const char *)data, size);
    const int64_t now = INT64_C(1796083200) * CW_NS_PER_S + 5;
    int64_t ns = -1, again = -1;
    char shown[32];
    if (cw_datetime_parse(text, now, &ns, NULL) == 0) {
        if (ns < 0)
            abort();
        if (cw_datetime_parse(cw_datetime_format(ns, shown, sizeof shown), now, &again, NULL) != 0 ||
            again / CW_NS_PER_S != ns / CW_NS_PER_S)
            abort();
    }
    free(text);
    return 0;
}
