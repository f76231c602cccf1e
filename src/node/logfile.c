/* Open output files of tasks; see logfile.h. */
#include "node/logfile.h"

#include <stdio.h>
#include <string.h>
#include <sys/inotify.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/mem.h"

#define IDLE_MS 30000

struct cw_logfiles {
    struct cw_loop *loop;
    struct cw_loop_io *io;
    int inotify;
    struct cw_list list;
    size_t n;
    void (*changed)(struct cw_logfile *f, void *arg);
    void *arg;
};

static void on_inotify(int fd, int events, void *arg)
{
    struct cw_logfiles *t = arg;
    _Alignas(struct inotify_event) char buf[4096];
    ssize_t n;
    (void)events;
    while ((n = read(fd, buf, sizeof buf)) > 0)
        for (char *p = buf; p < buf + n;) {
            const struct inotify_event *e = (const struct inotify_event *)(void *)p;
            cw_list_each_safe(l, &t->list) {
                struct cw_logfile *f = cw_list_entry(l, struct cw_logfile, link);
                if (f->watch == e->wd && f->fd >= 0)
                    t->changed(f, t->arg);
            }
            p += sizeof *e + e->len;
        }
}

struct cw_logfiles *cw_logfiles_create(struct cw_loop *l,
                                       void (*changed)(struct cw_logfile *f, void *arg), void *arg,
                                       struct cw_error *err)
{
    int fd = inotify_init1(IN_CLOEXEC | IN_NONBLOCK);
    if (fd < 0) {
        cw_fail_errno(err, -errno, "inotify");
        return NULL;
    }
    struct cw_logfiles *t = cw_xcalloc(1, sizeof *t);
    t->loop = l;
    t->inotify = fd;
    t->changed = changed;
    t->arg = arg;
    cw_list_init(&t->list);
    t->io = cw_loop_io_open(l, fd, CW_LOOP_READ, on_inotify, t);
    return t;
}

void cw_logfiles_destroy(struct cw_logfiles *t)
{
    if (t == NULL)
        return;
    cw_list_each_safe(l, &t->list)
        cw_logfiles_remove(t, cw_list_entry(l, struct cw_logfile, link));
    cw_loop_io_close(t->io);
    close(t->inotify);
    free(t);
}

static void unwatch(struct cw_logfiles *t, struct cw_logfile *f)
{
    int watch = f->watch;
    f->watch = -1;
    if (watch < 0)
        return;
    cw_list_each(l, &t->list) /* two names of one file share the watch */
        if (cw_list_entry(l, struct cw_logfile, link)->watch == watch)
            return;
    inotify_rm_watch(t->inotify, watch);
}

void cw_logfiles_remove(struct cw_logfiles *t, struct cw_logfile *f)
{
    unwatch(t, f);
    cw_list_remove(&f->link);
    t->n--;
    if (f->fd >= 0)
        close(f->fd);
    free(f);
}

struct cw_logfile *cw_logfiles_find(struct cw_logfiles *t, const char *name)
{
    cw_list_each(l, &t->list) {
        struct cw_logfile *f = cw_list_entry(l, struct cw_logfile, link);
        if (strcmp(f->name, name) != 0)
            continue;
        cw_list_remove(l);
        cw_list_add_tail(&t->list, l);
        f->used_ms = cw_loop_now_ms(t->loop);
        return f;
    }
    return NULL;
}

static bool make_room(struct cw_logfiles *t)
{
    if (t->n < CW_LOGFILES_MAX)
        return true;
    cw_list_each_safe(l, &t->list) {
        struct cw_logfile *f = cw_list_entry(l, struct cw_logfile, link);
        if (f->readers == 0) {
            cw_logfiles_remove(t, f);
            return true;
        }
    }
    return false;
}

struct cw_logfile *cw_logfiles_add(struct cw_logfiles *t, const char *name)
{
    if (!make_room(t))
        return NULL;
    struct cw_logfile *f = cw_xcalloc(1, sizeof *f);
    snprintf(f->name, sizeof f->name, "%s", name);
    f->fd = f->watch = -1;
    f->used_ms = cw_loop_now_ms(t->loop);
    cw_list_add_tail(&t->list, &f->link);
    t->n++;
    return f;
}

void cw_logfiles_expire(struct cw_logfiles *t, int64_t now_ms)
{
    cw_list_each_safe(l, &t->list) {
        struct cw_logfile *f = cw_list_entry(l, struct cw_logfile, link);
        if (f->readers == 0 && now_ms - f->used_ms > IDLE_MS)
            cw_logfiles_remove(t, f);
    }
}

size_t cw_logfiles_count(const struct cw_logfiles *t)
{
    return t->n;
}

void cw_logfile_watch(struct cw_logfiles *t, struct cw_logfile *f)
{
    char path[64];
    f->readers++;
    if (f->watch >= 0 || f->fd < 0)
        return;
    snprintf(path, sizeof path, "/proc/self/fd/%d", f->fd);
    f->watch = inotify_add_watch(t->inotify, path, IN_MODIFY);
}

void cw_logfile_unwatch(struct cw_logfiles *t, struct cw_logfile *f)
{
    f->readers--;
    f->used_ms = cw_loop_now_ms(t->loop);
    if (f->readers == 0)
        unwatch(t, f);
}

int cw_logfile_read(struct cw_logfile *f, uint64_t offset, bool from_end, size_t max,
                    struct cw_buf *out, uint64_t *ret_offset, uint64_t *ret_size)
{
    struct stat st;
    if (fstat(f->fd, &st) < 0)
        return -errno;
    uint64_t size = (uint64_t)st.st_size;
    if (from_end)
        offset = offset < size ? size - offset : 0;
    if (offset > size)
        offset = size;
    *ret_offset = offset;
    *ret_size = size;
    ssize_t n = pread(f->fd, cw_buf_reserve(out, max), max, (off_t)offset);
    if (n < 0)
        return -errno;
    out->len += (size_t)n;
    out->data[out->len] = '\0';
    return 0;
}
