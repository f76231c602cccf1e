/* Tickets: raw bytes are never accepted; the same bytes signed with the key reach the decoder. */
#include "config.h"

#include "wire/ticket.h"

#include <sodium.h>
#include <stdlib.h>
#include <string.h>

static const char context[] = "crun-wlm ticket 1";

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const uint8_t key[32] = {7};
    cw_autobuf struct cw_buf b = {0};
    struct cw_arena *a = cw_arena_create();
    crypto_generichash_state h;
    Cw__TicketBody *t = NULL;
    uint8_t mac[32];

    if (sodium_init() < 0 || cw_ticket_open(key, data, size, 0, a, &t, NULL) == 0)
        abort();
    (void)crypto_generichash_init(&h, key, 32, 32);
    (void)crypto_generichash_update(&h, (const uint8_t *)context, sizeof(context) - 1);
    (void)crypto_generichash_update(&h, data, size);
    (void)crypto_generichash_final(&h, mac, 32);
    cw_buf_add(&b, data, size);
    cw_buf_add(&b, mac, 32);
    if (cw_ticket_open(key, b.data, b.len, 0, a, &t, NULL) == 0 &&
        (t->right == NULL || t->owner == NULL))
        abort();
    cw_arena_destroy(a);
    return 0;
}
