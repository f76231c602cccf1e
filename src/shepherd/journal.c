/* The append-only record file of a shepherd; see journal.h. */
#include "shepherd/journal.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/crc32c.h"
#include "base/file.h"
#include "base/mem.h"
#include "base/table.h"

#define MAGIC     "CWSJ\1\0\0"
#define MAGIC_LEN 8
#define LOAD_MAX  (1u << 30)

struct prefix {
    uint32_t bytes, crc;
};
/* Fixed part of every record. */
struct body {
    uint8_t type, pad[3];
    uint32_t attempt;
    uint64_t id;
};

struct cw_journal {
    char *path;
    int fd;
    size_t bytes;
    int old_fd; /* while rewriting: what stands at path, -1 else */
    size_t old_bytes;
    struct cw_buf record;
};

/* The record at s, or false at a torn or wrong one. */
static bool next(const char *s, size_t n, struct body *ret, const char **ret_rest,
                 size_t *ret_rest_len, size_t *ret_used)
{
    struct prefix p;
    if (n < sizeof p)
        return false;
    memcpy(&p, s, sizeof p);
    if (p.bytes < sizeof *ret || p.bytes > n - sizeof p ||
        cw_crc32c(0, s + sizeof p, p.bytes) != p.crc)
        return false;
    memcpy(ret, s + sizeof p, sizeof *ret);
    *ret_rest = s + sizeof p + sizeof *ret;
    *ret_rest_len = p.bytes - sizeof *ret;
    *ret_used = sizeof p + p.bytes;
    return true;
}

/* Bytes of path up to the first bad record; 0 when there is no such file. */
static int good_bytes(const char *path, struct cw_buf *text, size_t *ret, struct cw_error *err)
{
    int rc = cw_file_read(path, LOAD_MAX, text, err);
    if (rc == -ENOENT) {
        *ret = 0;
        return 0;
    }
    if (rc < 0)
        return rc;
    if (text->len < MAGIC_LEN) { /* died while it made the file */
        *ret = 0;
        return 0;
    }
    if (memcmp(text->data, MAGIC, MAGIC_LEN) != 0)
        return cw_fail_node(err, -EBADMSG, "%s: not a shepherd's journal", path);
    size_t at = MAGIC_LEN, used, rest_len;
    struct body b;
    const char *rest;
    while (next(text->data + at, text->len - at, &b, &rest, &rest_len, &used))
        at += used;
    *ret = at;
    return 0;
}

int cw_journal_open(const char *path, struct cw_journal **ret, struct cw_error *err)
{
    cw_autobuf struct cw_buf text = { 0 };
    size_t good = 0;
    int rc = good_bytes(path, &text, &good, err);
    if (rc < 0)
        return rc;
    cw_autoclose int fd = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
    if (fd < 0 || ftruncate(fd, (off_t)good) < 0)
        return cw_fail_errno(err, -errno, "journal %s", path);
    if (good == 0) {
        rc = cw_file_write_all(fd, MAGIC, MAGIC_LEN);
        if (rc < 0)
            return cw_fail_errno(err, rc, "journal %s", path);
        good = MAGIC_LEN;
    }
    struct cw_journal *j = cw_xcalloc(1, sizeof *j);
    j->path = cw_xstrdup(path);
    j->fd = cw_steal_fd(fd);
    j->bytes = good;
    j->old_fd = -1;
    *ret = j;
    return 0;
}

void cw_journal_close(struct cw_journal *j)
{
    if (j == NULL)
        return;
    close(j->fd);
    if (j->old_fd >= 0)
        close(j->old_fd);
    cw_buf_fini(&j->record);
    free(j->path);
    free(j);
}

int cw_journal_add(struct cw_journal *j, enum cw_journal_type type, uint64_t id, uint32_t attempt,
                   const void *body, size_t n)
{
    struct body b = { .type = (uint8_t)type, .attempt = attempt, .id = id };
    struct prefix p = { .bytes = (uint32_t)(sizeof b + n) };
    cw_buf_clear(&j->record);
    cw_buf_add(&j->record, &p, sizeof p);
    cw_buf_add(&j->record, &b, sizeof b);
    if (n > 0)
        cw_buf_add(&j->record, body, n);
    p.crc = cw_crc32c(0, j->record.data + sizeof p, p.bytes);
    memcpy(j->record.data, &p, sizeof p);
    ssize_t k;
    do
        k = write(j->fd, j->record.data, j->record.len);
    while (k < 0 && errno == EINTR);
    if (k == (ssize_t)j->record.len) {
        j->bytes += j->record.len;
        return 0;
    }
    int rc = k < 0 ? -errno : -ENOSPC;
    /* Half a record would hide every later one. */
    if (k > 0 && ftruncate(j->fd, (off_t)j->bytes) < 0)
        return -errno;
    return rc;
}

int cw_journal_reset(struct cw_journal *j)
{
    if (ftruncate(j->fd, MAGIC_LEN) < 0)
        return -errno;
    j->bytes = MAGIC_LEN;
    return 0;
}

static char *rewrite_path(const struct cw_journal *j)
{
    return cw_xasprintf("%s.new", j->path);
}

int cw_journal_rewrite_begin(struct cw_journal *j)
{
    cw_autofree char *path = rewrite_path(j);
    cw_autoclose int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_APPEND | O_CLOEXEC, 0600);
    if (fd < 0)
        return -errno;
    int rc = cw_file_write_all(fd, MAGIC, MAGIC_LEN);
    if (rc < 0)
        return rc;
    j->old_fd = j->fd;
    j->old_bytes = j->bytes;
    j->fd = cw_steal_fd(fd);
    j->bytes = MAGIC_LEN;
    return 0;
}

int cw_journal_rewrite_commit(struct cw_journal *j)
{
    cw_autofree char *path = rewrite_path(j);
    int rc = rename(path, j->path) < 0 ? -errno : 0;
    if (rc == 0) {
        close(j->old_fd);
    } else {
        close(j->fd);
        j->fd = j->old_fd;
        j->bytes = j->old_bytes;
    }
    j->old_fd = -1;
    return rc;
}

size_t cw_journal_bytes(const struct cw_journal *j)
{
    return j->bytes;
}

static void replace(struct cw_buf *b, const char *s, size_t n)
{
    cw_buf_clear(b);
    if (n > 0)
        cw_buf_add(b, s, n);
}

static void apply(struct cw_journal_task *t, const struct body *b, const char *rest, size_t n)
{
    switch ((enum cw_journal_type)b->type) {
    case CW_JOURNAL_START:
        n = n < sizeof t->isolation ? n : sizeof t->isolation - 1;
        memcpy(t->isolation, rest, n);
        t->isolation[n] = '\0';
        break;
    case CW_JOURNAL_PID:
        replace(&t->started, rest, n);
        break;
    case CW_JOURNAL_EXIT:
        replace(&t->end, rest, n);
        break;
    case CW_JOURNAL_EMPTIED:
        t->emptied = true;
        break;
    case CW_JOURNAL_FORGET:
        t->forgotten = true;
        break;
    }
}

/* Mixes id and attempt; what two keys share is told apart by find. */
static uint64_t table_key(const struct body *b)
{
    return b->id * 1000003u + b->attempt;
}

static bool is(const struct cw_journal_task *t, const struct body *b)
{
    return t->id == b->id && t->attempt == b->attempt;
}

static struct cw_journal_task *find(struct cw_idtable *table, struct cw_list *list,
                                    const struct body *b)
{
    struct cw_journal_task *t = cw_idtable_find(table, table_key(b));
    if (t != NULL && is(t, b))
        return t;
    if (t != NULL)
        cw_list_each(l, list)
            if (is(cw_list_entry(l, struct cw_journal_task, link), b))
                return cw_list_entry(l, struct cw_journal_task, link);
    t = cw_xcalloc(1, sizeof *t);
    t->id = b->id;
    t->attempt = b->attempt;
    cw_list_add_tail(list, &t->link);
    cw_idtable_set(table, table_key(b), t);
    return t;
}

int cw_journal_load(const char *path, struct cw_list *list, struct cw_error *err)
{
    cw_autobuf struct cw_buf text = { 0 };
    size_t good = 0, used = 0, rest_len = 0;
    int rc = good_bytes(path, &text, &good, err);
    if (rc < 0)
        return rc;
    struct cw_idtable *table = cw_idtable_create();
    struct body b;
    const char *rest;
    for (size_t at = MAGIC_LEN;
         at < good && next(text.data + at, good - at, &b, &rest, &rest_len, &used); at += used)
        apply(find(table, list, &b), &b, rest, rest_len);
    cw_idtable_destroy(table);
    return 0;
}

void cw_journal_tasks_destroy(struct cw_list *list)
{
    cw_list_each_safe(l, list) {
        struct cw_journal_task *t = cw_list_entry(l, struct cw_journal_task, link);
        cw_list_remove(l);
        cw_buf_fini(&t->started);
        cw_buf_fini(&t->end);
        free(t);
    }
}
