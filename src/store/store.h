#pragma once
/* LMDB as the log of the controller's memory: tables of (key bytes -> value bytes), written in
 * batches, each batch one durable transaction. The only unit that knows LMDB; it does not know what
 * the bytes mean.
 *
 * Values carry a CRC-32C, checked on every read. Keys are big-endian (cw_store_key_*), so ranges
 * are orders. One environment per process, never used across fork. Hazards it closes: a map that is
 * never resized, stale readers, remote file systems refused, a check of the whole file in a forked
 * child at open. Crash points: store.before-commit, store.after-commit. Layout: doc/STORE.md. Test:
 * store_test.c, storecrash_test.c, storedamage_test.c, batch_test.c. */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/error.h"

enum cw_table {
    CW_TABLE_META,
    CW_TABLE_JOB,
    CW_TABLE_ATTEMPT,
    CW_TABLE_PAYLOAD,
    CW_TABLE_REQKEY,
    CW_TABLE_NODE,
    CW_TABLE_EVENT,
    CW_TABLE_DONE,       /* (end time ns, id, attempt) -> empty; drives acct and expiry */
    CW_TABLE_QUARANTINE, /* rows that could not be read, kept for repair */
    CW_TABLE_STEP,       /* (element id, attempt, step) */
    CW_TABLE_CRON,       /* uid -> CronTable */
    CW_TABLE_N
};
/* Its name on disk and for people. */
const char *cw_store_table_name(enum cw_table t);

struct cw_store;
enum cw_store_sync { CW_STORE_SYNC_FULL, CW_STORE_SYNC_META, CW_STORE_SYNC_NONE };
/* Creates dir (0700) when missing. Forks once for the check, so open before starting threads.
 * -EBUSY: another process has it (names the pid). -EBADMSG: the data file is damaged beyond use
 * (names it and how to restore). -ENOTSUP: a remote file system (CRUN_STORE_ANY_FS=1 overrules). */
int cw_store_open(const char *dir, enum cw_store_sync sync, struct cw_store **ret,
                  struct cw_error *err);
void cw_store_close(struct cw_store *s); /* NULL allowed */

/* What the check at open found. Damaged rows do not hinder opening: scans give them to `bad`. */
struct cw_store_check {
    uint64_t rows, damaged;
    char first[200]; /* the first damaged row: "table job, key 00..2a"; "" when none */
};
const struct cw_store_check *cw_store_checked(const struct cw_store *s);
/* Bytes free on the file system of the store. */
int cw_store_free_bytes(struct cw_store *s, uint64_t *ret);
/* A consistent compacted copy, synced, in an empty directory (made when missing; -ENOTEMPTY). It
 * can be opened as a store. Writers go on meanwhile. Blocks: call on a worker. */
int cw_store_backup(struct cw_store *s, const char *dir, struct cw_error *err);
void cw_store_reader_check(struct cw_store *s); /* clears slots of dead readers */

/* ---- writing: collect, then commit once ------------------------------------------------------ */
struct cw_batch;
struct cw_batch *cw_batch_create(void);
void cw_batch_destroy(struct cw_batch *b); /* NULL allowed */
bool cw_batch_empty(const struct cw_batch *b);
size_t cw_batch_bytes(const struct cw_batch *b);
/* Copies key (1 to 511 bytes) and value. The last put or del of a key in one batch counts. */
void cw_batch_put(struct cw_batch *b, enum cw_table t, const void *key, size_t klen,
                  const void *val, size_t vlen);
/* A key that is not stored is no error. */
void cw_batch_del(struct cw_batch *b, enum cw_table t, const void *key, size_t klen);
/* One transaction, durable on return 0. On error nothing of it is stored and the batch is unchanged
 * (it can be tried again; -ENOSPC: when there is room). Blocks for the disk; may be called on any
 * one thread at a time. The calls for reading may run meanwhile on other threads. */
int cw_store_commit(struct cw_store *s, const struct cw_batch *b, struct cw_error *err);

/* ---- reading --------------------------------------------------------------------------------- */
/* 1 found (appended to ret), 0 none, -EBADMSG damaged. Thread-safe. */
int cw_store_get(struct cw_store *s, enum cw_table t, const void *key, size_t klen,
                 struct cw_buf *ret, struct cw_error *err);
/* Calls fn for each row with key >= from (NULL: first) in order until fn returns false or the end,
 * or `max` rows (0: all); backwards: key <= from (NULL: last), descending. Rows that fail their
 * checksum go to `bad` with their stored bytes (NULL: skipped) and count too. The pointers hold
 * during the call only and are not aligned. One short read transaction: keep max under 10,000 while
 * the writer runs and continue behind the last key. fn may read the store. */
typedef bool (*cw_store_row_fn)(const void *key, size_t klen, const void *val, size_t vlen,
                                void *arg);
int cw_store_scan(struct cw_store *s, enum cw_table t, const void *from, size_t from_len,
                  bool backwards, uint64_t max, cw_store_row_fn fn, cw_store_row_fn bad, void *arg,
                  struct cw_error *err);
int cw_store_count(struct cw_store *s, enum cw_table t, uint64_t *ret, struct cw_error *err);

void cw_store_key_u64(uint8_t out[8], uint64_t v);
uint64_t cw_store_u64_key(const uint8_t in[8]);
void cw_store_key_u32(uint8_t out[4], uint32_t v);
uint32_t cw_store_u32_key(const uint8_t in[4]);
