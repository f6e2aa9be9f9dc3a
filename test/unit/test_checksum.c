/* The checksum of records. */
#include "base/check.h"
#include "base/rng.h"
#include "port/checksum.h"
#include "support/cmocka_all.h"

/* Bit by bit, as it is defined. */
static uint32_t slow_sum(gl_str bytes)
{
    uint32_t sum = UINT32_MAX;
    for (size_t i = 0; i < bytes.n; i++) {
        sum ^= (uint8_t)bytes.p[i];
        for (int bit = 0; bit < 8; bit++) {
            sum = sum >> 1 ^ ((sum & 1) != 0 ? 0x82f63b78 : 0);
        }
    }
    return ~sum;
}

static void it_is_the_crc_everybody_knows(void **state)
{
    (void)state;
    char bytes[32] = {0};
    gl_str all = {bytes, sizeof(bytes)};
    assert_int_equal(gl_checksum_bytes(0, GL_S("")), 0);
    assert_int_equal(gl_checksum_bytes(0, GL_S("123456789")), 0xe3069283);
    assert_int_equal(gl_checksum_bytes(0, all), 0x8a9136aa); /* RFC 3720, B.4 */
    memset(bytes, 0xff, sizeof(bytes));
    assert_int_equal(gl_checksum_bytes(0, all), 0x62a8ab43);
}

static void every_length_and_every_cut_gives_the_same(void **state)
{
    (void)state;
    char bytes[100];
    struct gl_rng rng;
    gl_rng_init(&rng, 1);
    for (size_t i = 0; i < sizeof(bytes); i++) {
        bytes[i] = (char)gl_rng_below(&rng, 256);
    }
    for (size_t n = 0; n < sizeof(bytes) - 3; n++) {
        gl_str whole = {bytes + n % 3, n};
        uint32_t want = slow_sum(whole);
        for (size_t cut = 0; cut <= n; cut++) {
            uint32_t sum = gl_checksum_bytes(0, (gl_str){whole.p, cut});
            assert_int_equal(gl_checksum_bytes(sum, (gl_str){whole.p + cut, n - cut}), want);
        }
    }
}

static void every_field_of_a_record_counts(void **state)
{
    (void)state;
    const struct gl_record r = {.kind = GL_S("job"),
                                .id = GL_S("a"),
                                .rev = 1,
                                .owner = GL_S("n"),
                                .token = 2,
                                .live = true,
                                .value = GL_S("{}")};
    struct gl_record others[9];
    for (size_t i = 0; i < GL_COUNT(others); i++) {
        others[i] = r;
    }
    others[0].kind = GL_S("jo");
    others[1].id = GL_S("b");
    others[2].rev = 1ULL << 63;
    others[3].owner = GL_S("");
    others[4].token = 3;
    others[5].live = false;
    others[6].value = GL_S("{} ");
    others[7].kind = GL_S("joba"), others[7].id = GL_S(""); /* a byte that changes sides */
    others[8].rev = 2, others[8].token = 1;
    for (size_t i = 0; i < GL_COUNT(others); i++) {
        assert_int_not_equal(gl_checksum_record(&others[i]), gl_checksum_record(&r));
    }
    struct gl_record same = r;
    same.damaged = true; /* no part of it */
    assert_int_equal(gl_checksum_record(&same), gl_checksum_record(&r));
    assert_int_not_equal(gl_checksum_record(&r), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(it_is_the_crc_everybody_knows),
        cmocka_unit_test(every_length_and_every_cut_gives_the_same),
        cmocka_unit_test(every_field_of_a_record_counts),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
