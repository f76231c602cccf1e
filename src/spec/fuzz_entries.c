/* Any bytes are entries or are refused; as many entries as the array has elements. */
#include <assert.h>
#include <stdint.h>

#include "base/mem.h"
#include "spec/entries.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    for (int json = 0; json < 2; json++) {
        struct cw_arena *a = cw_arena_create();
        struct cw_request r;
        cw_request_init(&r, a);
        int rc = json ? cw_entries_json(&r, (const char *)data, n, NULL)
                      : cw_entries_lines(&r, (const char *)data, n, NULL);
        assert(rc < 0 || r.payload->n_entries > 0);
        cw_request_fini(&r);
        cw_arena_destroy(a);
    }
    return 0;
}
