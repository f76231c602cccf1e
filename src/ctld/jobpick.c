/* jobpick.c: from the text of a selector to the job it names. Tested by the component test. */
#include "ctld/jobpick.h"

static int pick(struct cw_ctld *c, const char *text, const struct cw_selector *sel,
                struct cw_arena *a, struct cw_jobpick *ret, struct cw_error *err)
{
    if (sel->first != sel->last || (sel->has_indices && cw_idset_count(&sel->indices) != 1))
        return cw_fail(err, -EINVAL, "'%s' names more than one job, one is wanted", text);
    int rc = cw_jobview_find(c, sel->first, a, &ret->src, &ret->is_element, &ret->ordinal, err);
    if (rc < 0)
        return rc;
    ret->attempt = sel->attempt;
    if (sel->has_indices) {
        uint64_t index = cw_idset_first(&sel->indices);
        if (!ret->src.is_array || ret->is_element || !cw_idset_has(&ret->src.indices, index)) {
            cw_jobsrc_fini(&ret->src);
            return cw_fail(err, -ENOENT, "job %s does not exist", text);
        }
        ret->is_element = true;
        ret->ordinal = cw_idset_rank(&ret->src.indices, index);
    }
    ret->element_id =
        ret->is_element ? cw_jobsrc_element_id(&ret->src, ret->ordinal) : ret->src.rec->id;
    return 0;
}

int cw_jobpick(struct cw_ctld *c, const char *text, struct cw_arena *a, struct cw_jobpick *ret,
               struct cw_error *err)
{
    struct cw_selector sel = {0};
    *ret = (struct cw_jobpick){0};
    int rc = cw_selector_parse(text, &sel, err);
    if (rc < 0)
        return rc;
    rc = pick(c, text, &sel, a, ret, err);
    cw_selector_fini(&sel);
    return rc;
}
