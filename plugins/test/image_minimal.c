/* The smallest plugin of its family. */
#include "test/minimal.h"

static int check(void *ctx, const char *image, struct cw_plugin_err *err)
{
    return ctx == NULL && image != NULL && err != NULL ? 0 : -1;
}

static int plan(void *ctx, const struct cw_host *host, const struct cw_task_view *task,
                const char *image, struct cw_plan *plan, struct cw_plugin_err *err)
{
    struct cw_plan_line line = {
        .size = sizeof(line), .kind = CW_PLAN_ENV, .a = "IMAGE", .b = image};

    (void)ctx;
    (void)task;
    (void)err;
    return host->plan_add(host, plan, &line);
}

static const struct cw_image_ops ops = {.check = check, .plan = plan};

TEST_PLUGIN("image", "minimal", ops);
