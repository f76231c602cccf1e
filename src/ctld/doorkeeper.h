#pragma once
/* The door (wire/door.h): where an ordinary user's command gets a credential. SO_PEERCRED says who
 * asks, the auth plugin's `issue` makes the credential. */
#include "base/error.h"
#include "ctld/ctld.h"

#define CW_DOOR_GUESTS_PER_UID 32u /* of one user at once; more are shown out */
#define CW_DOOR_GUESTS_MAX 256u /* at once; the kernel's backlog holds the next ones */

struct cw_door;
/* *ret stays NULL when the auth plugin needs no door. */
int cw_door_open(struct cw_ctld *c, struct cw_door **ret, struct cw_error *err);
void cw_door_close(struct cw_door *d); /* removes the socket's file; NULL allowed */
