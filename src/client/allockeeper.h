#pragma once
/* Keeps an allocation alive while a command uses it: a thread with its own connection renews it, so
 * that a controller that is away for a while stops nobody, and says when the allocation has ended
 * by itself (time limit, cancel, a node). Test: t2400-run.t. */
#include "client/client.h"

struct cw_allockeeper;
/* lease_s: renewed after a third of it. */
int cw_allockeeper_start(const char *conf, uint64_t id, uint32_t lease_s,
                         struct cw_allockeeper **ret, struct cw_error *err);
int cw_allockeeper_fd(const struct cw_allockeeper *k); /* readable once it has ended */
/* exit_status as crun-wait's; false: it lives as far as is known. */
bool cw_allockeeper_ended(struct cw_allockeeper *k, int *ret_exit_status, char *text, size_t cap);
void cw_allockeeper_stop(struct cw_allockeeper *k); /* NULL allowed */
