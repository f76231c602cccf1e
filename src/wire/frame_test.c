/* Frames as bytes, and the request table. */
#include "config.h"

#include "wire/frame.h"
#include "wire/kinds.h"

#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

static struct cw_frame sample(void)
{
    static const uint8_t cred[3] = "abc", body[20] = "0123456789012345678";
    struct cw_frame f = {.type = CW_FRAME_DATA,
                         .kind = 0x1234,
                         .epoch = 1,
                         .peer_epoch = UINT64_MAX,
                         .seq = 3,
                         .ack = 4,
                         .cred = cred,
                         .cred_len = 3,
                         .body = body,
                         .body_len = 20};

    memset(f.request_id, 5, sizeof(f.request_id));
    memset(f.channel_key, 6, sizeof(f.channel_key));
    memset(f.nonce, 7, sizeof(f.nonce));
    return f;
}

static void packed_frame_unpacks_to_the_same(void **state)
{
    struct cw_frame f = sample(), g;
    cw_autobuf struct cw_buf b = {0}, aad = {0};

    (void)state;
    cw_frame_pack(&f, &b);
    assert_int_equal(b.len, CW_FRAME_HEADER + 23);
    assert_int_equal(cw_frame_unpack(b.data, b.len, &g, NULL), 0);
    assert_int_equal(g.type, f.type);
    assert_int_equal(g.kind, f.kind);
    assert_true(g.epoch == f.epoch && g.peer_epoch == f.peer_epoch && g.seq == f.seq &&
                g.ack == f.ack);
    assert_memory_equal(g.request_id, f.request_id, 16);
    assert_memory_equal(g.channel_key, f.channel_key, 32);
    assert_memory_equal(g.nonce, f.nonce, 24);
    assert_int_equal(g.cred_len, 3);
    assert_memory_equal(g.cred, "abc", 3);
    assert_int_equal(g.body_len, 20);
    assert_memory_equal(g.body, f.body, 20);
    cw_frame_pack_aad(&f, &aad);
    assert_int_equal(aad.len, CW_FRAME_HEADER + 3);
    assert_memory_equal(aad.data, b.data, aad.len);
}

/* doc/PROTOCOL.md draws this layout; it never changes within a version. */
static void layout_is_the_documented_one(void **state)
{
    struct cw_frame f = sample();
    cw_autobuf struct cw_buf b = {0};
    const uint8_t *p;

    (void)state;
    cw_frame_pack(&f, &b);
    p = (const uint8_t *)b.data;
    assert_memory_equal(p, "CW\1\6\x34\x12\3\0\1\0\0\0\0\0\0\0\xff", 17);
    assert_int_equal(p[24], 3);
    assert_int_equal(p[32], 4);
    assert_int_equal(p[40], 5);
    assert_int_equal(p[56], 6);
    assert_int_equal(p[88], 7);
    assert_memory_equal(p + 112, "\x14\0\0\0\0\0\0\0abc0", 12);
}

static void every_shorter_or_longer_frame_is_refused(void **state)
{
    struct cw_frame f = sample(), g;
    cw_autobuf struct cw_buf b = {0};

    (void)state;
    cw_frame_pack(&f, &b);
    for (size_t n = 0; n < b.len; n++)
        assert_true(cw_frame_unpack(b.data, n, &g, NULL) < 0);
    cw_buf_add(&b, "x", 1);
    assert_true(cw_frame_unpack(b.data, b.len, &g, NULL) < 0);
}

static void bad_headers_are_refused_with_the_reason(void **state)
{
    static const struct {
        size_t at;
        uint8_t value;
        int result;
        const char *text;
    } cases[] = {
        {0, 'X', -EBADMSG, "not one of ours"},
        {1, 'X', -EBADMSG, "not one of ours"},
        {2, 2, -EPROTO, "version 2"},
        {3, 0, -EBADMSG, "unknown type 0"},
        {3, 11, -EBADMSG, "unknown type 11"},
        {7, 5, -EBADMSG, "credential"},
        {115, 1, -EBADMSG, "body"},
        {112, 9, -EBADMSG, "the header says"},
        {119, 1, -EBADMSG, "reserved"},
    };
    struct cw_frame f = sample(), g;
    struct cw_error err;

    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        cw_autobuf struct cw_buf b = {0};

        cw_frame_pack(&f, &b);
        b.data[cases[i].at] = (char)cases[i].value;
        assert_int_equal(cw_frame_unpack(b.data, b.len, &g, &err), cases[i].result);
        assert_non_null(strstr(err.text, cases[i].text));
    }
}

static void table_finds_every_request_and_no_other(void **state)
{
    (void)state;
    assert_string_equal(cw_kind_find(CW_KIND_NODE_SET)->name, "node_set");
    assert_int_equal(cw_kind_find(CW_KIND_NODE_SET)->role, CW_ROLE_ADMIN);
    assert_string_equal(cw_kind_find(CW_KIND_LOG)->request->short_name, "LogRequest");
    assert_string_equal(cw_kind_find(CW_KIND_LOG)->reply->short_name, "LogReply");
    assert_null(cw_kind_find(0));
    assert_null(cw_kind_find(63));
    assert_null(cw_kind_find(65536 + CW_KIND_LOG));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(packed_frame_unpacks_to_the_same),
        cmocka_unit_test(layout_is_the_documented_one),
        cmocka_unit_test(every_shorter_or_longer_frame_is_refused),
        cmocka_unit_test(bad_headers_are_refused_with_the_reason),
        cmocka_unit_test(table_finds_every_request_and_no_other),
    };

    return cmocka_run_group_tests_name("frame", tests, NULL, NULL);
}
