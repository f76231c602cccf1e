/* See listing.h. */
#include "cmds/listing.h"

#include <libsmartcols.h>
#include <stdarg.h>
#include <stdio.h>
#include <unistd.h>

#include "base/mem.h"

#define LISTING_COLUMNS_MAX 32u

struct cw_listing {
    struct libscols_table *table;
    size_t n;
    bool parsable, no_header;
};

size_t cw_listing_id_max(void)
{
    return isatty(STDOUT_FILENO) ? 24 : 0;
}

struct cw_listing *cw_listing_create(const char *const *headers, bool no_header, bool parsable)
{
    struct cw_listing *l = cw_xcalloc(1, sizeof(*l));
    l->parsable = parsable;
    l->no_header = no_header;
    l->table = scols_new_table();
    if (l->table == NULL)
        abort();
    scols_table_enable_noheadings(l->table, no_header);
    if (!isatty(STDOUT_FILENO))
        scols_table_set_termforce(l->table, SCOLS_TERMFORCE_NEVER);
    for (; headers[l->n] != NULL; l->n++) {
        const char *h = headers[l->n];
        int flags = h[0] == '>' ? SCOLS_FL_RIGHT : 0;
        h += h[0] == '>' ? 1 : 0;
        scols_table_new_column(l->table, h, 0, flags);
        if (parsable && !no_header)
            printf("%s%s", l->n == 0 ? "" : "|", h);
    }
    if (parsable && !no_header)
        putchar('\n');
    return l;
}

void cw_listing_cells(struct cw_listing *l, const char *const *cells)
{
    struct libscols_line *line = l->parsable ? NULL : scols_table_new_line(l->table, NULL);
    if (line == NULL && !l->parsable)
        abort();
    for (size_t i = 0; i < l->n && cells[i] != NULL; i++) {
        if (l->parsable)
            printf("%s%s", i == 0 ? "" : "|", cells[i]);
        else
            scols_line_set_data(line, i, cells[i]);
    }
    if (l->parsable)
        putchar('\n');
}

void cw_listing_row(struct cw_listing *l, ...)
{
    const char *cells[LISTING_COLUMNS_MAX + 1] = {NULL};
    va_list ap;
    va_start(ap, l);
    for (size_t i = 0; i < l->n && i < LISTING_COLUMNS_MAX; i++)
        if ((cells[i] = va_arg(ap, const char *)) == NULL)
            break;
    va_end(ap);
    cw_listing_cells(l, cells);
}

void cw_listing_discard(struct cw_listing *l)
{
    if (l == NULL)
        return;
    scols_unref_table(l->table);
    free(l);
}

void cw_listing_print(struct cw_listing *l)
{
    if (scols_table_get_nlines(l->table) == 0 && !l->no_header && !l->parsable) {
        /* libsmartcols prints nothing for an empty table; people expect the header line */
        struct libscols_iter *it = scols_new_iter(SCOLS_ITER_FORWARD);
        struct libscols_column *c;
        for (size_t i = 0; scols_table_next_column(l->table, it, &c) == 0; i++)
            printf("%s%s", i == 0 ? "" : " ", scols_cell_get_data(scols_column_get_header(c)));
        putchar('\n');
        scols_free_iter(it);
    }
    scols_print_table(l->table);
    cw_listing_discard(l);
}
