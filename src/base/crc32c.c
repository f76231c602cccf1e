/* CRC-32C: by the instruction of SSE4.2 where the processor has it, else by a table.
 *
 * Both ways give the same number (RFC 3720 appendix B.4 has the test vectors). Test: crc32c_test.c.
 */
#include "config.h"

#include "base/crc32c.h"

#include <pthread.h>
#include <string.h>

#define POLYNOMIAL 0x82f63b78U /* 0x1EDC6F41 with its bits reversed */

static uint32_t table[256];
static pthread_once_t table_once = PTHREAD_ONCE_INIT;

static void make_table(void)
{
    for (uint32_t i = 0; i < 256; i++) {
        uint32_t c = i;
        for (int bit = 0; bit < 8; bit++)
            c = (c & 1) != 0 ? (c >> 1) ^ POLYNOMIAL : c >> 1;
        table[i] = c;
    }
}

uint32_t cw_crc32c_portable(uint32_t crc, const void *p, size_t n)
{
    const unsigned char *s = p;

    pthread_once(&table_once, make_table);
    crc = ~crc;
    for (size_t i = 0; i < n; i++)
        crc = table[(crc ^ s[i]) & 0xff] ^ (crc >> 8);
    return ~crc;
}

#ifdef __x86_64__
__attribute__((target("sse4.2"))) static uint32_t by_instruction(uint32_t crc, const void *p,
                                                                 size_t n)
{
    const unsigned char *s = p;
    uint64_t c = ~crc, word;

    for (; n >= 8; n -= 8, s += 8) {
        memcpy(&word, s, 8);
        c = __builtin_ia32_crc32di(c, word);
    }
    uint32_t c32 = (uint32_t)c;
    for (; n > 0; n--, s++)
        c32 = __builtin_ia32_crc32qi(c32, *s);
    return ~c32;
}
#endif

uint32_t cw_crc32c(uint32_t crc, const void *p, size_t n)
{
#ifdef __x86_64__
    if (__builtin_cpu_supports("sse4.2"))
        return by_instruction(crc, p, n);
#endif
    return cw_crc32c_portable(crc, p, n);
}
