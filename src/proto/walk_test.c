/* Tests of walk.c and walkjson.c. */
#include "proto/walk.h"

#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

#include "proto/job.pb-c.h"
#include "proto/wire.pb-c.h"

static struct cw_arena *arena;

static int setup(void **state)
{
    (void)state;
    arena = cw_arena_create();
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    cw_arena_destroy(arena);
    return 0;
}

static Cw__AttemptRecord *sample(void)
{
    static Cw__Grant grant;
    static Cw__Usage usage;
    static Cw__AttemptRecord a;
    cw__grant__init(&grant);
    grant.node = (char *)"n1";
    grant.cores = (char *)"0-1";
    grant.cpus = (char *)"0-3";
    grant.mem_bytes = 1 << 20;
    cw__usage__init(&usage);
    usage.has_cpu_user_ns = 1;
    usage.cpu_user_ns = 1500000000;
    cw__attempt_record__init(&a);
    a.id = 7;
    a.attempt = 1;
    a.job_id = 7;
    a.state = CW__STATE__TIMEOUT;
    a.grant = &grant;
    a.usage = &usage;
    a.has_start_ns = 1;
    a.start_ns = 1764536872123456789;
    a.has_cause = 1;
    a.cause = CW__CAUSE__CAUSE_TIME_LIMIT;
    a.message = (char *)"bad \xff byte";
    return &a;
}

static void expect_json(const ProtobufCMessage *m, const char *want)
{
    json_t *j = cw_walk_json(m);
    char *text = json_dumps(j, JSON_COMPACT | JSON_SORT_KEYS);
    assert_string_equal(text, want);
    free(text);
    json_decref(j);
}

static void test_json(void **state)
{
    (void)state;
    expect_json(&sample()->base,
                "{\"attempt\":1,\"cause\":\"time_limit\",\"grant\":{\"cores\":\"0-1\",\"cpus\":\"0-3\","
                "\"mem_bytes\":1048576,\"node\":\"n1\"},\"id\":7,\"job_id\":7,"
                "\"message\":\"bad \xef\xbf\xbd byte\",\"start_ns\":\"2025-11-30T21:07:52.123Z\","
                "\"state\":\"timeout\",\"usage\":{\"cpu_user_ns\":1500000000}}");
}

static void test_json_numbers(void **state)
{
    Cw__JobSpec s = CW__JOB_SPEC__INIT;
    (void)state;
    s.has_time_limit_s = 1;
    s.time_limit_s = UINT64_MAX;
    s.has_shape = 1;
    s.shape = CW__SHAPE__SHAPE_BATCH;
    s.has_hold = 1;
    expect_json(&s.base, "{\"hold\":false,\"shape\":\"batch\",\"time_limit_s\":\"unlimited\"}");
    s.time_limit_s = UINT64_MAX - 1;
    s.shape = (Cw__Shape)99;
    expect_json(&s.base,
                "{\"hold\":false,\"shape\":99,\"time_limit_s\":\"18446744073709551614\"}");
}

static void test_json_base64(void **state)
{
    static const struct { const char *bytes, *text; } rows[] = {
        {"f", "Zg=="}, {"fo", "Zm8="}, {"foo", "Zm9v"}, {"foob", "Zm9vYg=="}};
    (void)state;
    for (size_t i = 0; i < CW_ARRAY_LEN(rows); i++) {
        cw_autofree char *want = cw_xasprintf("{\"script\":\"%s\"}", rows[i].text);
        Cw__Payload p = CW__PAYLOAD__INIT;
        p.has_script = 1;
        p.script.data = (uint8_t *)rows[i].bytes;
        p.script.len = strlen(rows[i].bytes);
        expect_json(&p.base, want);
    }
}

static void test_round_trip(void **state)
{
    Cw__AttemptRecord *a = sample();
    (void)state;
    ProtobufCMessage *copy = cw_walk_copy(&a->base, arena);
    assert_true(cw_walk_equal(&a->base, copy));
    ((Cw__AttemptRecord *)copy)->attempt = 2;
    assert_false(cw_walk_equal(&a->base, copy));
    assert_false(cw_walk_equal(&a->base, &a->grant->base));
}

static void test_unknown_fields_kept(void **state)
{
    static const uint8_t bytes[] = {0xa2, 0x06, 2, 'h', 'i'}; /* field 100 */
    cw_autobuf struct cw_buf out = {0};
    ProtobufCMessage *m;
    (void)state;
    assert_int_equal(cw_walk_unpack(&cw__job_spec__descriptor, bytes, sizeof bytes, arena, &m, NULL),
                     0);
    cw_walk_pack(m, &out);
    assert_int_equal(out.len, sizeof bytes);
    assert_memory_equal(out.data, bytes, sizeof bytes);
}

static void expect_refused(const ProtobufCMessageDescriptor *d, const void *p, size_t n, int code,
                           const char *text)
{
    ProtobufCMessage *m = NULL;
    struct cw_error err = {0};
    assert_int_equal(cw_walk_unpack(d, p, n, arena, &m, &err), code);
    assert_string_equal(err.text, text);
    assert_null(m);
}

static void test_refusals(void **state)
{
    (void)state;
    expect_refused(&cw__task_key__descriptor, NULL, 0, -EBADMSG,
                   "TaskKey: a required field is missing or has the wrong type");
    expect_refused(&cw__job_spec__descriptor, "\x12\x03" "a\0b", 5, -EBADMSG,
                   "JobSpec: field name has a NUL byte");
    expect_refused(&cw__job_spec__descriptor, "\x12\x30" "a", 3, -EBADMSG,
                   "JobSpec: a field is longer than its message");
    expect_refused(&cw__job_spec__descriptor, "\x13", 1, -EBADMSG, "JobSpec: unknown wire type 3");
    expect_refused(&cw__job_spec__descriptor, "\x02\x00", 2, -EBADMSG, "JobSpec: bad field tag");
    expect_refused(&cw__job_spec__descriptor, "\x28\xff", 2, -EBADMSG,
                   "JobSpec: a number does not end");
}

static void test_limits(void **state)
{
    cw_autofree uint8_t *big = cw_xcalloc(1, CW_WALK_MAX_BYTES + 1);
    (void)state;
    expect_refused(&cw__payload__descriptor, big, CW_WALK_MAX_BYTES + 1, -EMSGSIZE,
                   "Payload: 1048577 bytes, at most 1048576");
    for (size_t i = 0; i < 2 * (CW_WALK_MAX_ITEMS + 1); i += 2)
        big[i] = 0x12; /* argv: "" */
    expect_refused(&cw__payload__descriptor, big, 2 * (CW_WALK_MAX_ITEMS + 1), -EMSGSIZE,
                   "Payload: more than 65536 list items");
    ProtobufCMessage *m;
    assert_int_equal(cw_walk_unpack_stored(&cw__payload__descriptor, big, 2 * (CW_WALK_MAX_ITEMS + 1),
                                           arena, &m, NULL), 0);
    assert_int_equal(((Cw__Payload *)m)->n_argv, CW_WALK_MAX_ITEMS + 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        {"JSON has lower-case enums, RFC 3339 times and no absent fields", test_json, setup, teardown, NULL},
        {"JSON prints numbers beyond 63 bits as text", test_json_numbers, setup, teardown, NULL},
        {"JSON prints bytes as base64", test_json_base64, setup, teardown, NULL},
        {"a copy equals its original until it is changed", test_round_trip, setup, teardown, NULL},
        {"unknown fields survive decoding and packing", test_unknown_fields_kept, setup, teardown, NULL},
        {"malformed bytes are refused with a sentence", test_refusals, setup, teardown, NULL},
        {"sizes beyond the limits are refused, but for our own rows", test_limits, setup, teardown, NULL},
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
