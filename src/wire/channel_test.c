/* Key agreement, sealing, key files. */
#include "config.h"

#include "wire/channel.h"

#include "base/file.h"
#include "base/mem.h"

#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

struct pair {
    struct cw_keypair key;
    struct cw_channel a, b;
};

static struct pair make_pair(void)
{
    struct pair p;

    cw_keypair_make(&p.key);
    assert_int_equal(cw_channel_initiate(p.key.pub, &p.a), 0);
    assert_int_equal(cw_channel_respond(&p.key, p.a.eph_pub, &p.b), 0);
    return p;
}

static void seal_text(const struct cw_channel *c, const char *text, struct cw_buf *out)
{
    struct cw_frame f = {
        .type = CW_FRAME_REQUEST, .cred = (const uint8_t *)"cred", .cred_len = 4, .seq = 9};

    cw_channel_seal(c, &f, text, strlen(text), out);
}

static int open_bytes(const struct cw_channel *c, const struct cw_buf *b, struct cw_buf *plain)
{
    struct cw_frame f;

    return cw_frame_unpack(b->data, b->len, &f, NULL) < 0 ? -EBADMSG
                                                          : cw_channel_open(c, &f, plain);
}

static void sealed_text_opens_at_the_other_end(void **state)
{
    struct pair p = make_pair();
    cw_autobuf struct cw_buf b = {0}, c = {0}, plain = {0};

    (void)state;
    seal_text(&p.a, "to the responder", &b);
    assert_int_equal(open_bytes(&p.b, &b, &plain), 0);
    assert_string_equal(cw_buf_str(&plain), "to the responder");
    assert_null(memmem(b.data, b.len, "responder", 9));
    seal_text(&p.b, "", &c);
    cw_buf_clear(&plain);
    assert_int_equal(open_bytes(&p.a, &c, &plain), 0);
    assert_int_equal(plain.len, 0);
}

static void frame_does_not_open_at_the_end_that_sealed_it(void **state)
{
    struct pair p = make_pair();
    cw_autobuf struct cw_buf b = {0}, plain = {0};

    (void)state;
    seal_text(&p.a, "x", &b);
    assert_int_equal(open_bytes(&p.a, &b, &plain), -EBADMSG);
    assert_int_equal(plain.len, 0);
}

static void any_changed_byte_keeps_the_frame_shut(void **state)
{
    struct pair p = make_pair();
    cw_autobuf struct cw_buf b = {0}, plain = {0};

    (void)state;
    seal_text(&p.a, "secret", &b);
    for (size_t i = 0; i < b.len; i++) {
        b.data[i] = (char)(b.data[i] ^ 1);
        assert_int_equal(open_bytes(&p.b, &b, &plain), -EBADMSG);
        b.data[i] = (char)(b.data[i] ^ 1);
    }
    assert_int_equal(open_bytes(&p.b, &b, &plain), 0);
}

static void other_responder_cannot_open(void **state)
{
    struct pair p = make_pair();
    struct cw_keypair other;
    struct cw_channel c;
    cw_autobuf struct cw_buf b = {0}, plain = {0};

    (void)state;
    cw_keypair_make(&other);
    assert_int_equal(cw_channel_respond(&other, p.a.eph_pub, &c), 0);
    seal_text(&p.a, "x", &b);
    assert_int_equal(open_bytes(&c, &b, &plain), -EBADMSG);
}

static void point_of_low_order_is_refused(void **state)
{
    struct cw_keypair key;
    struct cw_channel c;
    uint8_t zero[32] = {0}, one[32] = {1};

    (void)state;
    cw_keypair_make(&key);
    assert_int_equal(cw_channel_respond(&key, zero, &c), -EBADMSG);
    assert_int_equal(cw_channel_respond(&key, one, &c), -EBADMSG);
    assert_int_equal(cw_channel_initiate(zero, &c), -EBADMSG);
}

/* ---- files ---- */
struct files {
    char dir[64], sec[80], pub[80];
};

static int setup(void **state)
{
    struct files *f = cw_xcalloc(1, sizeof(*f));

    (void)snprintf(f->dir, sizeof(f->dir), "/tmp/cw-channel-XXXXXX");
    assert_non_null(mkdtemp(f->dir));
    (void)snprintf(f->sec, sizeof(f->sec), "%s/sec", f->dir);
    (void)snprintf(f->pub, sizeof(f->pub), "%s/pub", f->dir);
    *state = f;
    return 0;
}

static int teardown(void **state)
{
    struct files *f = *state;

    (void)unlink(f->sec);
    (void)unlink(f->pub);
    (void)rmdir(f->dir);
    free(f);
    return 0;
}

static void missing_key_is_made_once_and_then_stays(void **state)
{
    struct files *f = *state;
    struct cw_keypair a, b;
    uint8_t pub[32];
    struct stat st;

    assert_int_equal(cw_keypair_load(f->sec, NULL, false, &a, NULL), -ENOENT);
    assert_int_equal(cw_keypair_load(f->sec, f->pub, true, &a, NULL), 0);
    assert_int_equal(cw_keypair_load(f->sec, f->pub, true, &b, NULL), 0);
    assert_memory_equal(&a, &b, sizeof(a));
    assert_int_equal(cw_public_key_load(f->pub, pub, NULL), 0);
    assert_memory_equal(pub, a.pub, 32);
    assert_int_equal(stat(f->sec, &st), 0);
    assert_int_equal(st.st_mode & 0777, 0600);
    assert_int_equal(stat(f->pub, &st), 0);
    assert_int_equal(st.st_mode & 0777, 0644);
    assert_int_equal(st.st_size, 65);
}

static void secret_that_others_can_read_is_refused(void **state)
{
    struct files *f = *state;
    struct cw_keypair a;
    struct cw_error err;

    assert_int_equal(cw_keypair_load(f->sec, NULL, true, &a, NULL), 0);
    assert_int_equal(chmod(f->sec, 0640), 0);
    assert_int_equal(cw_keypair_load(f->sec, NULL, true, &a, &err), -EPERM);
    assert_non_null(strstr(err.text, "lets others read it"));
    assert_int_equal(chmod(f->sec, 0600), 0);
    assert_int_equal(truncate(f->sec, 31), 0);
    assert_int_equal(cw_keypair_load(f->sec, NULL, true, &a, &err), -EINVAL);
    assert_non_null(strstr(err.text, "31 bytes instead of 32"));
}

static void public_key_that_is_not_hex_is_refused(void **state)
{
    static const char *const texts[] = {
        "", "abc\n", "zz", "00000000000000000000000000000000000000000000000000000000000000zz\n",
        "000000000000000000000000000000000000000000000000000000000000000000\n"};
    struct files *f = *state;
    uint8_t pub[32];

    assert_int_equal(cw_public_key_load(f->pub, pub, NULL), -ENOENT);
    for (size_t i = 0; i < CW_ARRAY_LEN(texts); i++) {
        assert_int_equal(cw_file_write_atomic(f->pub, texts[i], strlen(texts[i]), 0644, NULL), 0);
        assert_int_equal(cw_public_key_load(f->pub, pub, NULL), -EINVAL);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(sealed_text_opens_at_the_other_end),
        cmocka_unit_test(frame_does_not_open_at_the_end_that_sealed_it),
        cmocka_unit_test(any_changed_byte_keeps_the_frame_shut),
        cmocka_unit_test(other_responder_cannot_open),
        cmocka_unit_test(point_of_low_order_is_refused),
        cmocka_unit_test_setup_teardown(missing_key_is_made_once_and_then_stays, setup, teardown),
        cmocka_unit_test_setup_teardown(secret_that_others_can_read_is_refused, setup, teardown),
        cmocka_unit_test_setup_teardown(public_key_that_is_not_hex_is_refused, setup, teardown),
    };

    return cmocka_run_group_tests_name("channel", tests, NULL, NULL);
}
