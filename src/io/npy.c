/* NumPy's .npy: "\x93NUMPY", version, header length (2 bytes little-endian in version 1, 4 after),
 * a Python dict literal, then the elements.
 *
 * The dict is read by a parser of exactly what NumPy writes (three keys, in any order), not of
 * Python. Sizes are multiplied with overflow checks before anything is allocated. */
#include "io/npy.h"
#include "base/memory.h"
#include "tensor/dtype.h"
#include "tensor/shape.h"
#include <limits.h>
#include <stdio.h>
#include <string.h>

_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "elements are copied as they are stored");

enum { HEADER_MAX = 1 << 16 }; /* NumPy's own limit for headers it trusts is 10,000 */

static const struct {
    char descr[4]; /* without the byte order */
    unsigned char size;
    keel_dtype dtype;
} types[KEEL_NPY_TYPE_COUNT] = {
    [KEEL_NPY_F4] = { "f4", 4, KEEL_FLOAT32 }, [KEEL_NPY_F8] = { "f8", 8, KEEL_FLOAT64 },
    [KEEL_NPY_U1] = { "u1", 1, KEEL_UINT8 },   [KEEL_NPY_I4] = { "i4", 4, KEEL_INT32 },
    [KEEL_NPY_I8] = { "i8", 8, KEEL_INT64 },   [KEEL_NPY_B1] = { "b1", 1, KEEL_UINT8 },
    [KEEL_NPY_I1] = { "i1", 1, KEEL_INT32 },   [KEEL_NPY_I2] = { "i2", 2, KEEL_INT32 },
    [KEEL_NPY_U2] = { "u2", 2, KEEL_INT32 },
};

keel_status keel_npy_header_size(size_t *out, const void *begin, size_t n_bytes)
{
    const unsigned char *b = begin;
    if (n_bytes < 10 || memcmp(b, "\x93NUMPY", 6) != 0)
        return keel_fail(KEEL_EFORMAT, "not a .npy: it does not begin with \\x93NUMPY");
    if (b[6] < 1 || b[6] > 3)
        return keel_fail(KEEL_EUNSUP, ".npy version %d.%d, only 1 to 3 are known", b[6], b[7]);
    if (b[6] == 1) {
        *out = 10u + b[8] + ((size_t)b[9] << 8);
        return KEEL_OK;
    }
    if (n_bytes < 12) return keel_fail(KEEL_EFORMAT, "the .npy is cut short in its header");
    const size_t length = b[8] | (size_t)b[9] << 8 | (size_t)b[10] << 16 | (size_t)b[11] << 24;
    if (length > HEADER_MAX)
        return keel_fail(KEEL_EFORMAT, "the .npy has a header of %zu bytes, more than %d", length,
                         HEADER_MAX);
    *out = 12 + length;
    return KEEL_OK;
}

typedef struct cursor {
    const char *at, *end;
} cursor;

static void skip_space(cursor *c)
{
    while (c->at < c->end && (*c->at == ' ' || *c->at == '\n' || *c->at == '\t')) c->at++;
}

static bool take(cursor *c, char wanted)
{
    skip_space(c);
    if (c->at == c->end || *c->at != wanted) return false;
    c->at++;
    return true;
}

static bool take_word(cursor *c, const char *word)
{
    const size_t n = strlen(word);
    skip_space(c);
    if ((size_t)(c->end - c->at) < n || memcmp(c->at, word, n) != 0) return false;
    c->at += n;
    return true;
}

/* 'text' or "text" without escapes; cut to `size`, which is more than any text that is known. */
static bool take_string(cursor *c, char *out, size_t size)
{
    skip_space(c);
    if (c->at == c->end || (*c->at != '\'' && *c->at != '"')) return false;
    const char quote = *c->at++;
    size_t n = 0;
    for (; c->at < c->end && *c->at != quote; c->at++) {
        if ((unsigned char)*c->at < 32 || *c->at == '\\') return false;
        if (n + 1 < size) out[n++] = *c->at;
    }
    out[n] = 0;
    return take(c, quote);
}

static bool take_number(cursor *c, int64_t *out)
{
    int64_t n = 0;
    skip_space(c);
    const char *begin = c->at;
    for (; c->at < c->end && *c->at >= '0' && *c->at <= '9'; c->at++)
        if (__builtin_mul_overflow(n, 10, &n) || __builtin_add_overflow(n, *c->at - '0', &n))
            return false;
    *out = n;
    return c->at > begin;
}

static keel_status take_shape(cursor *c, keel_shape *shape)
{
    if (!take(c, '(')) return keel_fail(KEEL_EFORMAT, "'shape' is not a tuple");
    while (!take(c, ')')) {
        int64_t n = 0;
        if (!take_number(c, &n)) return keel_fail(KEEL_EFORMAT, "'shape' has no valid number");
        if (shape->rank == KEEL_RANK_MAX)
            return keel_fail(KEEL_EUNSUP, "more than %d dimensions", KEEL_RANK_MAX);
        shape->dim[shape->rank++] = n;
        if (take(c, ',')) continue;
        if (shape->rank < 2 || !take(c, ')')) /* "(3)" is a number, "(3,)" a tuple */
            return keel_fail(KEEL_EFORMAT, "'shape' is not a tuple");
        break;
    }
    return KEEL_OK;
}

static keel_status take_type(cursor *c, keel_npy_type *out)
{
    char descr[32];
    if (take(c, '[')) return keel_fail(KEEL_EUNSUP, "a structured dtype; save plain arrays");
    if (!take_string(c, descr, sizeof descr))
        return keel_fail(KEEL_EFORMAT, "'descr' is not a string");
    for (int i = 0; i < KEEL_NPY_TYPE_COUNT; i++) {
        if (strcmp(descr + (descr[0] != 0), types[i].descr) != 0) continue;
        if (descr[0] != '<' && !(descr[0] == '|' && types[i].size == 1)) continue;
        *out = (keel_npy_type)i;
        return KEEL_OK;
    }
    return keel_fail(KEEL_EUNSUP,
                     "dtype '%s'; known are little-endian f4 f8 i1 u1 i2 u2 i4 i8 and bool", descr);
}

static keel_status parse_dict(keel_npy_header *h, cursor c)
{
    bool has_descr = false, has_order = false, has_shape = false;
    if (!take(&c, '{')) return keel_fail(KEEL_EFORMAT, "the header is not a dict");
    while (!take(&c, '}')) {
        char key[32];
        if (!take_string(&c, key, sizeof key) || !take(&c, ':'))
            return keel_fail(KEEL_EFORMAT, "the header is not a dict");
        bool *has = !strcmp(key, "descr")           ? &has_descr
                    : !strcmp(key, "fortran_order") ? &has_order
                    : !strcmp(key, "shape")         ? &has_shape
                                                    : NULL;
        if (!has || *has)
            return keel_fail(KEEL_EFORMAT, "the header has a wrong or second key '%s'", key);
        *has = true;
        if (has == &has_descr) {
            KEEL_TRY(take_type(&c, &h->stored));
        } else if (has == &has_shape) {
            KEEL_TRY(take_shape(&c, &h->shape));
        } else if (take_word(&c, "True")) {
            return keel_fail(KEEL_EUNSUP, "Fortran order; save numpy.ascontiguousarray(a)");
        } else if (!take_word(&c, "False")) {
            return keel_fail(KEEL_EFORMAT, "'fortran_order' is neither True nor False");
        }
        if (take(&c, ',')) continue;
        if (!take(&c, '}')) return keel_fail(KEEL_EFORMAT, "the header is not a dict");
        break;
    }
    skip_space(&c);
    if (c.at != c.end) return keel_fail(KEEL_EFORMAT, "the header has more after its dict");
    if (!has_descr || !has_order || !has_shape)
        return keel_fail(KEEL_EFORMAT, "the header lacks 'descr', 'fortran_order' or 'shape'");
    return KEEL_OK;
}

keel_status keel_npy_header_parse(keel_npy_header *out, const void *begin, size_t n_bytes,
                                  const char *what)
{
    keel_npy_header h = { 0 };
    const char *text = begin;
    keel_status s = keel_npy_header_size(&h.offset, begin, n_bytes);
    if (s >= 0 && h.offset > n_bytes)
        s = keel_fail(KEEL_EFORMAT, "the .npy is cut short in its header");
    if (s >= 0) s = parse_dict(&h, (cursor){ text + (text[6] == 1 ? 10 : 12), text + h.offset });
    if (s >= 0) {
        h.dtype = types[h.stored].dtype;
        s = keel_shape_check(&h.shape, keel_dtype_size(h.dtype)); /* never less than stored */
    }
    if (s < 0) return keel_fail_within(s, "%s", what);
    h.n_bytes = (size_t)keel_shape_count(&h.shape) * types[h.stored].size;
    *out = h;
    return KEEL_OK;
}

void keel_npy_convert(const keel_npy_header *h, void *out, const void *stored, size_t count)
{
    const unsigned char *from = stored;
    int32_t *wide = out;
    unsigned char *byte = out;
    if (count == 0) return;
    switch (h->stored) {
    case KEEL_NPY_B1:
        for (size_t i = 0; i < count; i++) byte[i] = from[i] != 0;
        break;
    case KEEL_NPY_I1:
        for (size_t i = 0; i < count; i++) wide[i] = (int8_t)from[i];
        break;
    case KEEL_NPY_I2:
        for (size_t i = 0; i < count; i++)
            wide[i] = (int16_t)(uint16_t)(from[2 * i] | from[2 * i + 1] << 8);
        break;
    case KEEL_NPY_U2:
        for (size_t i = 0; i < count; i++) wide[i] = from[2 * i] | from[2 * i + 1] << 8;
        break;
    default:
        memcpy(out, stored, count * types[h->stored].size);
    }
}

static keel_status check_length(const keel_npy_header *h, size_t n_bytes, const char *what)
{
    const size_t rest = n_bytes - h->offset;
    if (rest == h->n_bytes) return KEEL_OK;
    char shape[96];
    keel_shape_text(shape, &h->shape);
    return keel_fail(KEEL_EFORMAT, "%s: %zu bytes of elements, but %s of %s needs %zu", what, rest,
                     shape, types[h->stored].descr, h->n_bytes);
}

keel_status keel_npy_decode(keel_tensor *out, const void *data, size_t n_bytes, const char *what)
{
    keel_npy_header h;
    keel_tensor t = { 0 };
    KEEL_TRY(keel_npy_header_parse(&h, data, n_bytes, what));
    KEEL_TRY(check_length(&h, n_bytes, what));
    KEEL_TRY(keel_tensor_create(&t, h.dtype, &h.shape));
    keel_npy_convert(&h, t.data, (const char *)data + h.offset, (size_t)keel_shape_count(&h.shape));
    *out = t;
    return KEEL_OK;
}

keel_status keel_npy_read(keel_tensor *out, const char *path)
{
    keel_map map = { 0 };
    KEEL_TRY(keel_map_open(&map, path));
    const keel_status s = keel_npy_decode(out, map.data, map.n_bytes, path);
    keel_map_close(&map);
    return s;
}

keel_status keel_npy_map_open(keel_npy_map *out, const char *path)
{
    keel_npy_map m = { 0 };
    KEEL_TRY(keel_map_open(&m.map, path));
    keel_status s = keel_npy_header_parse(&m.header, m.map.data, m.map.n_bytes, path);
    if (s >= 0) s = check_length(&m.header, m.map.n_bytes, path);
    if (s < 0) {
        keel_map_close(&m.map);
        return s;
    }
    if (m.header.n_bytes > 0) m.data = m.map.data + m.header.offset;
    *out = m;
    return KEEL_OK;
}

void keel_npy_map_close(keel_npy_map *m)
{
    if (!m) return;
    keel_map_close(&m->map);
    *m = (keel_npy_map){ 0 };
}

keel_status keel_npy_map_rows(const keel_npy_map *m, int64_t first, int64_t n, void *out)
{
    const keel_shape *shape = &m->header.shape;
    if (shape->rank == 0) return keel_fail(KEEL_EARG, "the array is one number and has no rows");
    const int64_t rows = shape->dim[0];
    if (first < 0 || n < 0 || first > rows || n > rows - first)
        return keel_fail(KEEL_EARG, "%lld rows from row %lld on, of an array with %lld rows",
                         (long long)n, (long long)first, (long long)rows);
    if (n == 0 || m->header.n_bytes == 0) return KEEL_OK;
    const size_t row_bytes = m->header.n_bytes / (size_t)rows;
    keel_npy_convert(&m->header, out, m->data + (size_t)first * row_bytes,
                     (size_t)n * row_bytes / types[m->header.stored].size);
    return KEEL_OK;
}

keel_status keel_npy_write_header(keel_new_file *f, keel_dtype dtype, const keel_shape *shape)
{
    static const char *const descr[KEEL_DTYPE_COUNT] = {
        [KEEL_FLOAT32] = "<f4", [KEEL_FLOAT64] = "<f8", [KEEL_UINT8] = "|u1",
        [KEEL_INT32] = "<i4",   [KEEL_INT64] = "<i8",
    };
    KEEL_TRY(keel_shape_check(shape, keel_dtype_size(dtype)));
    char h[256]; /* 10, at most 64 of words, and 6 dims of at most 21 */
    memcpy(h, "\x93NUMPY\1", 8);
    int n = 10 + snprintf(h + 10, sizeof h - 10,
                          "{'descr': '%s', 'fortran_order': False, 'shape': (", descr[dtype]);
    for (int i = 0; i < shape->rank; i++)
        n += snprintf(h + n, sizeof h - (size_t)n, i ? ", %lld" : "%lld", (long long)shape->dim[i]);
    n += snprintf(h + n, sizeof h - (size_t)n, shape->rank == 1 ? ",), }" : "), }");
    while ((n + 1) % 64 != 0) h[n++] = ' '; /* the elements begin at a multiple of 64 */
    h[n++] = '\n';
    h[8] = (char)(n - 10);
    h[9] = 0;
    return keel_new_file_write(f, h, (size_t)n);
}

keel_status keel_npy_write(const char *path, const keel_tensor *t)
{
    keel_new_file *f = NULL;
    KEEL_TRY(keel_new_file_create(&f, path));
    keel_status s = keel_npy_write_header(f, t->dtype, &t->shape);
    if (s >= 0)
        s = keel_new_file_write(f, t->data,
                                (size_t)keel_shape_count(&t->shape) * keel_dtype_size(t->dtype));
    if (s >= 0) return keel_new_file_commit(f);
    keel_new_file_abort(f);
    return s;
}
