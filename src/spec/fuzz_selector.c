/* Fuzzes job selectors, lists of them and dependency lists. An accepted selector is sane; an
 * accepted plain one prints back to a form that parses to the same. */
#include "spec/selector.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void one(const char *text)
{
    struct cw_selector s, again;
    char buf[48];
    if (cw_selector_parse(text, &s, NULL) != 0)
        return;
    if (s.first == 0 || s.last < s.first || (s.has_indices && s.first != s.last))
        abort();
    if (s.has_indices && cw_idset_count(&s.indices) == 1) {
        cw_selector_format(0, s.first, cw_idset_first(&s.indices), buf, sizeof buf);
        if (cw_selector_parse(buf, &again, NULL) != 0 || again.first != s.first ||
            cw_idset_first(&again.indices) != cw_idset_first(&s.indices))
            abort();
        cw_selector_fini(&again);
    }
    cw_selector_fini(&s);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char *text = cw_xstrndup((const char *)data, size);
    struct cw_arena *a = cw_arena_create();
    cw_autostrv struct cw_strv list = {0};
    Cw__Dependency **deps;
    bool any;
    size_t n;
    one(text);
    if (cw_selector_split(text, &list, NULL) == 0)
        for (size_t i = 0; i < list.n; i++)
            one(list.v[i]);
    if (cw_dependency_parse(text, a, &n, &deps, &any, NULL) == 0)
        for (size_t i = 0; i < n; i++)
            if (deps[i]->has_job_id == (deps[i]->kind == CW__DEPENDENCY_KIND__SINGLETON))
                abort();
    cw_arena_destroy(a);
    free(text);
    return 0;
}
