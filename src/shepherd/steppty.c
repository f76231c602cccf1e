/* A terminal for a step; see steppty.h. */
#include "shepherd/steppty.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <termios.h>
#include <unistd.h>

#include "base/mem.h"

#define SIDE_MAX 10000u
#ifndef TIOCGPTPEER
#define TIOCGPTPEER _IO('T', 0x41)
#endif

int cw_steppty_window(int master, uint32_t rows, uint32_t cols)
{
    struct winsize w = { 0 };
    w.ws_row = (unsigned short)(rows < SIDE_MAX ? rows : SIDE_MAX);
    w.ws_col = (unsigned short)(cols < SIDE_MAX ? cols : SIDE_MAX);
    return ioctl(master, TIOCSWINSZ, &w) < 0 ? -errno : 0;
}

/* By descriptor: a name could be somebody else's in another mount of devpts. */
static int open_slave(int master)
{
    int fd = ioctl(master, TIOCGPTPEER, O_RDWR | O_NOCTTY | O_CLOEXEC);
    if (fd >= 0 || (errno != ENOTTY && errno != EINVAL))
        return fd < 0 ? -errno : fd;
    char name[64]; /* before Linux 4.13 */
    if (ptsname_r(master, name, sizeof name) != 0)
        return -errno;
    fd = open(name, O_RDWR | O_NOCTTY | O_CLOEXEC);
    return fd < 0 ? -errno : fd;
}

int cw_steppty_open(uid_t uid, bool root, uint32_t rows, uint32_t cols, int *ret_master,
                    int *ret_slave, struct cw_error *err)
{
    cw_autoclose int master = open("/dev/ptmx", O_RDWR | O_NOCTTY | O_CLOEXEC | O_NONBLOCK);
    if (master < 0 || unlockpt(master) < 0)
        return cw_fail_node(err, -errno, "terminal: %s", strerror(errno));
    cw_autoclose int slave = open_slave(master);
    if (slave < 0)
        return cw_fail_node(err, slave, "terminal: %s", strerror(-slave));
    if (root && (fchown(slave, uid, (gid_t)-1) < 0 || fchmod(slave, 0620) < 0))
        return cw_fail_node(err, -errno, "terminal: %s", strerror(errno));
    int rc = rows > 0 && cols > 0 ? cw_steppty_window(master, rows, cols) : 0;
    if (rc < 0)
        return cw_fail_node(err, rc, "terminal: %s", strerror(-rc));
    *ret_master = cw_steal_fd(master);
    *ret_slave = cw_steal_fd(slave);
    return 0;
}
