/* LOG requests with tickets; see logserver.h. */
#include "node/logserver.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/mem.h"
#include "node/logfile.h"
#include "node/shepherds.h"
#include "node/stepserver.h"
#include "node/task_table.h"
#include "proto/walk.h"
#include "wire/rpc_server.h"
#include "wire/ticket.h"

#define CHUNK_MAX   65536u
#define WAIT_MAX_MS 60000u
#define WAITERS_MAX 4096
#define OPEN_MS     10000
#define TICK_MS     200 /* looks at deadlines and idle files, only while there are any */

/* One request in progress: waits for its file to be opened, or for news in it. */
struct reader {
    struct cw_list link;
    struct cw_rpc_call *call;
    const Cw__LogRequest *req; /* in the call's arena */
    struct cw_logfile *file;
    char key[36];
    bool watching;
    int64_t deadline_ms; /* of the reader's patience */
    int64_t open_by_ms;  /* the shepherd's time, whatever the reader's patience */
};

struct cw_logserver {
    struct cw_node *node;
    struct cw_rpc_server *rpc;
    struct cw_logfiles *files;
    struct cw_list readers;
    size_t n_readers;
    struct cw_loop_timer *tick;
    uint64_t next_open;
    struct cw_list opens;
};

/* An OPEN on its way. */
struct opening {
    struct cw_list link;
    uint64_t number;
    char name[48];
};

static void arm_tick(struct cw_logserver *s)
{
    cw_loop_timer_start(s->tick, TICK_MS, TICK_MS);
}

static bool has_ended(struct cw_logserver *s, const char *key)
{
    unsigned long long id;
    unsigned attempt;
    if (sscanf(key, "%llu.%u", &id, &attempt) != 2)
        return true;
    const struct cw_tasktab_entry *e = cw_tasktab_find(s->node->tasks, id, attempt);
    return e == NULL || (e->end.len > 0 && !e->not_empty) || (e->end.len > 0 && e->emptied);
}

/* ---- readers -------------------------------------------------------------------------------- */

static void reader_destroy(struct cw_logserver *s, struct reader *r)
{
    if (r->watching)
        cw_logfile_unwatch(s->files, r->file);
    cw_list_remove(&r->link);
    s->n_readers--;
    free(r);
}

static void reader_fail(struct cw_logserver *s, struct reader *r, int code, const char *text)
{
    struct cw_rpc_call *call = r->call;
    reader_destroy(s, r);
    cw_rpc_reply_failure(call, code, text, code == -EAGAIN);
}

static void reply(struct cw_rpc_call *call, uint64_t offset, const struct cw_buf *data, bool eof,
                  uint64_t size)
{
    Cw__LogReply m = CW__LOG_REPLY__INIT;
    m.offset = offset;
    m.data = (ProtobufCBinaryData){ data->len, (uint8_t *)data->data };
    m.eof = eof;
    m.has_size = 1;
    m.size = size;
    cw_rpc_reply(call, &m.base);
}

/* Answers when there is something to say; otherwise the reader waits, unless it may not. */
static void serve(struct cw_logserver *s, struct reader *r)
{
    cw_autobuf struct cw_buf data = { 0 };
    uint64_t offset = 0, size = 0;
    size_t max = r->req->has_max && r->req->max < CHUNK_MAX ? r->req->max : CHUNK_MAX;
    bool ended = has_ended(s, r->key); /* first: what it wrote until then is read after */
    int rc = cw_logfile_read(r->file, r->req->offset, r->req->has_from_end && r->req->from_end, max,
                             &data, &offset, &size);
    if (rc < 0) {
        reader_fail(s, r, rc, strerror(-rc));
        return;
    }
    bool late = cw_loop_now_ms(s->node->loop) >= r->deadline_ms;
    if (data.len == 0 && !ended && !late) {
        if (!r->watching) {
            r->watching = true;
            cw_logfile_watch(s->files, r->file);
            arm_tick(s);
            serve(s, r); /* what came between the read and the watch */
        }
        return;
    }
    struct cw_rpc_call *call = r->call;
    reader_destroy(s, r);
    reply(call, offset, &data, ended && offset + data.len >= size, size);
}

static void on_changed(struct cw_logfile *f, void *arg)
{
    struct cw_logserver *s = arg;
    cw_list_each_safe(l, &s->readers) {
        struct reader *r = cw_list_entry(l, struct reader, link);
        if (r->file == f && f->fd >= 0)
            serve(s, r);
    }
}

void cw_logserver_ended(struct cw_logserver *s, const char *key)
{
    cw_list_each_safe(l, &s->readers) {
        struct reader *r = cw_list_entry(l, struct reader, link);
        if (strcmp(r->key, key) == 0 && r->file->fd >= 0)
            serve(s, r);
    }
}

/* A file that no shepherd opened in time; a later reader asks again. */
static void fail_unopened(struct cw_logserver *s, struct reader *r)
{
    struct cw_logfile *f = r->file;
    bool last = true;
    reader_fail(s, r, -EAGAIN, "the node could not open the file in time");
    cw_list_each(l, &s->readers)
        last = last && cw_list_entry(l, struct reader, link)->file != f;
    if (last)
        cw_logfiles_remove(s->files, f);
}

static void on_tick(void *arg)
{
    struct cw_logserver *s = arg;
    int64_t now = cw_loop_now_ms(s->node->loop);
    cw_list_each_safe(l, &s->readers) {
        struct reader *r = cw_list_entry(l, struct reader, link);
        if (r->file->fd >= 0 && now >= r->deadline_ms)
            serve(s, r);
        else if (r->file->fd < 0 && now >= r->open_by_ms)
            fail_unopened(s, r);
    }
    cw_logfiles_expire(s->files, now);
    if (s->n_readers == 0 && cw_logfiles_count(s->files) == 0)
        cw_loop_timer_stop(s->tick);
}

/* ---- opening -------------------------------------------------------------------------------- */

void cw_logserver_opened(struct cw_logserver *s, const void *body, size_t n, int fd)
{
    uint64_t number;
    int32_t rc;
    struct opening *o = NULL;
    if (n >= 12) {
        memcpy(&number, body, 8);
        memcpy(&rc, (const char *)body + 8, 4);
        cw_list_each(l, &s->opens)
            if (cw_list_entry(l, struct opening, link)->number == number)
                o = cw_list_entry(l, struct opening, link);
    }
    struct cw_logfile *f = o != NULL ? cw_logfiles_find(s->files, o->name) : NULL;
    if (f == NULL || f->fd >= 0) {
        if (fd >= 0)
            close(fd);
    } else if (fd >= 0) {
        f->fd = fd;
        on_changed(f, s);
    } else {
        cw_autofree char *text = cw_xstrndup((const char *)body + 12, n - 12);
        cw_list_each_safe(l, &s->readers) {
            struct reader *r = cw_list_entry(l, struct reader, link);
            if (r->file == f)
                reader_fail(s, r, rc < 0 ? rc : -EIO, text);
        }
        cw_logfiles_remove(s->files, f);
    }
    if (o != NULL) {
        cw_list_remove(&o->link);
        free(o);
    }
}

static int send_open(struct cw_logserver *s, const char *name, const Cw__Owner *owner,
                     const char *path, struct cw_error *err)
{
    struct cw_shepherd_link *l = cw_shepherds_resident(s->node->shepherds, err);
    if (l == NULL)
        return -EAGAIN;
    struct opening *o = cw_xcalloc(1, sizeof *o);
    cw_autobuf struct cw_buf b = { 0 };
    o->number = ++s->next_open;
    snprintf(o->name, sizeof o->name, "%s", name);
    cw_list_add_tail(&s->opens, &o->link);
    cw_buf_add(&b, &o->number, sizeof o->number);
    cw_buf_add(&b, &owner->uid, sizeof owner->uid);
    cw_buf_add(&b, &owner->gid, sizeof owner->gid);
    cw_buf_add_str(&b, path);
    return cw_packets_add(l->packets, CW_PACKET_OPEN, b.data, b.len);
}

/* ---- requests ------------------------------------------------------------------------------- */

static int check_ticket(struct cw_logserver *s, struct cw_rpc_call *call, const Cw__LogRequest *req,
                        Cw__TicketBody **ret, struct cw_error *err)
{
    int rc = cw_ticket_open(s->node->ticket_key, req->ticket.data, req->ticket.len,
                            cw_clock_real_ns(), cw_rpc_call_arena(call), ret, err);
    if (rc < 0)
        return rc;
    return strcmp((*ret)->right, "logs") == 0
               ? 0
               : cw_fail(err, -EACCES, "this ticket is not for logs");
}

/* The path as the shepherd opened it, or as the controller knows it. A stream that was not asked
 * for is in the output. NULL: not started, so there is none. */
static const char *path_of(struct cw_logserver *s, const Cw__TicketBody *t, bool stderr_stream)
{
    const struct cw_tasktab_entry *e = cw_tasktab_find(s->node->tasks, t->id, t->attempt);
    const char *out = e != NULL && e->stdout_path != NULL ? e->stdout_path : t->stdout_path;
    const char *err = e != NULL && e->stderr_path != NULL ? e->stderr_path : t->stderr_path;
    return stderr_stream && err != NULL ? err : out;
}

static void start_reader(struct cw_logserver *s, struct cw_rpc_call *call,
                         const Cw__LogRequest *req, const Cw__TicketBody *t, struct cw_logfile *f)
{
    struct reader *r = cw_xcalloc(1, sizeof *r);
    uint32_t wait = req->has_wait_ms ? req->wait_ms : 0;
    r->call = call;
    r->req = req;
    r->file = f;
    snprintf(r->key, sizeof r->key, "%llu.%u", (unsigned long long)t->id, t->attempt);
    r->deadline_ms = cw_loop_now_ms(s->node->loop) + (wait < WAIT_MAX_MS ? wait : WAIT_MAX_MS);
    r->open_by_ms = cw_loop_now_ms(s->node->loop) + OPEN_MS;
    cw_list_add_tail(&s->readers, &r->link);
    s->n_readers++;
    arm_tick(s);
    if (f->fd >= 0) /* else OPENED will */
        serve(s, r);
}

static void on_log(struct cw_logserver *s, struct cw_rpc_call *call, const Cw__LogRequest *req)
{
    static const struct cw_buf nothing = { 0 };
    struct cw_error err = { 0 };
    Cw__TicketBody *t = NULL;
    char name[48];
    bool second = req->has_stderr_stream && req->stderr_stream;
    int rc = check_ticket(s, call, req, &t, &err);
    if (rc < 0) {
        cw_rpc_reply_failure(call, rc, err.text, false);
        return;
    }
    const char *path = path_of(s, t, second);
    if (path == NULL || s->n_readers >= WAITERS_MAX) {
        cw_rpc_reply_failure(
            call, -EAGAIN,
            path == NULL ? "it has not started yet" : "too many readers wait on this node", true);
        return;
    }
    if (strcmp(path, "/dev/null") == 0) {
        reply(call, 0, &nothing, true, 0);
        return;
    }
    snprintf(name, sizeof name, "%llu.%u/%c", (unsigned long long)t->id, t->attempt,
             second ? 'e' : 'o');
    struct cw_logfile *f = cw_logfiles_find(s->files, name);
    if (f == NULL) {
        f = cw_logfiles_add(s->files, name);
        rc = f == NULL ? cw_fail(&err, -EAGAIN, "too many files are read on this node")
                       : send_open(s, name, t->owner, path, &err);
        if (rc < 0) {
            if (f != NULL)
                cw_logfiles_remove(s->files, f);
            cw_rpc_reply_failure(call, rc, err.text, rc == -EAGAIN);
            return;
        }
    }
    start_reader(s, call, req, t, f);
}

static void on_call(struct cw_rpc_call *call, void *arg)
{
    struct cw_logserver *s = arg;
    const struct cw_buf *body = cw_rpc_call_body(call);
    ProtobufCMessage *m;
    struct cw_error err;
    if (cw_stepserver_serves(cw_rpc_call_kind(call))) {
        cw_stepserver_call(s->node->steps, call);
        return;
    }
    if (cw_rpc_call_kind(call) != CW_KIND_LOG) {
        cw_rpc_reply_failure(call, -EPERM, "a node serves logs and steps only", false);
        return;
    }
    int rc = cw_walk_unpack(&cw__log_request__descriptor, body->data, body->len,
                            cw_rpc_call_arena(call), &m, &err);
    if (rc < 0)
        cw_rpc_reply_failure(call, rc, err.text, false);
    else
        on_log(s, call, (const Cw__LogRequest *)m);
}

int cw_logserver_open(struct cw_node *n, struct cw_logserver **ret, struct cw_error *err)
{
    struct cw_logserver *s = cw_xcalloc(1, sizeof *s);
    s->node = n;
    cw_list_init(&s->readers);
    cw_list_init(&s->opens);
    struct cw_rpc_server_config conf = {
        .url = n->address, .key = &n->key, .epoch = n->epoch, .call = on_call, .arg = s
    };
    s->files = cw_logfiles_create(n->loop, on_changed, s, err);
    int rc = s->files == NULL ? -EIO : cw_rpc_server_open(n->loop, &conf, &s->rpc, err);
    s->tick = cw_loop_timer_open(n->loop, on_tick, s);
    if (rc < 0) {
        cw_logserver_close(s);
        return rc;
    }
    *ret = s;
    return 0;
}

void cw_logserver_close(struct cw_logserver *s)
{
    if (s == NULL)
        return;
    cw_list_each_safe(l, &s->readers) {
        struct reader *r = cw_list_entry(l, struct reader, link);
        struct cw_rpc_call *call = r->call;
        reader_destroy(s, r);
        cw_rpc_drop(call);
    }
    cw_list_each_safe(l, &s->opens) {
        cw_list_remove(l);
        free(cw_list_entry(l, struct opening, link));
    }
    cw_loop_timer_close(s->tick);
    cw_logfiles_destroy(s->files);
    cw_rpc_server_close(s->rpc);
    free(s);
}
