/* See eventtext.h. */
#include "cmds/eventtext.h"

#include "base/clock.h"
#include "spec/selector.h"

static const char *event_job(const Cw__EventRecord *e, char *buf, size_t cap)
{
    return cw_selector_format(e->job_id, e->has_array_id ? e->array_id : 0, e->index, buf, cap);
}

void cw_eventtext_line(const Cw__EventRecord *e, struct cw_buf *out)
{
    char when[40], id[48];
    cw_buf_addf(out, "%s ", cw_clock_format(e->time_ns, when, sizeof(when)));
    if (e->has_job_id)
        cw_buf_addf(out, "job %s", event_job(e, id, sizeof(id)));
    else
        cw_buf_addf(out, "node %s", e->node != NULL ? e->node : "");
    if (e->has_attempt && e->attempt > 1)
        cw_buf_addf(out, ":%u", e->attempt);
    cw_buf_addf(out, " %s", e->kind);
    if (e->has_job_id && e->node != NULL)
        cw_buf_addf(out, " on %s", e->node);
    if (e->text != NULL)
        cw_buf_addf(out, ": %s", e->text);
}

json_t *cw_eventtext_json(const Cw__EventRecord *e)
{
    char when[40], id[48];
    json_t *o = json_pack("{s:I, s:s, s:I, s:s}", "seq", (json_int_t)e->seq, "time",
                          cw_clock_format(e->time_ns, when, sizeof(when)), "time_ns",
                          (json_int_t)e->time_ns, "kind", e->kind);
    if (e->has_job_id) {
        json_object_set_new(o, "job_id", json_integer((json_int_t)e->job_id));
        json_object_set_new(o, "id", json_string(event_job(e, id, sizeof(id))));
    }
    if (e->has_array_id) {
        json_object_set_new(o, "array_id", json_integer((json_int_t)e->array_id));
        json_object_set_new(o, "array_index", json_integer((json_int_t)e->index));
    }
    if (e->has_attempt)
        json_object_set_new(o, "attempt", json_integer(e->attempt));
    if (e->node != NULL)
        json_object_set_new(o, "node", json_string(e->node));
    if (e->has_uid)
        json_object_set_new(o, "uid", json_integer(e->uid));
    if (e->text != NULL)
        json_object_set_new(o, "text", json_string(e->text));
    return o;
}
