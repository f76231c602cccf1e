/* The plugin host against real shared objects: ours, those of plugins/test, and broken files. */
#include "plug/plug.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/file.h"
#include "base/mem.h"
#include "plug/plan.h"

#define DIRS      TEST_BUILDDIR "/plugins/test:" TEST_BUILDDIR "/plugins"
#define TEST_LIBS TEST_BUILDDIR "/plugins/test/.libs"

static struct cw_conf *conf_of(const char *path, const char *rest)
{
    cw_autofree char *text = cw_xasprintf("cluster = \"c1\"\nplugin_path = \"%s\"\n%s", path, rest);
    struct cw_error err = {0};
    struct cw_conf *c = NULL;

    if (cw_conf_load_text("test.conf", text, &c, &err) < 0)
        fail_msg("%s", err.text);
    return c;
}

/* Loads family/name from path and expects this beginning of a refusal; "%s" stands for the path. */
static void expect_refusal(const char *path, const char *rest, const char *family, const char *name,
                           const char *text)
{
    struct cw_conf *c = conf_of(path, rest);
    struct cw_plug_registry *r = cw_plug_registry_create(c, "n1");
    struct cw_plug *p = NULL;
    struct cw_error err = {0};
    cw_autofree char *wanted = NULL;
    const char *at = strstr(text, "%s");

    wanted = at == NULL ? cw_xstrdup(text)
                        : cw_xasprintf("%.*s%s%s", (int)(at - text), text, path, at + 2);
    assert_true(cw_plug_load(r, family, name, &p, &err) < 0);
    assert_null(p);
    if (strncmp(err.text, wanted, strlen(wanted)) != 0)
        fail_msg("wanted: %s\n   got: %s", wanted, err.text);
    assert_null(cw_plug_find(r, family, name));
    cw_plug_registry_destroy(r);
    cw_conf_destroy(c);
}

/* ---- every family -------------------------------------------------------------------------------
 */

static const struct {
    const char *family, *name;
} loadable[] = {
    {"isolation", "none"},  {"isolation", "cgroup"}, {"gpu", "fake"},       {"volume", "local"},
    {"sched", "fifo"},      {"auth", "key"},         {"image", "minimal"},  {"secret", "minimal"},
    {"network", "minimal"}, {"router", "minimal"},   {"scale", "minimal"},  {"submit", "minimal"},
    {"acct", "minimal"},    {"notify", "minimal"},   {"health", "minimal"}, {"power", "minimal"},
};

static void count_plug(struct cw_plug *p, void *arg)
{
    (void)p;
    (*(int *)arg)++;
}

static void a_plugin_of_every_family_loads(void **state)
{
    struct cw_conf *c = conf_of(DIRS, "");
    struct cw_plug_registry *r = cw_plug_registry_create(c, "n1");
    int n = 0, isolation = 0;

    (void)state;
    for (size_t i = 0; i < CW_ARRAY_LEN(loadable); i++) {
        struct cw_plug *p = NULL, *again = NULL;
        struct cw_error err = {0};
        if (cw_plug_load(r, loadable[i].family, loadable[i].name, &p, &err) < 0)
            fail_msg("%s", err.text);
        assert_string_equal(cw_plug_desc(p)->family, loadable[i].family);
        assert_int_equal(cw_plug_load(r, loadable[i].family, loadable[i].name, &again, &err), 0);
        assert_ptr_equal(again, p);
        assert_ptr_equal(cw_plug_find(r, loadable[i].family, loadable[i].name), p);
    }
    for (size_t i = 0; cw_plug_families[i] != NULL; i++) {
        int of_family = 0;
        cw_plug_each(r, cw_plug_families[i], count_plug, &of_family);
        if (of_family == 0)
            fail_msg("no plugin of family %s was loaded", cw_plug_families[i]);
    }
    cw_plug_each(r, NULL, count_plug, &n);
    assert_int_equal(n, CW_ARRAY_LEN(loadable));
    cw_plug_each(r, "isolation", count_plug, &isolation);
    assert_int_equal(isolation, 2);
    cw_plug_registry_destroy(r);
    cw_conf_destroy(c);
}

static void fifo_gives_all_jobs_one_priority_and_is_strict(void **state)
{
    struct cw_conf *c = conf_of(DIRS, "");
    struct cw_plug_registry *r = cw_plug_registry_create(c, NULL);
    struct cw_sched_job early = {.size = sizeof(early), .id = 1, .submit_ns = 5};
    struct cw_sched_job late = {.size = sizeof(late), .id = 9, .submit_ns = 7, .cores = 64};
    struct cw_error err = {0};
    struct cw_plug *p = NULL;

    (void)state;
    assert_int_equal(cw_plug_load(r, "sched", "fifo", &p, &err), 0);
    assert_int_equal(cw_plug_desc(p)->caps, CW_SCHED_CAP_STRICT);
    assert_int_equal(CW_PLUG_OPS(sched, p)->priority(cw_plug_ctx(p), &early),
                     CW_PLUG_OPS(sched, p)->priority(cw_plug_ctx(p), &late));
    cw_plug_registry_destroy(r);
    cw_conf_destroy(c);
}

static void a_member_outside_ops_size_does_not_exist(void **state)
{
    struct cw_conf *c = conf_of(DIRS, "");
    struct cw_plug_registry *r = cw_plug_registry_create(c, "n1");
    struct cw_error err = {0};
    struct cw_plug *older = NULL, *newer = NULL;

    (void)state;
    assert_int_equal(cw_plug_load(r, "isolation", "older", &older, &err), 0);
    assert_int_equal(cw_plug_load(r, "isolation", "none", &newer, &err), 0);
    assert_true(CW_PLUG_HAS(isolation, older, reclaim));
    assert_false(CW_PLUG_HAS(isolation, older, started));
    assert_true(CW_PLUG_HAS(isolation, newer, started));
    cw_plug_registry_destroy(r);
    cw_conf_destroy(c);
}

static void lines_of_a_plan_carry_the_name_of_their_plugin(void **state)
{
    struct cw_conf *c = conf_of(DIRS, "");
    struct cw_plug_registry *r = cw_plug_registry_create(c, "n1");
    struct cw_plan *plan = cw_plan_create();
    struct cw_plugin_err perr = {{0}};
    struct cw_error err = {0};
    struct cw_plug *p = NULL;

    (void)state;
    assert_int_equal(cw_plug_load(r, "image", "minimal", &p, &err), 0);
    assert_int_equal(
        CW_PLUG_OPS(image, p)->plan(cw_plug_ctx(p), cw_plug_host(p), NULL, "debian", plan, &perr),
        0);
    assert_string_equal(cw_plan_get(plan, 0)->origin, "image/minimal");
    assert_string_equal(cw_plan_get(plan, 0)->b, "debian");
    assert_ptr_equal(cw_plug_host(p)->plan_get(cw_plug_host(p), plan, 0), cw_plan_get(plan, 0));
    cw_plan_destroy(plan);
    cw_plug_registry_destroy(r);
    cw_conf_destroy(c);
}

/* ---- options ------------------------------------------------------------------------------------
 */

struct fields {
    struct cw_buf text;
};

static int field_set(struct cw_job_view *job, const char *field, const char *value)
{
    struct fields *f = job->priv;

    cw_buf_addf(&f->text, "%s=%s ", field, value);
    return 0;
}

static void expect_options(const char *section, const char *wanted)
{
    struct cw_conf *c = conf_of(DIRS, section);
    struct cw_plug_registry *r = cw_plug_registry_create(c, "n1");
    struct fields f = {{0}};
    struct cw_job_view job = {.size = sizeof(job), .set = field_set, .priv = &f};
    struct cw_plugin_err perr = {{0}};
    struct cw_error err = {0};
    struct cw_plug *p = NULL;

    if (cw_plug_load(r, "submit", "options", &p, &err) < 0)
        fail_msg("%s", err.text);
    assert_int_equal(CW_PLUG_OPS(submit, p)->submit(cw_plug_ctx(p), &job, &perr), 0);
    assert_string_equal(cw_buf_str(&f.text), wanted);
    cw_buf_fini(&f.text);
    cw_plug_registry_destroy(r);
    cw_conf_destroy(c);
}

static void options_arrive_in_plain_form_or_by_default(void **state)
{
    (void)state;
    expect_options("", "number=7 flag=false size=1024 time=120 cluster=c1 node=n1 ");
    expect_options("plugin \"submit/options\" { options { text = \"a b\"\n number = -3\n"
                   " flag = on\n size = 2M\n time = 1h\n } }",
                   "text=a b number=-3 flag=true size=2097152 time=3600 cluster=c1 node=n1 ");
}

static void an_unknown_or_bad_option_names_file_line_and_what_is_allowed(void **state)
{
    (void)state;
    expect_refusal(DIRS, "plugin \"gpu/fake\" {\n options {\n  cuont = 4\n }\n}", "gpu", "fake",
                   "test.conf:5: plugin gpu/fake: option 'cuont': unknown, allowed: count, mem, "
                   "model, numa");
    expect_refusal(DIRS, "plugin \"gpu/fake\" { options {\n count = four\n } }", "gpu", "fake",
                   "test.conf:4: plugin gpu/fake: option 'count': 'four' is not a whole number");
    expect_refusal(DIRS, "plugin \"submit/options\" { options {\n flag = maybe\n } }", "submit",
                   "options",
                   "test.conf:4: plugin submit/options: option 'flag': 'maybe' is neither true");
    expect_refusal(DIRS, "plugin \"submit/options\" { options {\n size = large\n } }", "submit",
                   "options", "test.conf:4: plugin submit/options: option 'size': ");
    expect_refusal(DIRS, "plugin \"sched/fifo\" { options {\n a = 1\n } }", "sched", "fifo",
                   "test.conf:4: plugin sched/fifo: option 'a': unknown, allowed: none");
}

/* ---- refusals -----------------------------------------------------------------------------------
 */

static const struct {
    const char *family, *name, *text;
} refusals[] = {
    {"submit", "unresolved",
     "plugin submit/unresolved: " TEST_LIBS "/submit-unresolved.so: undefined symbol: "
     "cw_test_nobody_has_this"},
    {"acct", "wrongabi",
     "plugin acct/wrongabi: " TEST_BUILDDIR "/plugins/test/.libs/acct-wrongabi.so: made for plugin "
     "interface 2.7, this program has 1.0"},
    {"notify", "openfails", "plugin notify/openfails: open: no bell on this machine"},
    {"notify", "tiny",
     "plugin notify/tiny: " TEST_BUILDDIR "/plugins/test/.libs/notify-tiny.so: cw_plugin says "},
    {"health", "noops",
     "plugin health/noops: " TEST_BUILDDIR "/plugins/test/.libs/health-noops.so: cw_plugin has no "
     "ops"},
    {"power", "misnamed",
     "plugin power/misnamed: " TEST_BUILDDIR "/plugins/test/.libs/power-misnamed.so: contains "
     "plugin power/other, its file name says power/misnamed"},
    {"power", "halfdone",
     "plugin power/halfdone: " TEST_BUILDDIR "/plugins/test/.libs/power-halfdone.so: ops member 2 "
     "of family power is NULL"},
    {"power", "absent", "plugin power/absent: power-absent.so: not found in "},
    {"gpus", "fake", "plugin gpus/fake: unknown family, allowed: isolation, gpu, volume, image, "},
    {"gpu", "../fake", "plugin gpu/../fake: a plugin's name has 1 to 64 characters of a-z 0-9"},
    {"gpu", "", "plugin gpu/: a plugin's name has 1 to 64 characters"},
};

static void every_refusal_says_its_true_reason(void **state)
{
    (void)state;
    for (size_t i = 0; i < CW_ARRAY_LEN(refusals); i++)
        expect_refusal(DIRS, "", refusals[i].family, refusals[i].name, refusals[i].text);
}

static void an_external_program_is_refused_clearly(void **state)
{
    (void)state;
    expect_refusal(DIRS, "plugin \"acct/site\" {\n exec = \"/opt/site/acct.py\"\n}", "acct", "site",
                   "plugin acct/site: test.conf:3: exec = \"/opt/site/acct.py\": external programs "
                   "are not supported yet, only shared objects");
}

/* ---- files that others could have written -------------------------------------------------------
 */

static int enter_dir(void **state)
{
    char *dir = cw_xstrdup(P_tmpdir "/plug_test.XXXXXX");

    umask(022);
    *state = dir;
    return mkdtemp(dir) != NULL ? 0 : -1;
}

static int leave_dir(void **state)
{
    static const char *const names[] = {"scale-minimal.so", "gpu-garbage.so", "gpu-dir.so", "sub"};
    char *dir = *state;

    for (size_t i = 0; i < CW_ARRAY_LEN(names); i++) {
        cw_autofree char *path = cw_file_join(dir, names[i]);
        remove(path);
    }
    if (rmdir(dir) < 0)
        return -1;
    free(dir);
    return 0;
}

static char *copy_plugin(const char *dir, mode_t mode)
{
    char *path = cw_file_join(dir, "scale-minimal.so");
    cw_autobuf struct cw_buf bytes = {0};

    assert_int_equal(cw_file_read(TEST_LIBS "/scale-minimal.so", 1 << 24, &bytes, NULL), 0);
    assert_int_equal(cw_file_write_atomic(path, bytes.data, bytes.len, mode, NULL), 0);
    assert_int_equal(chmod(path, mode), 0);
    return path;
}

static void a_file_or_directory_that_others_can_write_is_refused(void **state)
{
    char *dir = *state;
    cw_autofree char *file = copy_plugin(dir, 0666);

    expect_refusal(dir, "", "scale", "minimal",
                   "plugin scale/minimal: %s/scale-minimal.so can be written by everyone "
                   "(mode 0666); chmod o-w it");
    assert_int_equal(chmod(file, 0644), 0);
    assert_int_equal(chmod(dir, 0777), 0);
    expect_refusal(dir, "", "scale", "minimal",
                   "plugin scale/minimal: %s can be written by everyone (mode 0777)");
    assert_int_equal(chmod(dir, 0755), 0);
    if (geteuid() != 0)
        return;
    assert_int_equal(chmod(file, 0664), 0);
    expect_refusal(dir, "", "scale", "minimal",
                   "plugin scale/minimal: %s/scale-minimal.so can be written by its group");
    assert_int_equal(chmod(file, 0644), 0);
    assert_int_equal(chown(file, 12345, 0), 0);
    expect_refusal(dir, "", "scale", "minimal",
                   "plugin scale/minimal: %s/scale-minimal.so belongs to user 12345");
}

static void a_trusted_copy_below_a_sticky_directory_loads(void **state)
{
    char *dir = *state;
    cw_autofree char *file = copy_plugin(dir, 0644);
    struct cw_conf *c = conf_of(dir, "");
    struct cw_plug_registry *r = cw_plug_registry_create(c, NULL);
    struct cw_error err = {0};
    struct cw_plug *p = NULL;

    if (cw_plug_load(r, "scale", "minimal", &p, &err) < 0)
        fail_msg("%s", err.text);
    assert_string_equal(cw_plug_file(p), file);
    cw_plug_registry_destroy(r);
    cw_conf_destroy(c);
}

static void a_file_that_is_no_object_gives_the_loaders_own_words(void **state)
{
    char *dir = *state;
    cw_autofree char *garbage = cw_file_join(dir, "gpu-garbage.so");
    cw_autofree char *folder = cw_file_join(dir, "gpu-dir.so");

    assert_int_equal(cw_file_write_atomic(garbage, "garbage", 7, 0644, NULL), 0);
    expect_refusal(dir, "", "gpu", "garbage",
                   "plugin gpu/garbage: %s/gpu-garbage.so: file too short");
    assert_int_equal(mkdir(folder, 0755), 0);
    expect_refusal(dir, "", "gpu", "dir", "plugin gpu/dir: %s/gpu-dir.so: not a regular file");
}

/* libltdl would look there for a bare name. */
static void the_environment_names_no_plugin(void **state)
{
    char *dir = *state;

    setenv("LTDL_LIBRARY_PATH", TEST_LIBS, 1);
    setenv("LD_LIBRARY_PATH", TEST_LIBS, 1);
    expect_refusal(dir, "", "scale", "minimal",
                   "plugin scale/minimal: scale-minimal.so: not found in %s");
    assert_string_equal(getenv("LD_LIBRARY_PATH"), TEST_LIBS);
    unsetenv("LTDL_LIBRARY_PATH");
    unsetenv("LD_LIBRARY_PATH");
}

/* ---- from the configuration ---------------------------------------------------------------------
 */

static void take_warning(const char *text, void *arg)
{
    cw_buf_addf(arg, "%s\n", text);
}

static void a_required_plugin_that_fails_is_an_error_another_a_warning(void **state)
{
    static const char *const families[] = {"gpu", "notify", NULL};
    struct cw_conf *c = conf_of(DIRS, "plugin \"gpu/fake\" { }\n"
                                      "plugin \"notify/openfails\" { }\n"
                                      "plugin \"health/noops\" { required = true }\n");
    struct cw_conf *strict = conf_of(DIRS, "plugin \"notify/openfails\" { required = true }\n");
    struct cw_plug_registry *r = cw_plug_registry_create(c, "n1");
    cw_autobuf struct cw_buf warnings = {0};
    struct cw_error err = {0};

    (void)state;
    assert_int_equal(cw_plug_load_configured(r, families, take_warning, &warnings, &err), 0);
    assert_string_equal(cw_buf_str(&warnings),
                        "plugin notify/openfails: open: no bell on this machine\n");
    assert_non_null(cw_plug_find(r, "gpu", "fake"));
    cw_plug_registry_destroy(r);
    r = cw_plug_registry_create(strict, "n1");
    assert_int_equal(cw_plug_load_configured(r, families, NULL, NULL, &err), -ENODEV);
    assert_string_equal(err.text, "plugin notify/openfails: open: no bell on this machine");
    cw_plug_registry_destroy(r);
    cw_conf_destroy(c);
    cw_conf_destroy(strict);
}

static void check_reports_a_sound_file_and_refuses_one_that_exports_more(void **state)
{
    cw_autobuf struct cw_buf out = {0};
    struct cw_error err = {0};

    (void)state;
    assert_int_equal(cw_plug_check(TEST_BUILDDIR "/plugins/.libs/gpu-fake.so", &out, &err), 0);
    assert_non_null(strstr(out.data, "plugin: gpu/fake\n"));
    assert_non_null(strstr(out.data, "option: count = 2: how many GPUs"));
    assert_non_null(strstr(out.data, "exports: cw_plugin\n"));
    assert_int_equal(cw_plug_check(TEST_LIBS "/scale-leaky.so", &out, &err), -ENOEXEC);
    assert_non_null(strstr(err.text, " symbols, a plugin exports cw_plugin only"));
    assert_int_equal(cw_plug_check(TEST_LIBS "/acct-wrongabi.so", &out, &err), -ENOEXEC);
    assert_int_equal(cw_plug_check("/no/such/gpu-x.so", &out, &err), -ENOENT);
    assert_int_equal(cw_plug_check("/etc/passwd", &out, &err), -EINVAL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_plugin_of_every_family_loads),
        cmocka_unit_test(fifo_gives_all_jobs_one_priority_and_is_strict),
        cmocka_unit_test(a_member_outside_ops_size_does_not_exist),
        cmocka_unit_test(lines_of_a_plan_carry_the_name_of_their_plugin),
        cmocka_unit_test(options_arrive_in_plain_form_or_by_default),
        cmocka_unit_test(an_unknown_or_bad_option_names_file_line_and_what_is_allowed),
        cmocka_unit_test(every_refusal_says_its_true_reason),
        cmocka_unit_test(an_external_program_is_refused_clearly),
        cmocka_unit_test_setup_teardown(a_file_or_directory_that_others_can_write_is_refused,
                                        enter_dir, leave_dir),
        cmocka_unit_test_setup_teardown(a_trusted_copy_below_a_sticky_directory_loads, enter_dir,
                                        leave_dir),
        cmocka_unit_test_setup_teardown(a_file_that_is_no_object_gives_the_loaders_own_words,
                                        enter_dir, leave_dir),
        cmocka_unit_test_setup_teardown(the_environment_names_no_plugin, enter_dir, leave_dir),
        cmocka_unit_test(a_required_plugin_that_fails_is_an_error_another_a_warning),
        cmocka_unit_test(check_reports_a_sound_file_and_refuses_one_that_exports_more),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
