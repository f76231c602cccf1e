#pragma once
/* Tables for people: columns that grow to their content, nothing cut when the output is no
 * terminal. parsable: fields joined by '|' without padding. Over libsmartcols. */
#include <stdbool.h>
#include <stddef.h>

struct cw_listing;
/* headers: NULL-terminated; a name that begins with '>' is right-aligned. */
/* How long a list of indices may be in a cell: short on a terminal, 0 (no limit) elsewhere. */
size_t cw_listing_id_max(void);
struct cw_listing *cw_listing_create(const char *const *headers, bool no_header, bool parsable);
void cw_listing_row(struct cw_listing *l, ...)
    __attribute__((sentinel));               /* const char * per column, then NULL */
void cw_listing_cells(struct cw_listing *l, const char *const *cells); /* one per column */
void cw_listing_print(struct cw_listing *l); /* to stdout; frees l */
void cw_listing_discard(struct cw_listing *l); /* without printing; NULL allowed */
