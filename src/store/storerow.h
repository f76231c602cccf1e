#pragma once
/* The bytes of one stored value: format byte 1, CRC-32C (little endian) over format, table, key and
 * body, body. The key is in the sum so that a value that turned up under another key is found.
 * Test: store_test.c. */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define CW_STOREROW_HEAD 5 /* bytes in front of the body */

/* Fills out[0 .. CW_STOREROW_HEAD + vlen). */
void cw_storerow_pack(uint8_t table, const void *key, size_t klen, const void *val, size_t vlen,
                      uint8_t *out);
/* True when the stored bytes are whole: then the body is at bytes + CW_STOREROW_HEAD. */
bool cw_storerow_check(uint8_t table, const void *key, size_t klen, const void *bytes, size_t n);
