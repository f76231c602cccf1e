/* gpu/fake: inventory from options, environment of a grant, denial without one. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <crunwlm/plugin.h>

#include <errno.h>
#include <stdio.h>
#include <string.h>

#define OPS ((const struct cw_gpu_ops *)cw_plugin.ops)

static const char *opt_count, *opt_numa;
static char plan_text[512];

static const char *fake_option(const struct cw_host *host, const char *name)
{
    (void)host;
    return strcmp(name, "count") == 0   ? opt_count
           : strcmp(name, "numa") == 0  ? opt_numa
           : strcmp(name, "model") == 0 ? "h100"
                                        : "85899345920";
}

static int fake_plan_add(const struct cw_host *host, struct cw_plan *plan,
                         const struct cw_plan_line *l)
{
    size_t len = strlen(plan_text);

    (void)host;
    (void)plan;
    assert_int_equal(l->kind, CW_PLAN_ENV);
    snprintf(plan_text + len, sizeof(plan_text) - len, "%s=%s\n", l->a, l->b);
    return 0;
}

static const struct cw_host host = {
    .size = sizeof(host), .option = fake_option, .plan_add = fake_plan_add};

static void *open_with(const char *count, const char *numa)
{
    struct cw_plugin_err err = {{0}};
    void *ctx = NULL;

    opt_count = count;
    opt_numa = numa;
    plan_text[0] = '\0';
    assert_int_equal(cw_plugin.open(&host, &ctx, &err), 0);
    return ctx;
}

static void the_inventory_follows_the_options(void **state)
{
    struct cw_plugin_err err = {{0}};
    struct cw_gpu_info info;
    void *ctx = open_with("4", "0,0,1");

    (void)state;
    assert_int_equal(OPS->count(ctx, &err), 4);
    assert_int_equal(OPS->get(ctx, 3, &info, &err), 0);
    assert_int_equal(info.index, 3);
    assert_int_equal(info.numa, 1);
    assert_string_equal(info.model, "h100");
    assert_string_equal(info.uuid, "GPU-fake-00000003");
    assert_int_equal(info.mem_bytes, 85899345920u);
    assert_int_equal(OPS->get(ctx, 4, &info, &err), -ENOENT);
    assert_string_equal(err.text, "GPU 4 does not exist, this node has 4");
    cw_plugin.close(ctx);
}

static void a_grant_becomes_environment(void **state)
{
    static const uint32_t gpus[] = {1, 3};
    struct cw_task_view task = {.size = sizeof(task), .gpus = gpus, .n_gpus = 2};
    struct cw_plugin_err err = {{0}};
    void *ctx = open_with("4", "");

    (void)state;
    assert_int_equal(OPS->plan(ctx, &host, &task, NULL, &err), 0);
    assert_string_equal(plan_text, "CUDA_DEVICE_ORDER=PCI_BUS_ID\nCUDA_VISIBLE_DEVICES=1,3\n"
                                   "NVIDIA_VISIBLE_DEVICES=1,3\n");
    cw_plugin.close(ctx);
}

static void a_task_without_gpus_is_denied_all(void **state)
{
    struct cw_task_view task = {.size = sizeof(task)};
    struct cw_plugin_err err = {{0}};
    void *ctx = open_with("4", "");

    (void)state;
    assert_int_equal(OPS->plan(ctx, &host, &task, NULL, &err), 0);
    assert_string_equal(plan_text, "CUDA_DEVICE_ORDER=PCI_BUS_ID\nCUDA_VISIBLE_DEVICES=-1\n"
                                   "NVIDIA_VISIBLE_DEVICES=void\n");
    cw_plugin.close(ctx);
}

static void a_grant_of_a_gpu_that_is_not_there_is_refused(void **state)
{
    static const uint32_t gpus[] = {0, 9};
    struct cw_task_view task = {.size = sizeof(task), .gpus = gpus, .n_gpus = 2};
    struct cw_plugin_err err = {{0}};
    void *ctx = open_with("4", "");

    (void)state;
    assert_int_equal(OPS->plan(ctx, &host, &task, NULL, &err), -ENODEV);
    assert_string_equal(err.text, "granted GPU 9 does not exist, there are 4");
    assert_string_equal(plan_text, "");
    cw_plugin.close(ctx);
}

static void options_out_of_range_are_refused(void **state)
{
    struct cw_plugin_err err = {{0}};
    void *ctx;

    (void)state;
    opt_count = "65";
    opt_numa = "";
    assert_int_equal(cw_plugin.open(&host, &ctx, &err), -EINVAL);
    assert_string_equal(err.text, "option 'count': 65, allowed: 0 to 64");
    opt_count = "2";
    opt_numa = "0,x";
    assert_int_equal(cw_plugin.open(&host, &ctx, &err), -EINVAL);
    assert_string_equal(err.text,
                        "option 'numa': '0,x' is not a list of NUMA nodes such as 0,0,1,1");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_inventory_follows_the_options),
        cmocka_unit_test(a_grant_becomes_environment),
        cmocka_unit_test(a_task_without_gpus_is_denied_all),
        cmocka_unit_test(a_grant_of_a_gpu_that_is_not_there_is_refused),
        cmocka_unit_test(options_out_of_range_are_refused),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
