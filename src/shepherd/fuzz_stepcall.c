/* Whatever the bytes: what is accepted lies inside them, and packs to the same. */
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "shepherd/stepcall.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check(const uint8_t *data, size_t size, const struct cw_buf *b)
{
    if (b->len != size || memcmp(b->data, data, size) != 0)
        abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct cw_stepcall c;
    struct cw_stepanswer a;
    struct cw_stepack k;
    if (cw_stepcall_unpack(data, size, &c) == 0) {
        cw_autobuf struct cw_buf b = { 0 };
        cw_stepcall_pack(&c, &b);
        check(data, size, &b);
    }
    if (cw_stepanswer_unpack(data, size, &a) == 0 && a.n != size - 16)
        abort();
    cw_stepack_unpack(data, size, &k);
    return 0;
}
