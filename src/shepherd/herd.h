#pragma once
/* The tasks of one shepherd: born from START records, listed to every new link, killed, signalled,
 * forgotten. One START of a key runs once; a second is answered with what is known. Test:
 * shepherd_test.c. */
#include "shepherd/task.h"

void cw_herd_init(struct cw_herd *h); /* after node, node_dir, plugs, journal were set */
void cw_herd_fini(struct cw_herd *h);
void cw_herd_list(struct cw_herd *h); /* to a new peer */
void cw_herd_packet(struct cw_herd *h, enum cw_packet_type type, const void *body, size_t n);
void cw_herd_reap(struct cw_herd *h); /* after SIGCHLD */
void cw_herd_due(struct cw_herd *h);  /* when next_due has come */
void cw_herd_kill_all(struct cw_herd *h, Cw__Cause cause);
bool cw_herd_idle(const struct cw_herd *h);    /* no task at all, nothing to report */
bool cw_herd_running(const struct cw_herd *h); /* some process may live */
