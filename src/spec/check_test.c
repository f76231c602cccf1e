/* Tests of check.c and fieldrule.c: what the controller refuses even when a client let it through.
 */
#include "spec/check.h"

#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

#include "base/mem.h"
#include "spec/fieldrule.h"

static Cw__Settings settings;
static Cw__JobSpec spec;
static Cw__Payload payload;
static char *argv[] = {(char *)"true"};

static void fresh(void)
{
    cw__settings__init(&settings);
    cw__job_spec__init(&spec);
    cw__payload__init(&payload);
    spec.settings = &settings;
    spec.workdir = (char *)"/w";
    payload.argv = argv;
    payload.n_argv = 1;
}

static void expect(const char *refusal)
{
    struct cw_error err = {0};
    int rc = cw_check_spec(&spec, &payload, &err);
    assert_string_equal(err.text, refusal != NULL ? refusal : "");
    assert_int_equal(rc < 0, refusal != NULL);
    fresh();
}

static void test_texts(void **state)
{
    (void)state;
    fresh();
    expect(NULL);
    spec.name = (char *)"a\tb";
    expect("job name: 'a?b' has a control character");
    spec.partition = (char *)"";
    expect("partition: '' is not a name (1 to 64 letters, digits or ._@+-)");
    spec.workdir = (char *)"w";
    expect("working directory: 'w' is not an absolute path");
    spec.workdir = NULL;
    expect("working directory: '' is not an absolute path");
    spec.stderr_path = (char *)"%";
    expect("error file: '%': % is not known (%j %A %a %b %J %r %n %t with a width up to 10, %s %u "
           "%x %N %%)");
    settings.isolation = (char *)"../x";
    expect("isolation: '../x' is not a name (1 to 64 letters, digits or ._@+-)");
}

static void test_numbers(void **state)
{
    (void)state;
    fresh();
    spec.has_ntasks = 1;
    expect("number of tasks: 0 is not from 1 to 65536");
    spec.has_ntasks = settings.has_cpus_per_task = 1;
    spec.ntasks = settings.cpus_per_task = 65536;
    expect("number of cores: 4294967295 is not from 1 to 1048576");
    settings.has_mem_bytes = 1;
    expect("memory in bytes: 0 is not from 1048576 to 9223372036854775807");
    spec.has_time_limit_s = 1;
    spec.time_limit_s = UINT64_MAX;
    expect(NULL);
    spec.has_time_limit_s = 1;
    expect("time limit in seconds: 0 is not from 1 to 18446744073709551615");
}

static void test_not_carried_out(void **state)
{
    static char *secrets[] = {(char *)"s"};
    (void)state;
    fresh();
    settings.image = (char *)"debian";
    expect("image: 'debian': images are not carried out");
    settings.n_secrets = 1;
    settings.secrets = secrets;
    expect("secret: 's': secrets are not carried out");
    spec.has_shape = 1;
    spec.shape = CW__SHAPE__SHAPE_SANDBOX;
    expect("shape: only batch is carried out");
}

static void test_array(void **state)
{
    Cw__ArraySpec a = CW__ARRAY_SPEC__INIT;
    (void)state;
    fresh();
    spec.array = &a;
    a.indices = (char *)"0-3,7";
    expect(NULL);
    spec.array = &a;
    a.indices = (char *)"3,0-2";
    expect("array: '3,0-2' is not in its shortest form '0-3'");
    spec.array = &a;
    a.indices = (char *)"0-3";
    a.has_throttle = 1;
    expect("array: 0 elements at once would never end");
}

static void test_dependencies(void **state)
{
    Cw__Dependency d = CW__DEPENDENCY__INIT;
    Cw__Dependency *list[] = {&d};
    (void)state;
    fresh();
    for (int i = 0; i < 4; i++) {
        static const char *const want[] = {
            NULL, "dependency: a job id is missing", "dependency: kind 99 is not known",
            "dependency: whether it is satisfied is for the controller to say"};
        spec.n_dependencies = 1;
        spec.dependencies = list;
        d.kind = i == 2 ? (Cw__DependencyKind)99 : CW__DEPENDENCY_KIND__AFTERNOTOK;
        d.has_job_id = i != 1;
        d.job_id = 3;
        d.has_satisfied = i == 3;
        expect(want[i]);
    }
}

static void test_payload(void **state)
{
    static char *no_equals[] = {(char *)"ABC"};
    cw_autofree uint8_t *big = cw_xcalloc(1, CW_CHECK_MAX_PAYLOAD + 1);
    (void)state;
    fresh();
    payload.n_argv = 0;
    expect("nothing to run: there is neither a script nor a command");
    payload.has_script = 1;
    expect("script: it is empty");
    payload.n_env = 1;
    payload.env = no_equals;
    expect("environment: 'ABC' is not NAME=VALUE");
    payload.has_script = 1;
    payload.script.data = big;
    payload.script.len = CW_CHECK_MAX_PAYLOAD + 1;
    expect("script, arguments and environment: 786443 bytes together, at most 786432");
    payload.n_env = CW_CHECK_MAX_ENV + 1;
    payload.env = (char **)cw_xcalloc(payload.n_env, sizeof(char *));
    for (size_t i = 0; i < payload.n_env; i++)
        payload.env[i] = (char *)"";
    char **env = payload.env;
    expect("environment: 65537 variables, at most 65536");
    free(env);
}

static void test_volumes(void **state)
{
    Cw__VolumeUse v = CW__VOLUME_USE__INIT, w = CW__VOLUME_USE__INIT;
    Cw__VolumeUse *list[] = {&v, &w};
    (void)state;
    fresh();
    settings.n_volumes = 2;
    settings.volumes = list;
    v.source = w.source = (char *)"data";
    v.target = w.target = (char *)"/m";
    expect("volume: two have the target /m");
    settings.n_volumes = 1;
    settings.volumes = list;
    v.target = NULL;
    expect("volume: source and target are both needed");
}

static void test_effective(void **state)
{
    (void)state;
    fresh();
    assert_int_equal(cw_spec_ntasks(&spec), 1);
    assert_int_equal(cw_spec_cores(&spec), 1);
    assert_int_equal(cw_spec_gpus(&spec), 0);
    spec.settings = NULL;
    assert_int_equal(cw_spec_cores(&spec), 1);
    fresh();
    spec.has_ntasks = settings.has_cpus_per_task = 1;
    spec.ntasks = 3;
    settings.cpus_per_task = 4;
    assert_int_equal(cw_spec_cores(&spec), 12);
}

static void test_count(void **state)
{
    uint64_t v = 7;
    (void)state;
    assert_int_equal(cw_field_count("18446744073709551615", 0, UINT64_MAX, &v, NULL), 0);
    assert_true(v == UINT64_MAX);
    static const char *const bad[] = {
        "", " 1", "1 ", "+1", "0x1", "18446744073709551616", "99999999999999999999999"};
    for (size_t i = 0; i < CW_ARRAY_LEN(bad); i++)
        assert_int_equal(cw_field_count(bad[i], 0, UINT64_MAX, &v, NULL), -EINVAL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        {"texts are checked field by field", test_texts, NULL, NULL, NULL},
        {"numbers out of range are refused", test_numbers, NULL, NULL, NULL},
        {"what nothing carries out is refused", test_not_carried_out, NULL, NULL, NULL},
        {"an array is canonical and can end", test_array, NULL, NULL, NULL},
        {"a dependency has a known kind and an id", test_dependencies, NULL, NULL, NULL},
        {"a payload runs something and has limits", test_payload, NULL, NULL, NULL},
        {"volumes have both ends and no target twice", test_volumes, NULL, NULL, NULL},
        {"defaults are filled into the effective numbers", test_effective, NULL, NULL, NULL},
        {"a count is digits and nothing else", test_count, NULL, NULL, NULL},
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
