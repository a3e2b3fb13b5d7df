/* NumPy's .npy: "\x93NUMPY", version, header length (2 bytes little-endian in version 1, 4 after),
 * a Python dict literal, then the elements.
 *
 * The parser takes the dict that NumPy writes (three keys, in any order), not Python in general.
 * Sizes are multiplied with overflow checks before memory is allocated. */
#include "io/npy.h"
#include "base/memory.h"
#include "base/text.h"
#include "tensor/dtype.h"
#include "tensor/shape.h"
#include <limits.h>
#include <stdio.h>
#include <string.h>

enum {
    HEADER_MAX = 1 << 16, /* bytes; NumPy itself limits untrusted headers to 10,000 */
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

/* 'text' or "text" without escapes, truncated to `size`, which is longer than any valid key. */
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
        if (shape->rank < 2 || !take(c, ')')) /* in Python "(3)" is a number, "(3,)" a tuple */
            return keel_fail(KEEL_EFORMAT, "'shape' is not a tuple");
        break;
    }
    return KEEL_OK;
}

static keel_status take_type(cursor *c, keel_npy_header *h)
{
    char descr[32];
    if (take(c, '[')) return keel_fail(KEEL_EUNSUP, "a structured dtype; save plain arrays");
    if (!take_string(c, descr, sizeof descr))
        return keel_fail(KEEL_EFORMAT, "'descr' is not a string");
    return keel_npy_type_read(h, descr);
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
            KEEL_TRY(take_type(&c, h));
        } else if (has == &has_shape) {
            KEEL_TRY(take_shape(&c, &h->shape));
        } else if (take_word(&c, "True")) {
            h->fortran = true;
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
        h.fortran = h.fortran && h.shape.rank > 1;
        /* A tensor is never smaller than the stored elements. A text takes a pointer, and at most
         * as many bytes of UTF-8 as it has stored, and a zero. */
        s = keel_shape_check(&h.shape, h.is_text ? 2 * h.element_bytes + sizeof(char *)
                                                 : keel_dtype_size(h.dtype));
    }
    if (s < 0) return keel_fail_within(s, "%s", what);
    h.n_bytes = (size_t)keel_shape_count(&h.shape) * h.element_bytes;
    *out = h;
    return KEEL_OK;
}

/* Reads Fortran order: the stride of each dimension in elements, and the current index in all
 * dimensions but the last. */
typedef struct walk {
    size_t stride[KEEL_RANK_MAX], base;
    int64_t at[KEEL_RANK_MAX];
} walk;

static walk walk_begin(const keel_shape *shape)
{
    walk w = { .stride = { 1 } };
    for (int d = 1; d < shape->rank; d++) w.stride[d] = w.stride[d - 1] * (size_t)shape->dim[d - 1];
    return w;
}

static void walk_on(walk *w, const keel_shape *shape)
{
    for (int d = shape->rank - 2; d >= 0; d--) {
        w->base += w->stride[d];
        if (++w->at[d] < shape->dim[d]) return;
        w->base -= w->stride[d] * (size_t)shape->dim[d];
        w->at[d] = 0;
    }
}

keel_status keel_npy_convert_all(const keel_npy_header *h, void *out, const void *stored)
{
    enum { PIECE = 512 };
    const size_t count = (size_t)keel_shape_count(&h->shape), size = h->element_bytes;
    unsigned char piece[PIECE * 8];
    char *to = out;
    if (!h->fortran || count == 0) return keel_npy_convert(h, out, stored, count);
    const int last = h->shape.rank - 1;
    const size_t columns = (size_t)h->shape.dim[last];
    walk w = walk_begin(&h->shape);
    for (size_t row = 0; row < count / columns; row++, walk_on(&w, &h->shape))
        for (size_t c = 0; c < columns;) {
            const size_t n = columns - c < PIECE ? columns - c : PIECE;
            for (size_t i = 0; i < n; i++)
                memcpy(piece + i * size,
                       (const char *)stored + (w.base + (c + i) * w.stride[last]) * size, size);
            KEEL_TRY(keel_npy_convert(h, to, piece, n));
            to += n * keel_dtype_size(h->dtype);
            c += n;
        }
    return KEEL_OK;
}

/* ---- texts ----------------------------------------------------------------------------------- */

static uint32_t character(const keel_npy_header *h, const unsigned char *p)
{
    return h->swapped ? p[3] | (uint32_t)p[2] << 8 | (uint32_t)p[1] << 16 | (uint32_t)p[0] << 24
                      : p[0] | (uint32_t)p[1] << 8 | (uint32_t)p[2] << 16 | (uint32_t)p[3] << 24;
}

/* Append one text as UTF-8 at *to. It fits, since UTF-8 is never longer than the stored form. */
static bool put_text(char **to, const keel_npy_header *h, const unsigned char *from)
{
    char *p = *to;
    size_t n = h->element_bytes / (h->stored == KEEL_NPY_U ? 4 : 1);
    if (h->stored == KEEL_NPY_S) {
        while (n > 0 && !from[n - 1]) n--;
        memcpy(p, from, n);
        p += n;
    } else {
        while (n > 0 && !character(h, from + 4 * (n - 1))) n--;
        for (size_t i = 0; i < n; i++) {
            const uint32_t c = character(h, from + 4 * i);
            if (c > 0x10FFFF) return false;
            if (c < 0x80) {
                *p++ = (char)c;
                continue;
            }
            const int more = c < 0x800 ? 1 : c < 0x10000 ? 2 : 3;
            *p++ = (char)((0xF0 << (3 - more)) | c >> (6 * more));
            for (int k = more - 1; k >= 0; k--) *p++ = (char)(0x80 | (c >> (6 * k) & 0x3F));
        }
    }
    const size_t length = (size_t)(p - *to);
    for (size_t i = 0; i < length;) { /* surrogates and inner zeros are invalid too */
        const int step = keel_utf8_next(*to + i, length - i, NULL);
        if (step == 0 || !(*to)[i]) return false;
        i += (size_t)step;
    }
    *p++ = 0;
    *to = p;
    return true;
}

void keel_npy_texts_free(keel_npy_texts *t)
{
    if (!t) return;
    keel_free(t->text);
    keel_free(t->memory);
    *t = (keel_npy_texts){ 0 };
}

keel_status keel_npy_texts_make(keel_npy_texts *out, const keel_npy_header *h, const void *stored,
                                const char *what)
{
    keel_status s = KEEL_OK;
    keel_npy_texts t = { .shape = h->shape, .count = keel_shape_count(&h->shape) };
    const size_t count = (size_t)t.count,
                 columns = h->fortran ? (size_t)h->shape.dim[h->shape.rank - 1] : 1;
    if (!h->is_text)
        return keel_fail(KEEL_EUNSUP, "%s: an array of numbers; texts are expected", what);
    t.text = keel_calloc(count, sizeof *t.text);
    t.memory = keel_calloc(count, h->element_bytes + 1);
    if (!t.text || !t.memory) {
        s = KEEL_ENOMEM;
        goto out;
    }
    char *to = t.memory;
    walk w = walk_begin(&h->shape);
    for (size_t i = 0; i < count; i++) {
        const size_t column = i % columns;
        const size_t from = h->fortran ? w.base + column * w.stride[h->shape.rank - 1] : i;
        t.text[i] = to;
        if (!put_text(&to, h, (const unsigned char *)stored + from * h->element_bytes)) {
            s = keel_fail(KEEL_EFORMAT, "%s: element %zu is not UTF-8", what, i);
            goto out;
        }
        if (h->fortran && column + 1 == columns) walk_on(&w, &h->shape);
    }
    *out = t;
    t = (keel_npy_texts){ 0 };
out:
    keel_npy_texts_free(&t);
    return s;
}

/* ---- files ----------------------------------------------------------------------------------- */

keel_status keel_npy_check_numbers(const keel_npy_header *h, const char *what)
{
    return h->is_text ? keel_fail(KEEL_EUNSUP, "%s: an array of texts; numbers are expected", what)
                      : KEEL_OK;
}

static keel_status check_length(const keel_npy_header *h, size_t n_bytes, const char *what)
{
    const size_t rest = n_bytes - h->offset;
    if (rest == h->n_bytes) return KEEL_OK;
    char shape[96];
    keel_shape_text(shape, &h->shape);
    return keel_fail(KEEL_EFORMAT, "%s: %zu bytes of elements, but %s of %s needs %zu", what, rest,
                     shape, keel_npy_type_name(h->stored), h->n_bytes);
}

keel_status keel_npy_decode(keel_tensor *out, const void *data, size_t n_bytes, const char *what)
{
    keel_npy_header h;
    keel_tensor t = { 0 };
    KEEL_TRY(keel_npy_header_parse(&h, data, n_bytes, what));
    KEEL_TRY(check_length(&h, n_bytes, what));
    KEEL_TRY(keel_npy_check_numbers(&h, what));
    KEEL_TRY(keel_tensor_create(&t, h.dtype, &h.shape));
    const keel_status s = keel_npy_convert_all(&h, t.data, (const char *)data + h.offset);
    if (s < 0) {
        keel_tensor_free(&t);
        return keel_fail_within(s, "%s", what);
    }
    *out = t;
    return KEEL_OK;
}

keel_status keel_npy_decode_texts(keel_npy_texts *out, const void *data, size_t n_bytes,
                                  const char *what)
{
    keel_npy_header h;
    KEEL_TRY(keel_npy_header_parse(&h, data, n_bytes, what));
    KEEL_TRY(check_length(&h, n_bytes, what));
    return keel_npy_texts_make(out, &h, (const char *)data + h.offset, what);
}

keel_status keel_npy_open(keel_file *f, keel_npy_header *h, const char *path)
{
    unsigned char *begin = NULL;
    KEEL_TRY(keel_file_open(f, path));
    const size_t n = f->n_bytes < HEADER_MAX + 12 ? f->n_bytes : HEADER_MAX + 12;
    keel_status s = KEEL_OK;
    if (!(begin = keel_calloc(n, 1))) s = KEEL_ENOMEM;
    if (s >= 0) s = keel_file_read_at(f, 0, begin, n);
    if (s >= 0) s = keel_npy_header_parse(h, begin, n, path);
    if (s >= 0) s = check_length(h, f->n_bytes, path);
    keel_free(begin);
    if (s < 0) keel_file_close(f);
    return s;
}

static keel_status read_stored(void **out, const keel_file *f, const keel_npy_header *h)
{
    void *stored = keel_calloc(h->n_bytes, 1);
    const keel_status s =
        stored ? keel_file_read_at(f, h->offset, stored, h->n_bytes) : KEEL_ENOMEM;
    if (s < 0)
        keel_free(stored);
    else
        *out = stored;
    return s;
}

keel_status keel_npy_read_texts(keel_npy_texts *out, const char *path)
{
    keel_file f;
    keel_npy_header h;
    void *stored = NULL;
    KEEL_TRY(keel_npy_open(&f, &h, path));
    keel_status s = read_stored(&stored, &f, &h);
    if (s >= 0) s = keel_npy_texts_make(out, &h, stored, path);
    keel_free(stored);
    keel_file_close(&f);
    return s;
}

/* Convert in pieces, so that the stored and the converted array are not both in memory. */
static keel_status read_in_order(keel_tensor *t, const keel_file *f, const keel_npy_header *h)
{
    enum { PIECE = 1 << 14 };
    const size_t count = (size_t)keel_shape_count(&h->shape), size = h->element_bytes;
    if (keel_npy_is_plain(h)) return keel_file_read_at(f, h->offset, t->data, h->n_bytes);
    unsigned char piece[PIECE];
    for (size_t done = 0; done < count;) {
        const size_t n = count - done < PIECE / size ? count - done : PIECE / size;
        KEEL_TRY(keel_file_read_at(f, h->offset + done * size, piece, n * size));
        KEEL_TRY(keel_npy_convert(h, (char *)t->data + done * keel_dtype_size(h->dtype), piece, n));
        done += n;
    }
    return KEEL_OK;
}

keel_status keel_npy_read(keel_tensor *out, const char *path)
{
    keel_file f;
    keel_npy_header h;
    keel_tensor t = { 0 };
    void *stored = NULL;
    KEEL_TRY(keel_npy_open(&f, &h, path));
    keel_status s = keel_npy_check_numbers(&h, path);
    if (s >= 0) s = keel_tensor_create(&t, h.dtype, &h.shape);
    if (s < 0) goto out;
    if (h.fortran) {
        if ((s = read_stored(&stored, &f, &h)) < 0) goto out;
        s = keel_npy_convert_all(&h, t.data, stored);
    } else
        s = read_in_order(&t, &f, &h);
    if (s == KEEL_EDATA) s = keel_fail_within(s, "%s", path);
    if (s < 0) goto out;
    *out = t;
    t = (keel_tensor){ 0 };
out:
    keel_free(stored);
    keel_tensor_free(&t);
    keel_file_close(&f);
    return s;
}

keel_status keel_npy_write_header(keel_new_file *f, keel_dtype dtype, const keel_shape *shape)
{
    static const char *const descr[KEEL_DTYPE_COUNT] = {
        [KEEL_FLOAT32] = "<f4", [KEEL_FLOAT64] = "<f8", [KEEL_UINT8] = "|u1",
        [KEEL_INT32] = "<i4",   [KEEL_INT64] = "<i8",   [KEEL_BOOL] = "|b1",
    };
    if ((unsigned)dtype >= KEEL_DTYPE_COUNT || !descr[dtype])
        return keel_fail(KEEL_EUNSUP, "writing .npy files of %s is not supported",
                         keel_dtype_name(dtype));
    KEEL_TRY(keel_shape_check(shape, keel_dtype_size(dtype)));
    char h[256]; /* 10 bytes, at most 64 of text, and 6 dimensions of at most 21 characters */
    memcpy(h, "\x93NUMPY\1", 8);
    int n = 10 + snprintf(h + 10, sizeof h - 10,
                          "{'descr': '%s', 'fortran_order': False, 'shape': (", descr[dtype]);
    for (int i = 0; i < shape->rank; i++)
        n += snprintf(h + n, sizeof h - (size_t)n, i ? ", %lld" : "%lld", (long long)shape->dim[i]);
    n += snprintf(h + n, sizeof h - (size_t)n, shape->rank == 1 ? ",), }" : "), }");
    while ((n + 1) % 64 != 0) h[n++] = ' '; /* the format aligns the elements to 64 bytes */
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
