#pragma once
/* Hash tables: u64 -> pointer and string -> pointer. Open addressing; pointers are never owned,
 * string keys are borrowed (they must live as long as the entry). Removing the current entry
 * inside each() is allowed, adding is not. Test: table_test.c. */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct cw_idtable;
struct cw_idtable *cw_idtable_create(void);
void cw_idtable_destroy(struct cw_idtable *t);
void *cw_idtable_find(const struct cw_idtable *t, uint64_t key);           /* NULL: none */
void *cw_idtable_set(struct cw_idtable *t, uint64_t key, void *value);     /* returns the old; value != NULL */
void *cw_idtable_remove(struct cw_idtable *t, uint64_t key);               /* returns the old or NULL */
size_t cw_idtable_count(const struct cw_idtable *t);
void cw_idtable_each(struct cw_idtable *t, bool (*fn)(uint64_t key, void *value, void *arg), void *arg);

struct cw_strtable;
struct cw_strtable *cw_strtable_create(void);
void cw_strtable_destroy(struct cw_strtable *t);
void *cw_strtable_find(const struct cw_strtable *t, const char *key);
void *cw_strtable_set(struct cw_strtable *t, const char *key, void *value);
void *cw_strtable_remove(struct cw_strtable *t, const char *key);
size_t cw_strtable_count(const struct cw_strtable *t);
void cw_strtable_each(struct cw_strtable *t, bool (*fn)(const char *key, void *value, void *arg), void *arg);
