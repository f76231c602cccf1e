/* rawtty.c: see rawtty.h. */
#include "cmds/rawtty.h"

#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <termios.h>
#include <unistd.h>

static struct termios before;
static int raw_fd = -1;

void cw_rawtty_leave(void)
{
    int fd = raw_fd;
    raw_fd = -1;
    if (fd >= 0)
        tcsetattr(fd, TCSAFLUSH, &before);
}

static void on_deadly(int signo)
{
    cw_rawtty_leave();
    signal(signo, SIG_DFL);
    raise(signo);
}

int cw_rawtty_enter(int fd, struct cw_error *err)
{
    static const int deadly[] = {SIGSEGV, SIGBUS, SIGABRT, SIGFPE, SIGILL};
    static int registered;
    struct termios raw;
    if (tcgetattr(fd, &before) < 0)
        return cw_fail(err, -ENOTTY, "standard input is no terminal");
    if (!registered)
        registered = atexit(cw_rawtty_leave) == 0;
    for (size_t i = 0; i < sizeof deadly / sizeof deadly[0]; i++)
        signal(deadly[i], on_deadly);
    raw = before;
    cfmakeraw(&raw);
    raw_fd = fd;
    if (tcsetattr(fd, TCSAFLUSH, &raw) < 0)
        return cw_fail_errno(err, -errno, "terminal");
    return 0;
}

void cw_rawtty_size(int fd, unsigned *ret_rows, unsigned *ret_cols)
{
    struct winsize w;
    memset(&w, 0, sizeof w);
    if (ioctl(fd, TIOCGWINSZ, &w) < 0)
        w.ws_row = w.ws_col = 0;
    *ret_rows = w.ws_row;
    *ret_cols = w.ws_col;
}
