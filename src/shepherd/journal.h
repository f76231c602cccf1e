#pragma once
/* What remains of a shepherd when it dies: an append-only file of checked records, one write(2)
 * each and no sync (it must survive processes, not a power cut). Rules: START before the process is
 * made, PID after, EXIT before the tear-down, FORGET when the node daemon has passed the end on for
 * good. A torn tail is cut off silently: what it would have said was never acted upon. Record: u32
 * bytes, u32 CRC-32C of them, then u8 type and body. Test: journal_test.c. */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/error.h"
#include "base/list.h"

enum cw_journal_type {
    CW_JOURNAL_START = 1,   /* key; isolation name, "*": not known, try all */
    CW_JOURNAL_PID = 2,     /* key; packed TaskStarted */
    CW_JOURNAL_EXIT = 3,    /* key; packed TaskEnd; a later one replaces it */
    CW_JOURNAL_EMPTIED = 4, /* key */
    CW_JOURNAL_FORGET = 5,  /* key */
};

struct cw_journal;
/* Creates or continues path; a torn tail is removed. */
int cw_journal_open(const char *path, struct cw_journal **ret, struct cw_error *err);
void cw_journal_close(struct cw_journal *j); /* NULL allowed */
/* One record. Without a START nothing is started; a later record that fails is logged, and what it
 * says is still told while the shepherd lives. */
int cw_journal_add(struct cw_journal *j, enum cw_journal_type type, uint64_t id, uint32_t attempt,
                   const void *body, size_t n);
int cw_journal_reset(struct cw_journal *j); /* nothing is left to tell */
/* Rewriting: begin, add what still counts, commit. Until the commit the old file stands. */
int cw_journal_rewrite_begin(struct cw_journal *j);
int cw_journal_rewrite_commit(struct cw_journal *j);
size_t cw_journal_bytes(const struct cw_journal *j);

/* What a journal says of one task. */
struct cw_journal_task {
    struct cw_list link;
    uint64_t id;
    uint32_t attempt;
    char isolation[64];
    struct cw_buf started, end; /* packed TaskStarted, TaskEnd; empty: not there */
    bool emptied, forgotten;
};
/* Appends the tasks of path to list in the order of their START. A missing file has none. */
int cw_journal_load(const char *path, struct cw_list *list, struct cw_error *err);
void cw_journal_tasks_destroy(struct cw_list *list);
