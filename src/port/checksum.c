#include "port/checksum.h"

/* CRC-32C (reflected Castagnoli polynomial), eight bytes at a time, because every record written or
 * read is summed. slices[k][b] is the checksum of byte b followed by k zero bytes. Checksums are
 * linear, so the macros compute each entry from the entries of its bits. */
enum { SLICES = 8 };

#define ENTRY(n, a, b, c, d, e, f, g, h)                                        \
    ((n)&1 ? a : 0U) ^ ((n)&2 ? b : 0U) ^ ((n)&4 ? c : 0U) ^ ((n)&8 ? d : 0U) ^ \
        ((n)&16 ? e : 0U) ^ ((n)&32 ? f : 0U) ^ ((n)&64 ? g : 0U) ^ ((n)&128 ? h : 0U)
#define ENTRIES_4(n, ...)                                                            \
    ENTRY(n, __VA_ARGS__), ENTRY((n) + 1, __VA_ARGS__), ENTRY((n) + 2, __VA_ARGS__), \
        ENTRY((n) + 3, __VA_ARGS__)
#define ENTRIES_16(n, ...)                                                                       \
    ENTRIES_4(n, __VA_ARGS__), ENTRIES_4((n) + 4, __VA_ARGS__), ENTRIES_4((n) + 8, __VA_ARGS__), \
        ENTRIES_4((n) + 12, __VA_ARGS__)
#define ENTRIES_64(n, ...)                                         \
    ENTRIES_16(n, __VA_ARGS__), ENTRIES_16((n) + 16, __VA_ARGS__), \
        ENTRIES_16((n) + 32, __VA_ARGS__), ENTRIES_16((n) + 48, __VA_ARGS__)
#define SLICE(...)                                                                             \
    {                                                                                          \
        ENTRIES_64(0, __VA_ARGS__), ENTRIES_64(64, __VA_ARGS__), ENTRIES_64(128, __VA_ARGS__), \
            ENTRIES_64(192, __VA_ARGS__)                                                       \
    }

static const uint32_t slices[SLICES][256] = {
    SLICE(0xf26b8303, 0xe13b70f7, 0xc79a971f, 0x8ad958cf, 0x105ec76f, 0x20bd8ede, 0x417b1dbc,
          0x82f63b78),
    SLICE(0x13a29877, 0x274530ee, 0x4e8a61dc, 0x9d14c3b8, 0x3fc5f181, 0x7f8be302, 0xff17c604,
          0xfbc3faf9),
    SLICE(0xa541927e, 0x4f6f520d, 0x9edea41a, 0x38513ec5, 0x70a27d8a, 0xe144fb14, 0xc76580d9,
          0x8b277743),
    SLICE(0xdd45aab8, 0xbf672381, 0x7b2231f3, 0xf64463e6, 0xe964b13d, 0xd725148b, 0xaba65fe7,
          0x52a0c93f),
    SLICE(0x38116fac, 0x7022df58, 0xe045beb0, 0xc5670b91, 0x8f2261d3, 0x1ba8b557, 0x37516aae,
          0x6ea2d55c),
    SLICE(0xef306b19, 0xdb8ca0c3, 0xb2f53777, 0x6006181f, 0xc00c303e, 0x85f4168d, 0x0e045beb,
          0x1c08b7d6),
    SLICE(0x68032cc8, 0xd0065990, 0xa5e0c5d1, 0x4e2dfd53, 0x9c5bfaa6, 0x3d5b83bd, 0x7ab7077a,
          0xf56e0ef4),
    SLICE(0x493c7d27, 0x9278fa4e, 0x211d826d, 0x423b04da, 0x847609b4, 0x0d006599, 0x1a00cb32,
          0x34019664),
};

static uint32_t read_u32(const char *p)
{
    const uint8_t *b = (const uint8_t *)p;

    return (uint32_t)b[0] | (uint32_t)b[1] << 8 | (uint32_t)b[2] << 16 | (uint32_t)b[3] << 24;
}

uint32_t gl_checksum_bytes(uint32_t sum, gl_str bytes)
{
    const char *p = bytes.p;
    size_t left = bytes.n;

    sum = ~sum;
    for (; left >= SLICES; p += SLICES, left -= SLICES) {
        uint32_t low = sum ^ read_u32(p), high = read_u32(p + 4);

        sum = slices[7][low & 255] ^ slices[6][low >> 8 & 255] ^ slices[5][low >> 16 & 255] ^
              slices[4][low >> 24] ^ slices[3][high & 255] ^ slices[2][high >> 8 & 255] ^
              slices[1][high >> 16 & 255] ^ slices[0][high >> 24];
    }
    for (; left > 0; p++, left--) {
        sum = (sum >> 8) ^ slices[0][(sum ^ (uint8_t)*p) & 255];
    }
    return ~sum;
}

static uint32_t add_number(uint32_t sum, uint64_t number)
{
    char bytes[8];

    for (size_t i = 0; i < sizeof(bytes); i++) {
        bytes[i] = (char)(number >> (8 * i));
    }
    return gl_checksum_bytes(sum, (gl_str){.p = bytes, .n = sizeof(bytes)});
}

/* With its length, so that no byte can move between neighbouring texts unnoticed. */
static uint32_t add_text(uint32_t sum, gl_str text)
{
    return gl_checksum_bytes(add_number(sum, text.n), text);
}

uint32_t gl_checksum_record(const struct gl_record *r)
{
    uint32_t sum = add_text(add_text(0, r->kind), r->id);

    sum = add_text(add_number(sum, r->rev), r->owner);
    sum = add_number(add_number(sum, r->token), r->live ? 1 : 0);
    sum = add_text(sum, r->value);
    /* 0 means "no checksum stored". */
    return sum != 0 ? sum : 1;
}
