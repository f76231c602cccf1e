/* Interned text: job, user, node and partition names are stored once, counted. 100,000 jobs of one
 * user share one string; what nobody uses any more is freed. Test: job_test.c. */
#include "model/model.h"

#include <string.h>

#include "base/mem.h"

struct cw_name {
    uint32_t refs;
    char text[];
};

const char *cw_names_get(struct cw_model *m, const char *text)
{
    if (text == NULL || text[0] == '\0')
        return NULL;
    struct cw_name *n = cw_strtable_find(m->names, text);
    if (n == NULL) {
        size_t len = strlen(text) + 1;
        n = cw_xmalloc(sizeof(*n) + len);
        n->refs = 0;
        memcpy(n->text, text, len);
        cw_strtable_set(m->names, n->text, n);
    }
    n->refs++;
    return n->text;
}

void cw_names_put(struct cw_model *m, const char *name)
{
    if (name == NULL)
        return;
    struct cw_name *n = cw_strtable_find(m->names, name);
    if (n == NULL || --n->refs > 0)
        return;
    cw_strtable_remove(m->names, name);
    free(n);
}
