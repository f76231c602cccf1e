/* Tests of crc32c.c: the vectors of RFC 3720 appendix B.4. */
#include "config.h"

#include "base/crc32c.h"

#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

static void the_published_vectors_match(void **state)
{
    unsigned char b[32];

    (void)state;
    memset(b, 0, sizeof(b));
    assert_int_equal(cw_crc32c(0, b, 32), 0x8a9136aa);
    memset(b, 0xff, sizeof(b));
    assert_int_equal(cw_crc32c(0, b, 32), 0x62a8ab43);
    for (unsigned char i = 0; i < 32; i++)
        b[i] = i;
    assert_int_equal(cw_crc32c(0, b, 32), 0x46dd794e);
    for (unsigned char i = 0; i < 32; i++)
        b[i] = (unsigned char)(31 - i);
    assert_int_equal(cw_crc32c(0, b, 32), 0x113fdb5c);
    assert_int_equal(cw_crc32c(0, "123456789", 9), 0xe3069283);
    assert_int_equal(cw_crc32c_portable(0, "123456789", 9), 0xe3069283);
    assert_int_equal(cw_crc32c(0, NULL, 0), 0);
}

static void both_ways_agree_at_every_length_and_offset(void **state)
{
    unsigned char b[300];

    (void)state;
    for (size_t i = 0; i < sizeof(b); i++)
        b[i] = (unsigned char)(i * 167 + 13);
    for (size_t offset = 0; offset < 9; offset++) {
        for (size_t n = 0; n + offset <= sizeof(b); n++)
            assert_int_equal(cw_crc32c(0x1234, b + offset, n),
                             cw_crc32c_portable(0x1234, b + offset, n));
    }
}

static void a_sum_may_be_made_in_pieces(void **state)
{
    const char text[] = "the quick brown fox jumps over the lazy dog";

    (void)state;
    uint32_t whole = cw_crc32c(0, text, sizeof(text));
    for (size_t cut = 0; cut <= sizeof(text); cut++)
        assert_int_equal(cw_crc32c(cw_crc32c(0, text, cut), text + cut, sizeof(text) - cut), whole);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_published_vectors_match),
        cmocka_unit_test(both_ways_agree_at_every_length_and_offset),
        cmocka_unit_test(a_sum_may_be_made_in_pieces),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
