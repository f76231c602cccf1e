/* volume/local: what the text check refuses, and links that a plan must not follow. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <crunwlm/plugin.h>

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define OPS ((const struct cw_volume_ops *)cw_plugin.ops)

static const char *opt_allow;
static char plan_text[512];

static const char *fake_option(const struct cw_host *host, const char *name)
{
    (void)host;
    (void)name;
    return opt_allow;
}

static int fake_plan_add(const struct cw_host *host, struct cw_plan *plan,
                         const struct cw_plan_line *l)
{
    (void)host;
    (void)plan;
    assert_int_equal(l->kind, CW_PLAN_MOUNT);
    snprintf(plan_text, sizeof(plan_text), "%s on %s %s", l->a, l->b, l->c);
    return 0;
}

static const struct cw_host host = {
    .size = sizeof(host), .option = fake_option, .plan_add = fake_plan_add};
static const struct cw_task_view task = {.size = sizeof(task), .id = 1};

static const struct {
    const char *source, *target;
    int result;
    const char *text;
} checks[] = {
    {"/srv/data", "/data", 0, ""},
    {"/srv/data/a/b", "/data", 0, ""},
    {"/scratch", "/scratch", 0, ""},
    {"/srv/database", "/data", -ENOTSUP, "volume /srv/database: not below a directory that"},
    {"/etc", "/etc", -ENOTSUP, "volume /etc: not below a directory that this site allows"},
    {"data", "/data", -ENOTSUP, "volume data: not an absolute path"},
    {"/srv/data/../../etc", "/data", -EINVAL, "volume /srv/data/../../etc: '.' and '..' are not"},
    {"/srv/data", "data", -EINVAL, "volume data: the target must be an absolute path"},
    {"/srv/data", "/a/../etc", -EINVAL, "volume /a/../etc: the target must be"},
};

static void the_text_check_accepts_only_paths_below_an_allowed_root(void **state)
{
    struct cw_plugin_err err;
    void *ctx = NULL;

    (void)state;
    opt_allow = "/srv/data/:/scratch";
    assert_int_equal(cw_plugin.open(&host, &ctx, &err), 0);
    for (size_t i = 0; i < sizeof(checks) / sizeof(checks[0]); i++) {
        err.text[0] = '\0';
        assert_int_equal(OPS->check(ctx, checks[i].source, checks[i].target, 0, &err),
                         checks[i].result);
        if (strncmp(err.text, checks[i].text, strlen(checks[i].text)) != 0)
            fail_msg("%s: %s", checks[i].source, err.text);
    }
    cw_plugin.close(ctx);
}

static void without_an_allowed_root_nothing_is_accepted(void **state)
{
    struct cw_plugin_err err = {{0}};
    void *ctx = NULL;

    (void)state;
    opt_allow = "";
    assert_int_equal(cw_plugin.open(&host, &ctx, &err), 0);
    assert_int_equal(OPS->check(ctx, "/srv", "/srv", 0, &err), -ENOTSUP);
    cw_plugin.close(ctx);
    opt_allow = "/srv:tmp";
    assert_int_equal(cw_plugin.open(&host, &ctx, &err), -EINVAL);
    assert_string_equal(err.text, "option 'allow': tmp is not an absolute path");
}

static void a_plan_follows_no_link_out_of_the_root(void **state)
{
    char root[] = P_tmpdir "/local_test.XXXXXX", good[64], link[64], missing[64], wanted[256];
    struct cw_plugin_err err = {{0}};
    void *ctx = NULL;

    (void)state;
    assert_non_null(mkdtemp(root));
    snprintf(good, sizeof(good), "%s/good", root);
    snprintf(link, sizeof(link), "%s/link", root);
    snprintf(missing, sizeof(missing), "%s/missing", root);
    assert_int_equal(mkdir(good, 0755), 0);
    assert_int_equal(symlink("/etc", link), 0);
    opt_allow = root;
    assert_int_equal(cw_plugin.open(&host, &ctx, &err), 0);

    assert_int_equal(OPS->plan(ctx, &host, &task, good, "/data", 1, NULL, &err), 0);
    snprintf(wanted, sizeof(wanted), "%s on /data ro,nosuid,nodev", good);
    assert_string_equal(plan_text, wanted);
    assert_int_equal(OPS->plan(ctx, &host, &task, root, root, 0, NULL, &err), 0);

    assert_int_equal(OPS->plan(ctx, &host, &task, link, "/data", 0, NULL, &err), -EINVAL);
    snprintf(wanted, sizeof(wanted), "volume %s: a symbolic link is in the path", link);
    assert_string_equal(err.text, wanted);
    assert_int_equal(OPS->plan(ctx, &host, &task, missing, "/data", 0, NULL, &err), -EINVAL);
    snprintf(wanted, sizeof(wanted), "volume %s: No such file or directory", missing);
    assert_string_equal(err.text, wanted);

    cw_plugin.close(ctx);
    unlink(link);
    rmdir(good);
    rmdir(root);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_text_check_accepts_only_paths_below_an_allowed_root),
        cmocka_unit_test(without_an_allowed_root_nothing_is_accepted),
        cmocka_unit_test(a_plan_follows_no_link_out_of_the_root),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
