#pragma once
/* The door: an AF_UNIX SOCK_SEQPACKET socket (conf door) where an ordinary user asks the controller
 * for a credential; SO_PEERCRED says who asks. One packet each way, then both sides close: request:
 * CW_DOOR_REQUEST bytes, the public key of the channel that the credential is to be bound to;
 *   reply:   one status byte, then the credential (CW_DOOR_OK) or a sentence without NUL
 * (CW_DOOR_REFUSED). Served by ctld/door.c through the auth plugin's `issue`; asked by
 * plugins/auth/key, which repeats these numbers because a plugin includes nothing of ours.
 * doc/PROTOCOL.md. */
#include <crunwlm/plugin.h>

#define CW_DOOR_REQUEST   32u
#define CW_DOOR_OK        0
#define CW_DOOR_REFUSED   1
#define CW_DOOR_REPLY_MAX (1u + CW_AUTH_CRED_MAX)
