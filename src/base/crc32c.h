#pragma once
/* CRC-32C (Castagnoli polynomial 0x1EDC6F41, reflected; RFC 3720 appendix B.4). Test: crc32c_test.c. */
#include <stddef.h>
#include <stdint.h>

uint32_t cw_crc32c(uint32_t crc, const void *p, size_t n); /* start with 0 */
/* The same without the processor's own instruction; the test compares the two. */
uint32_t cw_crc32c_portable(uint32_t crc, const void *p, size_t n);
