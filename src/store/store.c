/* LMDB behind a few calls: open, commit a batch, read, copy.
 *
 * Rules. The directory's lock file is held from before the check to the close, so the data file has
 * one user. A write transaction keeps its first error: later steps do nothing and the commit
 * reports it. Read transactions live inside one call. Test: store_test.c, storecrash_test.c. */
#include "config.h"

#include "store/store.h"

#include "base/crashpoint.h"
#include "base/file.h"
#include "base/mem.h"
#include "store/batch.h"
#include "store/storecheck.h"
#include "store/storeenv.h"
#include "store/storefs.h"
#include "store/storerow.h"

#include <assert.h>
#include <dirent.h>
#include <fcntl.h>
#include <lmdb.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#define MARK_TEXT  "crun-wlm store 1\n" /* of the file store.format: a store was made here */
#define FULL_BYTES (1024 * 1024) /* an I/O error with less than this free means a full disk */

static const char *const table_names[CW_TABLE_N] = {
    [CW_TABLE_META] = "meta",
    [CW_TABLE_JOB] = "job",
    [CW_TABLE_ATTEMPT] = "attempt",
    [CW_TABLE_PAYLOAD] = "payload",
    [CW_TABLE_REQKEY] = "reqkey",
    [CW_TABLE_NODE] = "node",
    [CW_TABLE_EVENT] = "event",
    [CW_TABLE_DONE] = "done",
    [CW_TABLE_QUARANTINE] = "quarantine",
    [CW_TABLE_STEP] = "step",
    [CW_TABLE_CRON] = "cron",
};

struct cw_store {
    char *dir;
    int lock_fd;
    MDB_env *env;
    MDB_dbi dbi[CW_TABLE_N];
    struct cw_store_check checked;
};

/* ---- errors ---------------------------------------------------------------------------------- */

static bool disk_is_full(const char *dir)
{
    struct statvfs v;
    return statvfs(dir, &v) == 0 && (uint64_t)v.f_bavail * v.f_frsize < FULL_BYTES;
}

/* LMDB says EIO for a short write, which is what a full disk gives first. */
static int fail_db(const struct cw_store *s, int code, const char *act, struct cw_error *err)
{
    int rc = cw_storeenv_errno(code);
    if ((rc == -EIO || rc == -ENOSPC) && disk_is_full(s->dir))
        return cw_fail_node(err, -ENOSPC, "store %s: %s: the file system is full", s->dir, act);
    /* LMDB takes no more writes after a failed write of its meta page; a new process does. */
    return cw_fail_node(err, rc, "store %s: %s: %s%s", s->dir, act, mdb_strerror(code),
                        code == MDB_PANIC ? " (a restart of this daemon clears it)" : "");
}

static int fail_row(const struct cw_store *s, enum cw_table t, struct cw_error *err)
{
    return cw_fail_node(err, -EBADMSG, "store %s: table %s: a row fails its checksum", s->dir,
                        cw_store_table_name(t));
}

/* ---- opening --------------------------------------------------------------------------------- */

/* Is there a store already? A mark without data must not become a new, empty store. */
static int find_data(const struct cw_store *s, bool *ret_exists, struct cw_error *err)
{
    cw_autofree char *data = cw_file_join(s->dir, "data.mdb");
    cw_autofree char *mark = cw_file_join(s->dir, "store.format");
    cw_autobuf struct cw_buf text = { 0 };
    struct stat st;
    int rc = cw_file_read(mark, 4096, &text, NULL);
    bool marked = rc == 0;
    if (rc < 0 && rc != -ENOENT)
        return cw_fail_errno(err, rc, "store %s: read %s", s->dir, mark);
    if (marked && strcmp(cw_buf_str(&text), MARK_TEXT) != 0)
        return cw_fail_node(err, -EBADMSG,
                            "store %s: %s is not \"crun-wlm store 1\": made by another version?",
                            s->dir, mark);
    bool has_bytes = stat(data, &st) == 0 && st.st_size > 0;
    if (marked && !has_bytes)
        return cw_fail_node(
            err, -EBADMSG,
            "store %s: damaged (missing or empty, but a store was made here): put data.mdb of a "
            "copy made by `crun-ctl backup` in its place",
            data);
    *ret_exists = has_bytes;
    return 0;
}

static int open_tables(struct cw_store *s, struct cw_error *err)
{
    MDB_txn *txn;
    int rc = mdb_txn_begin(s->env, NULL, 0, &txn);
    if (rc != 0)
        return fail_db(s, rc, "open tables", err);
    for (int t = 0; t < CW_TABLE_N && rc == 0; t++)
        rc = mdb_dbi_open(txn, cw_store_table_name((enum cw_table)t), MDB_CREATE, &s->dbi[t]);
    if (rc == 0)
        rc = mdb_txn_commit(txn);
    else
        mdb_txn_abort(txn);
    return rc == 0 ? 0 : fail_db(s, rc, "open tables", err);
}

static int write_mark(const char *dir, struct cw_error *err)
{
    cw_autofree char *mark = cw_file_join(dir, "store.format");
    return access(mark, F_OK) == 0
               ? 0
               : cw_file_write_atomic(mark, MARK_TEXT, strlen(MARK_TEXT), 0600, err);
}

static int open_env(struct cw_store *s, enum cw_store_sync sync, struct cw_error *err)
{
    unsigned flags = MDB_NOTLS | (sync == CW_STORE_SYNC_META ? MDB_NOMETASYNC : 0U) |
                     (sync == CW_STORE_SYNC_NONE ? MDB_NOSYNC : 0U);
    int fd, rc = cw_storeenv_open(s->dir, flags, &s->env);
    if (rc != 0)
        return fail_db(s, rc, "open", err);
    if (mdb_env_get_fd(s->env, &fd) == 0)
        fcntl(fd, F_SETFD, FD_CLOEXEC);
    cw_store_reader_check(s);
    return 0;
}

/* The steps of opening; close undoes whatever was done. */
static int open_steps(struct cw_store *s, enum cw_store_sync sync, struct cw_error *err)
{
    cw_autofree char *lock = cw_file_join(s->dir, "store.lock");
    bool exists = false;
    int rc = cw_file_mkdirs(s->dir, 0700, err);
    if (rc == 0)
        rc = cw_storefs_check(s->dir, err);
    if (rc == 0 && (rc = cw_file_lock(lock, &s->lock_fd, err)) < 0)
        rc = cw_wrap(err, rc, "store %s", s->dir);
    if (rc == 0)
        rc = find_data(s, &exists, err);
    if (rc == 0 && exists)
        rc = cw_storecheck_run(s->dir, &s->checked, err);
    if (rc == 0)
        rc = open_env(s, sync, err);
    if (rc == 0)
        rc = open_tables(s, err);
    if (rc == 0)
        rc = write_mark(s->dir, err);
    return rc;
}

int cw_store_open(const char *dir, enum cw_store_sync sync, struct cw_store **ret,
                  struct cw_error *err)
{
    struct cw_store *s = cw_xcalloc(1, sizeof(*s));
    s->lock_fd = -1;
    s->dir = cw_xstrdup(dir);
    int rc = open_steps(s, sync, err);
    if (rc < 0)
        cw_store_close(s);
    else
        *ret = s;
    return rc;
}

void cw_store_close(struct cw_store *s)
{
    if (s == NULL)
        return;
    if (s->env != NULL) {
        mdb_env_sync(s->env, 1); /* what the weaker modes left to the kernel */
        mdb_env_close(s->env);
    }
    if (s->lock_fd >= 0)
        close(s->lock_fd);
    free(s->dir);
    free(s);
}

const struct cw_store_check *cw_store_checked(const struct cw_store *s)
{
    return &s->checked;
}

int cw_store_free_bytes(struct cw_store *s, uint64_t *ret)
{
    struct statvfs v;
    if (statvfs(s->dir, &v) < 0)
        return -errno;
    *ret = (uint64_t)v.f_bavail * v.f_frsize;
    return 0;
}

void cw_store_reader_check(struct cw_store *s)
{
    int dead;
    mdb_reader_check(s->env, &dead);
}

/* ---- copying --------------------------------------------------------------------------------- */

static int check_empty_dir(const char *dir, struct cw_error *err)
{
    DIR *d = opendir(dir);
    if (d == NULL)
        return cw_fail_errno(err, -errno, "backup %s", dir);
    int n = 0;
    for (struct dirent *e; (e = readdir(d)) != NULL;)
        n += strcmp(e->d_name, ".") != 0 && strcmp(e->d_name, "..") != 0;
    closedir(d);
    return n == 0 ? 0 : cw_fail(err, -ENOTEMPTY, "backup %s: the directory is not empty", dir);
}

static int sync_file(const char *path, struct cw_error *err)
{
    cw_autoclose int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0 || fsync(fd) < 0)
        return cw_fail_errno(err, -errno, "backup: sync %s", path);
    return 0;
}

int cw_store_backup(struct cw_store *s, const char *dir, struct cw_error *err)
{
    cw_autofree char *data = cw_file_join(dir, "data.mdb");
    int rc = cw_file_mkdirs(dir, 0700, err);
    if (rc == 0)
        rc = check_empty_dir(dir, err);
    if (rc < 0)
        return rc;
    int code = mdb_env_copy2(s->env, dir, MDB_CP_COMPACT);
    if (code != 0)
        rc = cw_fail_node(err, disk_is_full(dir) ? -ENOSPC : cw_storeenv_errno(code),
                          "backup %s: %s", dir,
                          disk_is_full(dir) ? "the file system is full" : mdb_strerror(code));
    if (rc == 0)
        rc = sync_file(data, err);
    if (rc == 0)
        rc = write_mark(dir, err); /* last, and it syncs the directory: a marked copy is whole */
    if (rc < 0)
        unlink(data);
    return rc;
}

/* ---- writing --------------------------------------------------------------------------------- */

/* The first error stays; after it every step does nothing. */
struct write_txn {
    struct cw_store *s;
    MDB_txn *txn;
    int code; /* LMDB's */
};

static void write_begin(struct write_txn *w)
{
    w->code = mdb_txn_begin(w->s->env, NULL, 0, &w->txn);
}

static void write_op(struct write_txn *w, const struct cw_batch_op *o)
{
    MDB_val key = { o->klen, (void *)(uintptr_t)o->key },
            val = { CW_STOREROW_HEAD + o->vlen, NULL };
    if (w->code != 0)
        return;
    if (o->del) {
        w->code = mdb_del(w->txn, w->s->dbi[o->table], &key, NULL);
        if (w->code == MDB_NOTFOUND)
            w->code = 0;
        return;
    }
    w->code = mdb_put(w->txn, w->s->dbi[o->table], &key, &val, MDB_RESERVE);
    if (w->code == 0)
        cw_storerow_pack((uint8_t)o->table, o->key, o->klen, o->val, o->vlen, val.mv_data);
}

static int write_commit(struct write_txn *w, struct cw_error *err)
{
    cw_crashpoint("store.before-commit");
    if (w->code == 0)
        w->code = -cw_crashpoint_fail("store.before-commit");
    if (w->code == 0) {
        w->code = mdb_txn_commit(w->txn);
        w->txn = NULL; /* freed by the call in any case */
    }
    if (w->txn != NULL)
        mdb_txn_abort(w->txn);
    if (w->code != 0)
        return fail_db(w->s, w->code, "commit", err);
    cw_crashpoint("store.after-commit");
    return 0;
}

int cw_store_commit(struct cw_store *s, const struct cw_batch *b, struct cw_error *err)
{
    struct write_txn w = { .s = s };
    if (cw_batch_empty(b))
        return 0;
    size_t n;
    cw_autofree struct cw_batch_op *ops = cw_batch_sort(b, &n);
    write_begin(&w);
    for (size_t i = 0; i < n; i++)
        write_op(&w, &ops[i]);
    return write_commit(&w, err);
}

/* ---- reading --------------------------------------------------------------------------------- */

static int read_begin(struct cw_store *s, MDB_txn **ret, struct cw_error *err)
{
    int code = mdb_txn_begin(s->env, NULL, MDB_RDONLY, ret);
    return code == 0 ? 0 : fail_db(s, code, "read", err);
}

static bool row_is_whole(enum cw_table t, const MDB_val *key, const MDB_val *val)
{
    return cw_storerow_check((uint8_t)t, key->mv_data, key->mv_size, val->mv_data, val->mv_size);
}

int cw_store_get(struct cw_store *s, enum cw_table t, const void *key, size_t klen,
                 struct cw_buf *ret, struct cw_error *err)
{
    MDB_txn *txn;
    MDB_val k = { klen, (void *)(uintptr_t)key }, v;
    assert(t < CW_TABLE_N);
    int rc = read_begin(s, &txn, err);
    if (rc < 0)
        return rc;
    int code = mdb_get(txn, s->dbi[t], &k, &v);
    if (code == MDB_NOTFOUND)
        rc = 0;
    else if (code != 0)
        rc = fail_db(s, code, "get", err);
    else if (!row_is_whole(t, &k, &v))
        rc = fail_row(s, t, err);
    else {
        cw_buf_add(ret, (const char *)v.mv_data + CW_STOREROW_HEAD, v.mv_size - CW_STOREROW_HEAD);
        rc = 1;
    }
    mdb_txn_abort(txn);
    return rc;
}

/* The first row of a scan. */
static int seek(MDB_cursor *c, const void *from, size_t from_len, bool backwards, MDB_val *k,
                MDB_val *v)
{
    if (from == NULL || from_len == 0)
        return mdb_cursor_get(c, k, v, backwards ? MDB_LAST : MDB_FIRST);
    *k = (MDB_val){ from_len, (void *)(uintptr_t)from };
    int code = mdb_cursor_get(c, k, v, MDB_SET_RANGE);
    if (!backwards)
        return code;
    if (code == MDB_NOTFOUND)
        return mdb_cursor_get(c, k, v, MDB_LAST);
    bool equal = code == 0 && k->mv_size == from_len && memcmp(k->mv_data, from, from_len) == 0;
    return code != 0 || equal ? code : mdb_cursor_get(c, k, v, MDB_PREV);
}

/* False: stop. */
static bool give_row(enum cw_table t, const MDB_val *k, const MDB_val *v, cw_store_row_fn fn,
                     cw_store_row_fn bad, void *arg)
{
    if (row_is_whole(t, k, v))
        return fn(k->mv_data, k->mv_size, (const char *)v->mv_data + CW_STOREROW_HEAD,
                  v->mv_size - CW_STOREROW_HEAD, arg);
    return bad == NULL || bad(k->mv_data, k->mv_size, v->mv_data, v->mv_size, arg);
}

int cw_store_scan(struct cw_store *s, enum cw_table t, const void *from, size_t from_len,
                  bool backwards, uint64_t max, cw_store_row_fn fn, cw_store_row_fn bad, void *arg,
                  struct cw_error *err)
{
    MDB_txn *txn;
    MDB_cursor *c = NULL;
    MDB_val k, v;
    assert(t < CW_TABLE_N);
    int rc = read_begin(s, &txn, err);
    if (rc < 0)
        return rc;
    int code = mdb_cursor_open(txn, s->dbi[t], &c);
    if (code == 0)
        code = seek(c, from, from_len, backwards, &k, &v);
    for (uint64_t n = 1; code == 0; n++) {
        if (!give_row(t, &k, &v, fn, bad, arg) || n == max)
            break;
        code = mdb_cursor_get(c, &k, &v, backwards ? MDB_PREV : MDB_NEXT);
    }
    if (c != NULL)
        mdb_cursor_close(c);
    mdb_txn_abort(txn);
    return code == 0 || code == MDB_NOTFOUND ? 0 : fail_db(s, code, "scan", err);
}

int cw_store_count(struct cw_store *s, enum cw_table t, uint64_t *ret, struct cw_error *err)
{
    MDB_txn *txn;
    MDB_stat st;
    assert(t < CW_TABLE_N);
    int rc = read_begin(s, &txn, err);
    if (rc < 0)
        return rc;
    int code = mdb_stat(txn, s->dbi[t], &st);
    mdb_txn_abort(txn);
    if (code != 0)
        return fail_db(s, code, "count", err);
    *ret = st.ms_entries;
    return 0;
}

const char *cw_store_table_name(enum cw_table t)
{
    assert(t < CW_TABLE_N && table_names[t] != NULL);
    return table_names[t];
}

/* ---- keys ------------------------------------------------------------------------------------ */

void cw_store_key_u64(uint8_t out[8], uint64_t v)
{
    for (int i = 7; i >= 0; i--, v >>= 8)
        out[i] = (uint8_t)v;
}

uint64_t cw_store_u64_key(const uint8_t in[8])
{
    uint64_t v = 0;
    for (int i = 0; i < 8; i++)
        v = v << 8 | in[i];
    return v;
}

void cw_store_key_u32(uint8_t out[4], uint32_t v)
{
    for (int i = 3; i >= 0; i--, v >>= 8)
        out[i] = (uint8_t)v;
}

uint32_t cw_store_u32_key(const uint8_t in[4])
{
    uint32_t v = 0;
    for (int i = 0; i < 4; i++)
        v = v << 8 | in[i];
    return v;
}
