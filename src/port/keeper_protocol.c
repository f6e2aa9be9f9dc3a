/* keeper_protocol.c - encoding and decoding, driven by one table of fields.
 *
 * The table maps each tag to a member of struct gl_keeper_msg. Encoding skips zero and empty
 * members; decoding skips unknown tags. Adding a field means adding a row with a new tag. */
#include "port/keeper_protocol.h"

#include "base/check.h"

enum { FIELD_BYTES = 5 /* tag and length before each field */ };

enum field_kind {
    F_U64, /* uint64_t or int64_t */
    F_INT, /* int or an enum */
    F_U32,
    F_BOOL,
    F_STR,
    F_TEXTS, /* const gl_str * and, at `count`, its size_t */
    F_FILES,
    F_FILE_TEXTS, /* texts of the files read before */
};

struct field {
    uint8_t tag;
    uint8_t kind;
    uint16_t at;    /* offset in struct gl_keeper_msg */
    uint16_t count; /* offset of the number of elements */
    uint32_t max;   /* limit: bytes of a text, elements of a list */
};

#define AT(member) (uint16_t) offsetof(struct gl_keeper_msg, member)

/* Tags are permanent: the tag of a removed field is never reused, because old peers and old
 * journals contain it. */
static const struct field fields[] = {
    {1, F_U64, AT(req), 0, 0},
    {2, F_U64, AT(version_min), 0, 0},
    {3, F_U64, AT(version_max), 0, 0},
    {4, F_U64, AT(incarnation), 0, 0},
    {5, F_U64, AT(orphan_grace_ms), 0, 0},
    {6, F_U64, AT(features), 0, 0},
    {7, F_U64, AT(pid), 0, 0},
    {8, F_STR, AT(start.key.context), 0, GL_ID_BYTES_MAX},
    {9, F_STR, AT(start.key.job), 0, GL_ID_BYTES_MAX},
    {10, F_STR, AT(start.key.attempt), 0, GL_ATTEMPT_ID_BYTES_MAX},
    {11, F_U64, AT(start.token), 0, 0},
    {12, F_STR, AT(start.epoch), 0, GL_ID_BYTES_MAX},
    {13, F_U64, AT(start.start_by), 0, 0},
    {14, F_STR, AT(start.driver), 0, GL_ID_BYTES_MAX},
    {15, F_TEXTS, AT(start.argv), AT(start.argv_n), GL_ARGS_MAX},
    {16, F_TEXTS, AT(start.env), AT(start.env_n), GL_ENVS_MAX},
    {17, F_STR, AT(start.cwd), 0, 4095},
    {18, F_FILES, AT(start.files), AT(start.files_n), GL_WORKER_FILES_MAX},
    {19, F_STR, AT(start.input), 0, GL_INPUT_BYTES_MAX},
    {20, F_U64, AT(start.timeout_ms), 0, 0},
    {21, F_U64, AT(start.grace_ms), 0, 0},
    {22, F_U64, AT(start.beacon_ms), 0, 0},
    {23, F_INT, AT(status), 0, 0},
    {24, F_STR, AT(text), 0, GL_WHY_BYTES},
    {25, F_INT, AT(state), 0, 0},
    {26, F_INT, AT(result.end), 0, 0},
    {27, F_INT, AT(result.exit_code), 0, 0},
    {28, F_INT, AT(result.signal), 0, 0},
    {29, F_U64, AT(result.started_at), 0, 0},
    {30, F_U64, AT(result.ended_at), 0, 0},
    {31, F_STR, AT(result.output), 0, GL_OUTPUT_BYTES_MAX},
    {32, F_STR, AT(result.error), 0, GL_WHY_BYTES},
    {33, F_INT, AT(output_source), 0, 0},
    {34, F_STR, AT(boot), 0, 64},
    {35, F_U64, AT(ticks_min), 0, 0},
    {36, F_U64, AT(ticks_max), 0, 0},
    {37, F_U64, AT(mark), 0, 0},
    {38, F_U64, AT(clock_offset_ms), 0, 0},
    {39, F_TEXTS, AT(start.secrets), AT(start.secrets_n), GL_SECRETS_MAX},
    {40, F_FILE_TEXTS, AT(start.files), AT(start.files_n), GL_WORKER_FILES_MAX},
    {41, F_BOOL, AT(start.is_worker), 0, 0},
    {42, F_U32, AT(start.stdout_max), 0, 0},
    {43, F_STR, AT(start.make_folder), 0, 4095},
    {44, F_STR, AT(worker.out), 0, GL_STDOUT_BYTES_MAX + GL_KEEPER_NOTE_BYTES},
    {45, F_STR, AT(worker.err), 0, GL_STDERR_BYTES_MAX},
    {46, F_BOOL, AT(worker.is_cut), 0, 0},
    {47, F_U64, AT(worker.out_bytes), 0, 0},
    {48, F_STR, AT(line), 0, GL_SAID_BYTES_MAX},
    {49, F_STR, AT(start.take_folder), 0, 4095},
    {50, F_BOOL, AT(start.needs_session), 0, 0},
    {51, F_U64, AT(session_until), 0, 0},
};

static_assert(sizeof(enum gl_exec_end) == sizeof(int), "F_INT fits enums");
static_assert(sizeof(size_t) == sizeof(uint64_t), "counts are 64 bits");

/* ---- little-endian numbers ---- */

static void put_u32(char *p, uint32_t v)
{
    for (int i = 0; i < 4; i++) {
        p[i] = (char)(v >> (8 * i));
    }
}

static void put_u64(char *p, uint64_t v)
{
    put_u32(p, (uint32_t)v);
    put_u32(p + 4, (uint32_t)(v >> 32));
}

static uint32_t get_u32(const char *p)
{
    uint32_t v = 0;
    for (int i = 3; i >= 0; i--) {
        v = v << 8 | (uint8_t)p[i];
    }
    return v;
}

static uint64_t get_u64(const char *p)
{
    return (uint64_t)get_u32(p + 4) << 32 | get_u32(p);
}

/* ---- writing ---- */

static void add_u32(struct gl_buf *out, size_t v)
{
    char bytes[4];
    GL_ASSERT(v <= UINT32_MAX);
    put_u32(bytes, (uint32_t)v);
    gl_buf_add(out, bytes, sizeof(bytes));
}

static void add_text(struct gl_buf *out, gl_str s)
{
    add_u32(out, s.n);
    gl_buf_str(out, s);
}

/* The header of a field; its content follows. */
static void add_field(struct gl_buf *out, uint8_t tag, size_t bytes)
{
    gl_buf_char(out, (char)tag);
    add_u32(out, bytes);
}

static void add_number(struct gl_buf *out, uint8_t tag, uint64_t v)
{
    char bytes[8];
    if (v == 0) {
        return;
    }
    put_u64(bytes, v);
    add_field(out, tag, sizeof(bytes));
    gl_buf_add(out, bytes, sizeof(bytes));
}

/* A list is one field, whose length is filled in afterwards. */
static size_t open_list(struct gl_buf *out, uint8_t tag)
{
    add_field(out, tag, 0);
    return out->n;
}

static void close_list(struct gl_buf *out, size_t begin)
{
    put_u32(out->p + begin - 4, (uint32_t)(out->n - begin));
}

static void add_texts(struct gl_buf *out, uint8_t tag, const gl_str *texts, size_t n)
{
    if (n == 0) {
        return;
    }
    size_t begin = open_list(out, tag);
    for (size_t i = 0; i < n; i++) {
        add_text(out, texts[i]);
    }
    close_list(out, begin);
}

static void add_files(struct gl_buf *out, uint8_t tag, const struct gl_exec_file *files, size_t n)
{
    if (n == 0) {
        return;
    }
    size_t begin = open_list(out, tag);
    for (size_t i = 0; i < n; i++) {
        gl_buf_char(out, files[i].executable ? 1 : 0);
        add_text(out, files[i].name);
        add_text(out, files[i].blob);
    }
    close_list(out, begin);
}

/* Files whose content is a blob have no text; only starts of workers have texts at all. */
static void add_file_texts(struct gl_buf *out, uint8_t tag, const struct gl_exec_file *files,
                           size_t n)
{
    size_t bytes = 0;
    for (size_t i = 0; i < n; i++) {
        bytes += files[i].text.n;
    }
    if (bytes == 0) {
        return;
    }
    size_t begin = open_list(out, tag);
    for (size_t i = 0; i < n; i++) {
        add_text(out, files[i].text);
    }
    close_list(out, begin);
}

static void add_member(struct gl_buf *out, const struct field *f, const struct gl_keeper_msg *m)
{
    const char *at = (const char *)m + f->at;
    const char *count = (const char *)m + f->count;
    switch ((enum field_kind)f->kind) {
    case F_U64:
        add_number(out, f->tag, *(const uint64_t *)(const void *)at);
        break;
    case F_INT:
        add_number(out, f->tag, (uint64_t)(int64_t) * (const int *)(const void *)at);
        break;
    case F_U32:
        add_number(out, f->tag, *(const uint32_t *)(const void *)at);
        break;
    case F_BOOL:
        add_number(out, f->tag, *(const bool *)(const void *)at ? 1 : 0);
        break;
    case F_STR: {
        gl_str s = *(const gl_str *)(const void *)at;
        if (s.n > 0) {
            add_field(out, f->tag, s.n);
            gl_buf_str(out, s);
        }
        break;
    }
    case F_TEXTS:
        add_texts(out, f->tag, *(const gl_str *const *)(const void *)at,
                  *(const size_t *)(const void *)count);
        break;
    case F_FILES:
        add_files(out, f->tag, *(const struct gl_exec_file *const *)(const void *)at,
                  *(const size_t *)(const void *)count);
        break;
    case F_FILE_TEXTS:
        add_file_texts(out, f->tag, *(const struct gl_exec_file *const *)(const void *)at,
                       *(const size_t *)(const void *)count);
        break;
    }
}

static void add_message(const struct gl_keeper_msg *m, struct gl_buf *out)
{
    gl_buf_char(out, (char)m->type);
    for (size_t i = 0; i < GL_COUNT(fields); i++) {
        add_member(out, &fields[i], m);
    }
}

void gl_keeper_encode(const struct gl_keeper_msg *m, struct gl_buf *out)
{
    add_u32(out, 0);
    size_t begin = out->n;
    add_message(m, out);
    GL_ASSERT(out->n - begin <= GL_FRAME_BYTES_MAX);
    close_list(out, begin);
}

/* The header needs the checksum of what follows, so its space is filled in last. */
void gl_keeper_add_record(const struct gl_keeper_msg *m, struct gl_buf *out)
{
    static const char space[GL_KEEPER_RECORD_BYTES] = {0};
    gl_buf_add(out, space, sizeof(space));
    size_t begin = out->n;
    add_message(m, out);
    size_t bytes = out->n - begin;
    GL_ASSERT(bytes <= GL_FRAME_BYTES_MAX);
    char *head = out->p + begin - GL_KEEPER_RECORD_BYTES;
    put_u32(head, (uint32_t)bytes);
    put_u64(head + 4, gl_str_hash((gl_str){.p = out->p + begin, .n = bytes}));
}

/* ---- reading ---- */

static bool take_bytes(gl_str *rest, size_t n, gl_str *ret)
{
    if (rest->n < n) {
        return false;
    }
    *ret = (gl_str){.p = rest->p, .n = n};
    rest->p += n;
    rest->n -= n;
    return true;
}

static bool take_text(gl_str *rest, gl_str *ret)
{
    gl_str head;
    return take_bytes(rest, 4, &head) && take_bytes(rest, get_u32(head.p), ret);
}

static bool take_file(gl_str *rest, struct gl_exec_file *ret)
{
    gl_str flag;
    if (!take_bytes(rest, 1, &flag) || !take_text(rest, &ret->name) ||
        !take_text(rest, &ret->blob)) {
        return false;
    }
    ret->executable = flag.p[0] != 0;
    return true;
}

/* The number of elements of a list. Counted before allocating, so that memory is taken once and
 * only for what was really sent. */
static int count_elements(gl_str list, bool files, size_t max, size_t *ret, struct gl_why *why)
{
    struct gl_exec_file file;
    gl_str text;
    size_t n = 0;
    while (list.n > 0) {
        if (files ? !take_file(&list, &file) : !take_text(&list, &text)) {
            return gl_why(why, GL_E_INVALID, "a list ends inside an element");
        }
        n++;
    }
    if (n > max) {
        return gl_why(why, GL_E_LIMIT, "a list has %zu elements (at most %zu)", n, max);
    }
    *ret = n;
    return 0;
}

static int read_texts(gl_str list, const struct field *f, struct gl_keeper_msg *m,
                      struct gl_arena *a, struct gl_why *why)
{
    size_t n = 0;
    int r = count_elements(list, false, f->max, &n, why);
    if (r < 0) {
        return r;
    }
    gl_str *texts = GL_NEW_ARRAY(a, gl_str, n);
    for (size_t i = 0; i < n; i++) {
        (void)take_text(&list, &texts[i]); /* cannot fail: counted above */
    }
    *(const gl_str **)(void *)((char *)m + f->at) = texts;
    *(size_t *)(void *)((char *)m + f->count) = n;
    return 0;
}

static int read_files(gl_str list, const struct field *f, struct gl_keeper_msg *m,
                      struct gl_arena *a, struct gl_why *why)
{
    size_t n = 0;
    int r = count_elements(list, true, f->max, &n, why);
    if (r < 0) {
        return r;
    }
    struct gl_exec_file *files = GL_NEW_ARRAY(a, struct gl_exec_file, n);
    for (size_t i = 0; i < n; i++) {
        (void)take_file(&list, &files[i]); /* cannot fail: counted above */
    }
    *(const struct gl_exec_file **)(void *)((char *)m + f->at) = files;
    *(size_t *)(void *)((char *)m + f->count) = n;
    return 0;
}

/* The texts of the files in the preceding list, one each. */
static int read_file_texts(gl_str list, const struct field *f, struct gl_keeper_msg *m,
                           struct gl_arena *a, struct gl_why *why)
{
    size_t n = 0;
    int r = count_elements(list, false, f->max, &n, why);
    if (r < 0) {
        return r;
    }
    if (n != m->start.files_n) {
        return gl_why(why, GL_E_INVALID, "%zu texts for %zu files", n, m->start.files_n);
    }
    struct gl_exec_file *files = GL_NEW_ARRAY(a, struct gl_exec_file, n);
    for (size_t i = 0; i < n; i++) {
        files[i] = m->start.files[i];
        (void)take_text(&list, &files[i].text); /* cannot fail: counted above */
    }
    m->start.files = files;
    return 0;
}

static int read_number(gl_str value, const struct field *f, struct gl_keeper_msg *m,
                       struct gl_why *why)
{
    if (value.n != 8) {
        return gl_why(why, GL_E_INVALID, "field %u: a number has %zu bytes", f->tag, value.n);
    }
    uint64_t v = get_u64(value.p);
    char *at = (char *)m + f->at;
    if (f->kind == F_U64) {
        *(uint64_t *)(void *)at = v;
        return 0;
    }
    if (f->kind == F_BOOL) {
        *(bool *)(void *)at = v != 0;
        return 0;
    }
    if (f->kind == F_U32 && v <= UINT32_MAX) {
        *(uint32_t *)(void *)at = (uint32_t)v;
        return 0;
    }
    if (f->kind == F_U32 || (int64_t)v < INT32_MIN || (int64_t)v > INT32_MAX) {
        return gl_why(why, GL_E_INVALID, "field %u: a number is out of range", f->tag);
    }
    *(int *)(void *)at = (int)(int64_t)v;
    return 0;
}

static int read_member(gl_str value, const struct field *f, struct gl_keeper_msg *m,
                       struct gl_arena *a, struct gl_why *why)
{
    switch ((enum field_kind)f->kind) {
    case F_U64:
    case F_INT:
    case F_U32:
    case F_BOOL:
        return read_number(value, f, m, why);
    case F_STR:
        if (value.n > f->max) {
            return gl_why(why, GL_E_LIMIT, "field %u: %zu bytes (at most %u)", f->tag, value.n,
                          f->max);
        }
        *(gl_str *)(void *)((char *)m + f->at) = value;
        return 0;
    case F_TEXTS:
        return read_texts(value, f, m, a, why);
    case F_FILES:
        return read_files(value, f, m, a, why);
    case F_FILE_TEXTS:
        return read_file_texts(value, f, m, a, why);
    }
    GL_UNREACHABLE();
}

static const struct field *find_field(uint8_t tag)
{
    for (size_t i = 0; i < GL_COUNT(fields); i++) {
        if (fields[i].tag == tag) {
            return &fields[i];
        }
    }
    return NULL;
}

static bool is_type(uint8_t byte)
{
    switch (byte) {
#define X(name, value) case value:
        GL_KEEPER_TYPES(X)
#undef X
        return true;
    default:
        return false;
    }
}

/* Enum values must be known to this release: they index tables. */
static int check_enums(const struct gl_keeper_msg *m, struct gl_why *why)
{
    if (m->state < 0 || m->state >= GL_EXEC_STATE_COUNT) {
        return gl_why(why, GL_E_INVALID, "unknown state %d", m->state);
    }
    if ((int)m->result.end < 0 || (int)m->result.end >= GL_EXEC_END_COUNT) {
        return gl_why(why, GL_E_INVALID, "unknown end %d", (int)m->result.end);
    }
    if (m->output_source < 0 || m->output_source > GL_KEEPER_FROM_WORKER) {
        return gl_why(why, GL_E_INVALID, "unknown output source %d", m->output_source);
    }
    if (m->status > 0) {
        return gl_why(why, GL_E_INVALID, "unknown status %d", m->status);
    }
    return 0;
}

int gl_keeper_decode(struct gl_keeper_msg *ret, gl_str message, struct gl_arena *a,
                     struct gl_why *reterr_why)
{
    gl_str head, value;
    if (!take_bytes(&message, 1, &head) || !is_type((uint8_t)head.p[0])) {
        return gl_why(reterr_why, GL_E_INVALID, "unknown message type");
    }
    struct gl_keeper_msg m = {.type = (enum gl_keeper_type)(uint8_t)head.p[0]};
    while (message.n > 0) {
        if (!take_bytes(&message, FIELD_BYTES, &head) ||
            !take_bytes(&message, get_u32(head.p + 1), &value)) {
            return gl_why(reterr_why, GL_E_INVALID, "a message ends inside a field");
        }
        const struct field *f = find_field((uint8_t)head.p[0]);
        int r = f ? read_member(value, f, &m, a, reterr_why) : 0;
        if (r < 0) {
            return r;
        }
    }
    int r = check_enums(&m, reterr_why);
    if (r < 0) {
        return r;
    }
    *ret = m;
    return 0;
}

int gl_keeper_frame(gl_str bytes, gl_str *ret_message, size_t *ret_used, struct gl_why *reterr_why)
{
    *ret_used = 0;
    if (bytes.n < GL_KEEPER_PREFIX_BYTES) {
        return 0;
    }
    size_t n = get_u32(bytes.p);
    if (n == 0 || n > GL_FRAME_BYTES_MAX) {
        return gl_why(reterr_why, GL_E_INVALID, "a frame has %zu bytes (1 to %d are allowed)", n,
                      GL_FRAME_BYTES_MAX);
    }
    if (bytes.n < GL_KEEPER_PREFIX_BYTES + n) {
        return 0;
    }
    *ret_message = (gl_str){.p = bytes.p + GL_KEEPER_PREFIX_BYTES, .n = n};
    *ret_used = GL_KEEPER_PREFIX_BYTES + n;
    return 0;
}

size_t gl_keeper_record_bytes(gl_str bytes)
{
    if (bytes.n < GL_KEEPER_RECORD_BYTES) {
        return 0;
    }
    size_t n = get_u32(bytes.p);
    bool fits = n > 0 && n <= GL_FRAME_BYTES_MAX && n <= bytes.n - GL_KEEPER_RECORD_BYTES;
    return fits ? GL_KEEPER_RECORD_BYTES + n : 0;
}

int gl_keeper_record(gl_str bytes, gl_str *ret_message, size_t *ret_used)
{
    size_t used = gl_keeper_record_bytes(bytes);
    if (used == 0) {
        return GL_E_DAMAGED;
    }
    gl_str message = {.p = bytes.p + GL_KEEPER_RECORD_BYTES, .n = used - GL_KEEPER_RECORD_BYTES};
    if (get_u64(bytes.p + 4) != gl_str_hash(message)) {
        return GL_E_DAMAGED;
    }
    *ret_message = message;
    *ret_used = used;
    return 0;
}

uint64_t gl_keeper_agree(uint64_t min_a, uint64_t max_a, uint64_t min_b, uint64_t max_b)
{
    uint64_t newest = max_a < max_b ? max_a : max_b;
    return newest >= min_a && newest >= min_b ? newest : 0;
}

void gl_keeper_lower(struct gl_keeper_msg *m, uint64_t version)
{
    if (version < GL_KEEPER_VERSION_WORKERS && m->output_source == GL_KEEPER_FROM_WORKER) {
        m->output_source = GL_KEEPER_NO_OUTPUT;
        m->worker = (struct gl_keeper_worker){0};
    }
}
