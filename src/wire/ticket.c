/* Tickets. The MAC is checked before a byte is decoded. Test: ticket_test.c, fuzz_ticket.c. */
#include "config.h"

#include "wire/ticket.h"

#include "proto/walk.h"

#include <sodium.h>
#include <string.h>

#define MAC 32u

static const char node_context[] = "node/";
static const char ticket_context[] = "crun-wlm ticket 1";

void cw_ticket_node_key(const uint8_t cluster_key[32], const char *node, uint8_t ret[32])
{
    crypto_generichash_state h;

    (void)crypto_generichash_init(&h, cluster_key, 32, 32);
    (void)crypto_generichash_update(&h, (const uint8_t *)node_context, sizeof(node_context) - 1);
    (void)crypto_generichash_update(&h, (const uint8_t *)node, strlen(node));
    (void)crypto_generichash_final(&h, ret, 32);
    sodium_memzero(&h, sizeof(h));
}

static void make_mac(const uint8_t node_key[32], const void *p, size_t n, uint8_t ret[MAC])
{
    crypto_generichash_state h;

    (void)crypto_generichash_init(&h, node_key, 32, MAC);
    (void)crypto_generichash_update(&h, (const uint8_t *)ticket_context,
                                    sizeof(ticket_context) - 1);
    (void)crypto_generichash_update(&h, p, n);
    (void)crypto_generichash_final(&h, ret, MAC);
    sodium_memzero(&h, sizeof(h));
}

void cw_ticket_make(const uint8_t node_key[32], const Cw__TicketBody *b, struct cw_buf *out)
{
    size_t start = out->len;
    uint8_t mac[MAC];

    cw_walk_pack(&b->base, out);
    make_mac(node_key, out->data + start, out->len - start, mac);
    cw_buf_add(out, mac, MAC);
}

int cw_ticket_open(const uint8_t node_key[32], const void *p, size_t n, int64_t now_ns,
                   struct cw_arena *a, Cw__TicketBody **ret, struct cw_error *err)
{
    ProtobufCMessage *m = NULL;
    Cw__TicketBody *b;
    uint8_t mac[MAC];
    int r;

    if (n <= MAC || n > CW_TICKET_MAX)
        return cw_fail(err, -EACCES, "ticket: %zu bytes are not one", n);
    make_mac(node_key, p, n - MAC, mac);
    if (sodium_memcmp(mac, (const uint8_t *)p + n - MAC, MAC) != 0)
        return cw_fail(err, -EACCES, "ticket: not signed by the controller for this node");
    r = cw_walk_unpack(&cw__ticket_body__descriptor, p, n - MAC, a, &m, err);
    if (r < 0)
        return cw_wrap(err, r, "ticket");
    b = (Cw__TicketBody *)(void *)m;
    if (b->expires_ns <= now_ns)
        return cw_fail(err, -EKEYEXPIRED, "ticket: expired %lld s ago",
                       (long long)((now_ns - b->expires_ns) / 1000000000));
    *ret = b;
    return 0;
}
