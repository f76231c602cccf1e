#pragma once
/* A raw nanomsg socket with the traps closed: path length and file type checked before bind, umask
 * around bind, IPv6, buffer sizes, receive limit 1 MiB, never nn_term, EAGAIN and malformed frames
 * told apart, a fresh socket on demand. Messages come with their route (8 bytes on the REP side),
 * which can be used to answer at any time until the connection goes. Test: nnsock_test.c. */
#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/error.h"

struct cw_nnsock;
struct cw_route {
    uint8_t bytes[8];
};

int cw_nnsock_listen(const char *url, struct cw_nnsock **ret,
                     struct cw_error *err); /* raw NN_REP; ipc sockets get mode 0600 */
int cw_nnsock_connect(const char *url, struct cw_nnsock **ret,
                      struct cw_error *err); /* raw NN_REQ; returns before the connection stands */
void cw_nnsock_close(struct cw_nnsock *s);   /* NULL allowed */
int cw_nnsock_fd(const struct cw_nnsock *s); /* readable: call recv until -EAGAIN */
/* One message appended to ret. route NULL on the connecting side. -EAGAIN: nothing now. */
int cw_nnsock_recv(struct cw_nnsock *s, struct cw_route *ret_route, struct cw_buf *ret);
/* Never blocks. -EAGAIN on the connecting side: not connected or full. On the listening side
 * success does not mean delivery. */
int cw_nnsock_send(struct cw_nnsock *s, const struct cw_route *route, const void *p, size_t n);
int cw_nnsock_reconnect(struct cw_nnsock *s); /* drops the endpoint and connects anew */
/* For pollers of the connecting side: readable when a send would be taken. Costs a descriptor of
 * its own. */
int cw_nnsock_send_fd(const struct cw_nnsock *s);
/* How often a connection was established; a change means that what was in flight may be lost. */
uint64_t cw_nnsock_established(const struct cw_nnsock *s);
/* Failed tries to connect so far. */
uint64_t cw_nnsock_connect_errors(const struct cw_nnsock *s);
/* A connection stands now, as far as is known */
bool cw_nnsock_connected(const struct cw_nnsock *s);
/* The file behind an ipc:// url, or NULL for other transports. */
const char *cw_nnsock_ipc_path(const char *url);
/* Does anybody listen at this unix path now? 0, or -ENOENT, -ECONNREFUSED, -EACCES ... */
int cw_nnsock_probe(const char *ipc_path);
