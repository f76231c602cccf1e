/* stepout.c: see stepout.h. A line longer than HOLD_MAX goes in pieces. */
#include "cmds/stepout.h"

#include <stdio.h>
#include <string.h>

#include "base/mem.h"

#define HOLD_MAX 65536u

struct stream {
    struct cw_buf rest; /* behind the last newline */
    bool in_line;       /* a piece of this line is out already */
};
struct cw_stepout {
    uint32_t n;
    int digits;
    bool label, straight;
    cw_stepout_fn write;
    void *arg;
    size_t n_held;
    struct stream *streams; /* 2 a rank: out, err */
    struct cw_buf line;
};

struct cw_stepout *cw_stepout_create(uint32_t ntasks, bool label, bool straight,
                                     cw_stepout_fn write, void *arg)
{
    struct cw_stepout *o = cw_xcalloc(1, sizeof *o);
    o->n = ntasks;
    o->label = label;
    o->straight = !label && (straight || ntasks <= 1);
    o->write = write;
    o->arg = arg;
    for (uint32_t v = ntasks > 0 ? ntasks - 1 : 0; v > 0 || o->digits == 0; v /= 10)
        o->digits++;
    o->streams = cw_xcalloc((size_t)ntasks * 2 + 2, sizeof *o->streams);
    return o;
}

void cw_stepout_destroy(struct cw_stepout *o)
{
    if (o == NULL)
        return;
    for (size_t i = 0; i < (size_t)o->n * 2; i++)
        cw_buf_fini(&o->streams[i].rest);
    cw_buf_fini(&o->line);
    free(o->streams);
    free(o);
}

/* One line, or a piece of one, of what is in rest. */
static int put(struct cw_stepout *o, uint32_t rank, bool err, size_t n)
{
    struct stream *s = &o->streams[rank * 2 + err];
    cw_buf_clear(&o->line);
    if (o->label && !s->in_line)
        cw_buf_addf(&o->line, "%*u: ", o->digits, rank);
    cw_buf_add(&o->line, s->rest.data, n);
    s->in_line = s->rest.data[n - 1] != '\n';
    memmove(s->rest.data, s->rest.data + n, s->rest.len - n);
    s->rest.len -= n;
    return o->write(err, o->line.data, o->line.len, o->arg);
}

int cw_stepout_add(struct cw_stepout *o, uint32_t rank, bool err, const void *p, size_t n)
{
    if (rank >= o->n || n == 0)
        return 0;
    if (o->straight)
        return o->write(err, p, n, o->arg);
    struct stream *s = &o->streams[rank * 2 + err];
    bool held = s->rest.len > 0;
    int rc = 0;
    cw_buf_add(&s->rest, p, n);
    while (rc == 0 && s->rest.len > 0) {
        const char *nl = o->label ? memchr(s->rest.data, '\n', s->rest.len)
                                  : memrchr(s->rest.data, '\n', s->rest.len);
        if (nl == NULL && s->rest.len < HOLD_MAX)
            break;
        rc = put(o, rank, err, nl != NULL ? (size_t)(nl + 1 - s->rest.data) : s->rest.len);
    }
    bool holds = s->rest.len > 0;
    o->n_held = o->n_held + (holds ? 1 : 0) - (held ? 1 : 0);
    return rc;
}

static int flush_stream(struct cw_stepout *o, uint32_t rank, bool err)
{
    struct stream *s = &o->streams[rank * 2 + err];
    if (s->rest.len == 0)
        return 0;
    o->n_held--;
    return put(o, rank, err, s->rest.len);
}

int cw_stepout_flush(struct cw_stepout *o, uint32_t rank)
{
    int rc = 0;
    uint32_t first = rank == UINT32_MAX ? 0 : rank, last = rank == UINT32_MAX ? o->n : rank + 1;
    for (uint32_t r = first; r < last && r < o->n && (o->n_held > 0); r++) {
        int out = flush_stream(o, r, false), err = flush_stream(o, r, true);
        rc = rc < 0 ? rc : out < 0 ? out : err;
    }
    return rc;
}

bool cw_stepout_holds(const struct cw_stepout *o)
{
    return o->n_held > 0;
}
