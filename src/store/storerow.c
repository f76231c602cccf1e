/* Packing and checking stored values; the layout is in storerow.h and doc/STORE.md. */
#include "config.h"

#include "store/storerow.h"

#include "base/crc32c.h"

#include <string.h>

#define FORMAT 1

static uint32_t sum(uint8_t table, const void *key, size_t klen, const void *val, size_t vlen)
{
    uint8_t head[2] = { FORMAT, table };
    uint32_t crc = cw_crc32c(0, head, sizeof(head));
    crc = cw_crc32c(crc, key, klen);
    return vlen > 0 ? cw_crc32c(crc, val, vlen) : crc;
}

void cw_storerow_pack(uint8_t table, const void *key, size_t klen, const void *val, size_t vlen,
                      uint8_t *out)
{
    uint32_t crc = sum(table, key, klen, val, vlen);
    out[0] = FORMAT;
    for (int i = 0; i < 4; i++)
        out[1 + i] = (uint8_t)(crc >> (8 * i));
    if (vlen > 0)
        memcpy(out + CW_STOREROW_HEAD, val, vlen);
}

bool cw_storerow_check(uint8_t table, const void *key, size_t klen, const void *bytes, size_t n)
{
    const uint8_t *p = bytes;
    if (n < CW_STOREROW_HEAD || p[0] != FORMAT)
        return false;
    uint32_t crc = 0;
    for (int i = 0; i < 4; i++)
        crc |= (uint32_t)p[1 + i] << (8 * i);
    return crc == sum(table, key, klen, p + CW_STOREROW_HEAD, n - CW_STOREROW_HEAD);
}
