/* diskguard.c: looks at statvfs when somebody asks, once per turn of the loop (one system call).
 * Tested by the component test. */
#include "ctld/diskguard.h"

#include <stdio.h>

#include "base/log.h"
#include "base/mem.h"
#include "ctld/turn.h"

struct cw_diskguard {
    struct cw_ctld *c;
    int64_t looked_ms;
    uint64_t free_bytes;
    bool low, known;
};

struct cw_diskguard *cw_diskguard_create(struct cw_ctld *c)
{
    struct cw_diskguard *d = cw_xcalloc(1, sizeof *d);
    d->c = c;
    return d;
}

void cw_diskguard_destroy(struct cw_diskguard *d)
{
    free(d);
}

static void look(struct cw_diskguard *d)
{
    int64_t now = cw_loop_now_ms(d->c->loop);
    uint64_t bytes;
    if (d->known && now == d->looked_ms)
        return;
    d->looked_ms = now;
    if (cw_store_free_bytes(d->c->store, &bytes) < 0)
        return;
    d->known = true;
    d->free_bytes = bytes;
    bool low = bytes < d->c->conf->disk_reserve_bytes;
    if (low != d->low) {
        if (low)
            cw_log_warn("state directory %s: %llu bytes free, below the reserve of %llu: no new "
                        "jobs are accepted",
                        d->c->conf->state_dir, (unsigned long long)bytes,
                        (unsigned long long)d->c->conf->disk_reserve_bytes);
        else
            cw_log_info("state directory %s: room again, jobs are accepted", d->c->conf->state_dir);
    }
    d->low = low;
}

/* Rounded to what people read: "3 MiB". */
static char *mib(uint64_t bytes, char *buf, size_t cap)
{
    snprintf(buf, cap, "%llu MiB", (unsigned long long)(bytes >> 20));
    return buf;
}

int cw_diskguard_check(struct cw_diskguard *d, struct cw_error *err)
{
    struct cw_error last;
    char have[32], want[32];
    look(d);
    if (d->low)
        return cw_fail(
            err, -ENOSPC,
            "state directory %s: %s free, below the reserve of %s: no new jobs are accepted",
            d->c->conf->state_dir, mib(d->free_bytes, have, sizeof have),
            mib(d->c->conf->disk_reserve_bytes, want, sizeof want));
    if (cw_turn_failing(d->c->turn, &last))
        return cw_fail(err, -EAGAIN,
                       "the state cannot be stored now (%.300s): no new jobs are accepted",
                       last.text);
    return 0;
}

uint64_t cw_diskguard_free_bytes(const struct cw_diskguard *d)
{
    return d->free_bytes;
}
