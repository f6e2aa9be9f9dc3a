#include "support/cmocka_all.h"

#include <string.h>

#include "base/sha256.h"

static void digests_are_those_of_the_standard(void **state)
{
    (void)state;
    char hex[GL_SHA256_HEX];
    assert_string_equal(gl_sha256_hex((gl_str){0}, hex).p,
                        "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
    assert_string_equal(gl_sha256_hex(GL_S("abc"), hex).p,
                        "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
    assert_string_equal(
        gl_sha256_hex(GL_S("abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq"), hex).p,
        "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1");
    struct gl_sha256 s;
    uint8_t digest[GL_SHA256_BYTES];
    static char as[1000];
    memset(as, 'a', sizeof(as));
    gl_sha256_init(&s);
    for (int i = 0; i < 1000; i++) {
        gl_sha256_add(&s, as, sizeof(as));
    }
    gl_sha256_done(&s, digest);
    assert_int_equal(digest[0], 0xcd); /* a million times "a": cdc76e5c... */
    assert_int_equal(digest[1], 0xc7);
    assert_int_equal(digest[31], 0xd0);
}

static void a_digest_does_not_depend_on_how_the_bytes_come(void **state)
{
    (void)state;
    char text[300], hex[GL_SHA256_HEX];
    for (size_t i = 0; i < sizeof(text); i++) {
        text[i] = (char)i;
    }
    for (size_t n = 0; n <= sizeof(text); n += 7) {
        gl_str whole = gl_sha256_hex((gl_str){text, n}, hex);
        for (size_t cut = 0; cut <= n; cut += 13) {
            struct gl_sha256 s;
            uint8_t digest[GL_SHA256_BYTES];
            gl_sha256_init(&s);
            gl_sha256_add(&s, text, cut);
            gl_sha256_add(&s, text + cut, n - cut);
            gl_sha256_done(&s, digest);
            for (size_t i = 0; i < GL_SHA256_BYTES; i++) {
                assert_int_equal("0123456789abcdef"[digest[i] >> 4], whole.p[2 * i]);
                assert_int_equal("0123456789abcdef"[digest[i] & 15], whole.p[2 * i + 1]);
            }
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(digests_are_those_of_the_standard),
        cmocka_unit_test(a_digest_does_not_depend_on_how_the_bytes_come),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
