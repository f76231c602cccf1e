/* The check of a data file before the daemon maps it.
 *
 * LMDB trusts its pages: a zeroed one aborts, a truncated file is a SIGBUS, a wrong pointer a
 * SIGSEGV. So a child opens the file by itself (read-only, without LMDB's lock file: the caller
 * holds the directory's lock), reads every page that a table or the list of free pages reaches,
 * reports over a pipe, and ends by _exit. It inherits no environment. Test: storedamage_test.c. */
#include "config.h"

#include "store/storecheck.h"

#include "base/mem.h"
#include "store/storeenv.h"
#include "store/storerow.h"

#include <fcntl.h>
#include <inttypes.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#define SILENCE_MAX_MS 60000 /* a child that says nothing for so long loops or hangs */
#define REPORT_EVERY   65536 /* rows */
#define FREE_DBI       0     /* LMDB's own table of free pages */

enum report_kind { REPORT_AT, REPORT_BAD_ROW, REPORT_BROKEN, REPORT_DONE };

/* One write below PIPE_BUF, so reports arrive whole. */
struct report {
    enum report_kind kind;
    uint64_t rows;
    char text[200];
};

/* ---- in the child ---------------------------------------------------------------------------- */

struct walk {
    int pipe;
    MDB_txn *txn;
    MDB_dbi dbi;
    const char *name;
    int table; /* -1: the free pages */
    uint64_t rows, rows_max, last_page;
};

static void send_report(const struct walk *w, enum report_kind kind, const char *text)
{
    struct report r = { .kind = kind, .rows = w->rows };
    snprintf(r.text, sizeof(r.text), "%s", text);
    if (write(w->pipe, &r, sizeof(r)) != (ssize_t)sizeof(r))
        _exit(3);
}

__attribute__((noreturn, format(printf, 2, 3))) static void broken(const struct walk *w,
                                                                   const char *fmt, ...)
{
    char text[160], all[200];
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(text, sizeof(text), fmt, ap);
    va_end(ap);
    snprintf(all, sizeof(all), "table %s: %.150s", w->name, text);
    send_report(w, REPORT_BROKEN, all);
    _exit(1);
}

static void report_bad_row(const struct walk *w, const MDB_val *key)
{
    char text[100];
    int at = snprintf(text, sizeof(text), "table %s, key ", w->name);
    for (size_t i = 0; i < key->mv_size && i < 24; i++)
        at += snprintf(text + at, sizeof(text) - (size_t)at, "%02x",
                       ((const uint8_t *)key->mv_data)[i]);
    send_report(w, REPORT_BAD_ROW, text);
}

static void check_row(const struct walk *w, const MDB_val *key, const MDB_val *val)
{
    if (!cw_storerow_check((uint8_t)w->table, key->mv_data, key->mv_size, val->mv_data,
                           val->mv_size))
        report_bad_row(w, key);
}

/* A list of free pages is a count and so many page numbers, descending. A wrong one would make the
 * next commit overwrite live pages. */
static void check_free_list(const struct walk *w, const MDB_val *val)
{
    uint64_t n = 0, page, above = w->last_page + 1;
    const char *p = val->mv_data;
    if (val->mv_size >= sizeof(n))
        memcpy(&n, p, sizeof(n));
    if (val->mv_size < sizeof(n) || n > val->mv_size / sizeof(n) - 1)
        broken(w, "a list is cut");
    for (uint64_t i = 1; i <= n; i++, above = page) {
        memcpy(&page, p + i * sizeof(page), sizeof(page));
        if (page < 2 || page >= above)
            broken(w, "page %" PRIu64 " cannot be free", page);
    }
}

/* LMDB's own order: bytes, then length; free pages by native number. */
static bool in_order(const struct walk *w, const MDB_val *a, const MDB_val *b)
{
    return mdb_cmp(w->txn, w->dbi, a, b) < 0;
}

static void walk_rows(struct walk *w, MDB_cursor *cursor)
{
    MDB_val key, val, before = { 0, NULL };
    MDB_stat st;
    uint64_t n = 0;
    int rc = mdb_stat(w->txn, w->dbi, &st);
    while (rc == 0 &&
           (rc = mdb_cursor_get(cursor, &key, &val, n == 0 ? MDB_FIRST : MDB_NEXT)) == 0) {
        if (++n > st.ms_entries || n > w->rows_max)
            broken(w, "more rows than the %zu counted", st.ms_entries);
        if (key.mv_size == 0 || key.mv_size > 511 ||
            (before.mv_data != NULL && !in_order(w, &before, &key)))
            broken(w, "row %" PRIu64 " is out of order", n);
        if (w->table < 0)
            check_free_list(w, &val);
        else
            check_row(w, &key, &val);
        before = key;
        w->rows += w->table >= 0;
        if (n % REPORT_EVERY == 0)
            send_report(w, REPORT_AT, w->name);
    }
    if (rc != MDB_NOTFOUND)
        broken(w, "%s", mdb_strerror(rc));
    if (n != st.ms_entries)
        broken(w, "%" PRIu64 " rows of the %zu counted", n, st.ms_entries);
}

static void walk_table(struct walk *w, const char *name, int table)
{
    MDB_cursor *cursor = NULL;
    w->name = name;
    w->table = table;
    w->dbi = FREE_DBI;
    send_report(w, REPORT_AT, name);
    int rc = table < 0 ? 0 : mdb_dbi_open(w->txn, name, 0, &w->dbi);
    if (rc == MDB_NOTFOUND)
        return; /* made by a version that did not have it */
    if (rc == 0)
        rc = mdb_cursor_open(w->txn, w->dbi, &cursor);
    if (rc != 0)
        broken(w, "%s", mdb_strerror(rc));
    walk_rows(w, cursor);
    mdb_cursor_close(cursor);
}

static void prepare_to_die_quietly(void)
{
    static const int signals[] = {
        SIGSEGV, SIGBUS, SIGABRT, SIGFPE, SIGILL, SIGTERM, SIGINT, SIGHUP
    };
    const struct rlimit no_core = { 0, 0 };
    sigset_t none;
    setrlimit(RLIMIT_CORE, &no_core);
    for (size_t i = 0; i < CW_ARRAY_LEN(signals); i++)
        signal(signals[i], SIG_DFL);
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, NULL);
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    int null = open("/dev/null", O_WRONLY | O_CLOEXEC);
    if (null >= 0)
        dup2(null, STDERR_FILENO); /* LMDB's assertions print */
}

__attribute__((noreturn)) static void check_in_child(const char *dir, int pipe, pid_t parent)
{
    struct walk w = { .pipe = pipe, .name = "(file)" };
    MDB_env *env;
    MDB_envinfo info;
    prepare_to_die_quietly();
    if (getppid() != parent)
        _exit(3);
    int rc = cw_storeenv_open(dir, MDB_RDONLY | MDB_NOLOCK | MDB_NOTLS, &env);
    if (rc == 0)
        rc = mdb_txn_begin(env, NULL, MDB_RDONLY, &w.txn);
    if (rc == 0)
        rc = mdb_env_info(env, &info);
    if (rc != 0)
        broken(&w, "%s", mdb_strerror(rc));
    w.last_page = info.me_last_pgno;
    MDB_stat st;
    mdb_env_stat(env, &st);
    w.rows_max = (w.last_page + 1) * (st.ms_psize / 8); /* a row takes 8 bytes at least */
    for (int t = 0; t < CW_TABLE_N; t++)
        walk_table(&w, cw_store_table_name((enum cw_table)t), t);
    walk_table(&w, "(free pages)", -1);
    send_report(&w, REPORT_DONE, "");
    _exit(0);
}

/* ---- in the parent --------------------------------------------------------------------------- */

struct outcome {
    struct cw_store_check found;
    char at[200], broken[200];
    bool done, silent;
};

static void note_report(struct outcome *o, const struct report *r)
{
    o->found.rows = r->rows;
    switch (r->kind) {
    case REPORT_AT:
        snprintf(o->at, sizeof(o->at), "%s", r->text);
        break;
    case REPORT_BAD_ROW:
        if (o->found.damaged++ == 0)
            snprintf(o->found.first, sizeof(o->found.first), "%s", r->text);
        break;
    case REPORT_BROKEN:
        snprintf(o->broken, sizeof(o->broken), "%s", r->text);
        break;
    case REPORT_DONE:
        o->done = true;
        break;
    }
}

/* Until the child closes its end; a silent one is killed. */
static void collect_reports(int fd, pid_t child, struct outcome *o)
{
    struct report r;
    for (;;) {
        struct pollfd p = { .fd = fd, .events = POLLIN };
        int n = poll(&p, 1, SILENCE_MAX_MS);
        if (n < 0 && errno == EINTR)
            continue;
        if (n == 0) {
            o->silent = true;
            kill(child, SIGKILL);
            return;
        }
        ssize_t got = n < 0 ? -1 : read(fd, &r, sizeof(r));
        if (got < 0 && errno == EINTR)
            continue;
        if (got != (ssize_t)sizeof(r))
            return;
        r.text[sizeof(r.text) - 1] = '\0';
        note_report(o, &r);
    }
}

static int say_damage(const char *dir, const struct outcome *o, int status, struct cw_error *err)
{
    char cause[256];
    if (o->broken[0] != '\0')
        snprintf(cause, sizeof(cause), "%s", o->broken);
    else if (o->silent)
        snprintf(cause, sizeof(cause), "reading table %s does not end", o->at);
    else if (WIFSIGNALED(status))
        snprintf(cause, sizeof(cause), "reading table %s: %s", o->at, strsignal(WTERMSIG(status)));
    else
        snprintf(cause, sizeof(cause), "reading table %s: exit status %d", o->at,
                 WEXITSTATUS(status));
    return cw_fail_node(
        err, -EBADMSG,
        "store %s/data.mdb: damaged (%s): move it away and put data.mdb of a copy made by "
        "`crun-ctl backup` in its place",
        dir, cause);
}

int cw_storecheck_run(const char *dir, struct cw_store_check *ret, struct cw_error *err)
{
    int fds[2], status = 0;
    pid_t parent = getpid();
    if (pipe2(fds, O_CLOEXEC) < 0)
        return cw_fail_errno(err, -errno, "store %s: check", dir);
    pid_t child = fork();
    if (child == 0)
        check_in_child(dir, fds[1], parent);
    close(fds[1]);
    if (child < 0) {
        close(fds[0]);
        return cw_fail_errno(err, -errno, "store %s: start the check", dir);
    }
    struct outcome o = { .at = "(file)" };
    collect_reports(fds[0], child, &o);
    close(fds[0]);
    while (waitpid(child, &status, 0) < 0 && errno == EINTR)
        ;
    if (!o.done || o.broken[0] != '\0')
        return say_damage(dir, &o, status, err);
    *ret = o.found;
    return 0;
}
