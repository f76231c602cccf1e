/* See repeat.h. */
#include "cmds/repeat.h"

#include <stdio.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"

int cw_repeat(struct cw_cli *c, uint64_t every_s, int (*fn)(struct cw_cli *c, void *arg), void *arg)
{
    for (;;) {
        char now[40];
        if (every_s > 0 && isatty(STDOUT_FILENO))
            fputs("\033[H\033[J", stdout);
        if (every_s > 0 && !c->common.json)
            printf("%s\n", cw_clock_format(cw_clock_real_ns(), now, sizeof(now)));
        int rc = fn(c, arg);
        if (rc >= 0 || every_s == 0)
            return rc;
        fflush(stdout);
        cw_arena_reset(c->arena);
        struct timespec t = {.tv_sec = (time_t)every_s};
        if (cw_cli_interrupted || clock_nanosleep(CLOCK_MONOTONIC, 0, &t, NULL) != 0)
            return 130; /* a signal: the one way to end this */
    }
}
