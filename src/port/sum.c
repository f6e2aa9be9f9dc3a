#include "port/sum.h"

/* The reflected Castagnoli polynomial. Half-byte table: records are small, and 64 bytes of table
 * stay in the cache. */
enum { POLYNOMIAL_NIBBLES = 16 };
static const uint32_t table[POLYNOMIAL_NIBBLES] = {
    0x00000000, 0x105ec76f, 0x20bd8ede, 0x30e349b1, 0x417b1dbc, 0x5125dad3, 0x61c69362, 0x7198540d,
    0x82f63b78, 0x92a8fc17, 0xa24bb5a6, 0xb21572c9, 0xc38d26c4, 0xd3d3e1ab, 0xe330a81a, 0xf36e6f75,
};

uint32_t gl_sum_bytes(uint32_t sum, gl_str bytes)
{
    sum = ~sum;
    for (size_t i = 0; i < bytes.n; i++) {
        sum ^= (uint8_t)bytes.p[i];
        sum = (sum >> 4) ^ table[sum & 15];
        sum = (sum >> 4) ^ table[sum & 15];
    }
    return ~sum;
}

static uint32_t add_number(uint32_t sum, uint64_t number)
{
    char bytes[8];

    for (size_t i = 0; i < sizeof(bytes); i++) {
        bytes[i] = (char)(number >> (8 * i));
    }
    return gl_sum_bytes(sum, (gl_str){.p = bytes, .n = sizeof(bytes)});
}

/* With its length, so that no byte can change sides. */
static uint32_t add_text(uint32_t sum, gl_str text)
{
    return gl_sum_bytes(add_number(sum, text.n), text);
}

uint32_t gl_sum_record(const struct gl_record *r)
{
    uint32_t sum = add_text(add_text(0, r->kind), r->id);

    sum = add_text(add_number(sum, r->rev), r->owner);
    sum = add_number(add_number(sum, r->token), r->live ? 1 : 0);
    sum = add_text(sum, r->value);
    return sum != 0 ? sum : 1;
}
