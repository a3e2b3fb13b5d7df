/* MNIST's idx files; see idx.h. One reader serves files and memory, plain and gzipped. */
#include "io/idx.h"
#include "base/memory.h"
#include "io/file.h"
#include "tensor/dtype.h"
#include "tensor/shape.h"
#include <limits.h>
#include <stdbool.h>
#include <string.h>
#include <zlib.h>

enum { EXPANSION_MAX = 1032 }; /* of deflate: at most 258 bytes from 2 bits */

enum { PIECE = 1 << 14 };

typedef struct reader {
    const unsigned char *memory; /* NULL: read from `file` */
    const keel_file *file;
    const char *what;
    uint64_t at, left; /* position in the stored bytes, and how many follow */
    bool gzip;
    z_stream z;
    bool z_ended;
    unsigned char piece[PIECE]; /* input buffer of z */
} reader;

static keel_status pull(reader *r, void *out, size_t n)
{
    if (!r->memory) KEEL_TRY(keel_file_read_at(r->file, r->at, out, n));
    if (r->memory && n) memcpy(out, r->memory + r->at, n);
    r->at += n;
    r->left -= n;
    return KEEL_OK;
}

/* zlib allocates about 48 KiB by its own malloc, which base/memory.h does not count. */
static keel_status reader_open(reader *r)
{
    unsigned char b[2];
    if (r->left < 2) return KEEL_OK;
    KEEL_TRY(pull(r, b, 2));
    r->at -= 2;
    r->left += 2;
    r->gzip = b[0] == 0x1F && b[1] == 0x8B;
    if (r->gzip && inflateInit2(&r->z, 15 + 16) != Z_OK) { /* gzip with the largest window */
        r->gzip = false;
        return keel_fail(KEEL_ENOMEM, "%s: inflate: out of memory", r->what);
    }
    return KEEL_OK;
}

static void reader_close(reader *r)
{
    if (r->gzip) inflateEnd(&r->z);
}

/* Read up to n_bytes; fewer only at the end. */
static keel_status reader_some(reader *r, void *out, size_t n_bytes, size_t *got)
{
    if (!r->gzip) {
        *got = n_bytes < r->left ? n_bytes : (size_t)r->left;
        return pull(r, out, *got);
    }
    *got = 0;
    while (*got < n_bytes && !r->z_ended) {
        const size_t room = n_bytes - *got;
        if (r->z.avail_in == 0) {
            const size_t n = r->left < PIECE ? (size_t)r->left : PIECE;
            KEEL_TRY(pull(r, r->piece, n));
            r->z.next_in = r->piece;
            r->z.avail_in = (uInt)n;
        }
        r->z.next_out = (Bytef *)out + *got;
        r->z.avail_out = room < UINT_MAX ? (uInt)room : UINT_MAX;
        const uInt before = r->z.avail_out;
        const int z = inflate(&r->z, Z_NO_FLUSH);
        *got += before - r->z.avail_out;
        if (z == Z_STREAM_END) {
            r->z_ended = true;
        } else if (z != Z_OK) {
            return keel_fail(KEEL_EFORMAT, "%s: the gzip data is damaged: %s", r->what,
                             r->z.msg ? r->z.msg : "it is cut short");
        }
    }
    return KEEL_OK;
}

static keel_status reader_all(reader *r, void *out, size_t n_bytes)
{
    size_t got = 0;
    KEEL_TRY(reader_some(r, out, n_bytes, &got));
    if (got < n_bytes)
        return keel_fail(KEEL_EFORMAT, "%s: cut short: it announces %zu more bytes and has %zu",
                         r->what, n_bytes, got);
    return KEEL_OK;
}

static keel_status reader_end(reader *r)
{
    char more;
    size_t got = 0;
    KEEL_TRY(reader_some(r, &more, 1, &got));
    if (got > 0 || (r->gzip && r->z.avail_in + r->left > 0))
        return keel_fail(KEEL_EFORMAT, "%s: has more bytes after its elements", r->what);
    return KEEL_OK;
}

typedef struct idx_type {
    size_t size;
    keel_dtype dtype;
} idx_type;

static keel_status read_header(reader *r, unsigned char *code, idx_type *type, keel_shape *shape)
{
    static const idx_type types[] = {
        [8] = { 1, KEEL_UINT8 },  [9] = { 1, KEEL_INT32 },    [11] = { 2, KEEL_INT32 },
        [12] = { 4, KEEL_INT32 }, [13] = { 4, KEEL_FLOAT32 }, [14] = { 8, KEEL_FLOAT64 },
    };
    unsigned char b[4];
    KEEL_TRY(reader_all(r, b, 4));
    if (b[0] != 0 || b[1] != 0)
        return keel_fail(KEEL_EFORMAT, "%s: not an idx file: it does not begin with two zero bytes",
                         r->what);
    if (b[2] >= sizeof types / sizeof *types || types[b[2]].size == 0)
        return keel_fail(KEEL_EUNSUP, "%s: idx type %d; supported are 8, 9, 11, 12, 13 and 14",
                         r->what, b[2]);
    if (b[3] == 0 || b[3] > KEEL_RANK_MAX)
        return keel_fail(KEEL_EUNSUP, "%s: %d dimensions; supported are 1 to %d", r->what, b[3],
                         KEEL_RANK_MAX);
    *code = b[2];
    *type = types[b[2]];
    shape->rank = b[3];
    for (int i = 0; i < shape->rank; i++) {
        KEEL_TRY(reader_all(r, b, 4));
        shape->dim[i] = (int64_t)b[0] << 24 | b[1] << 16 | b[2] << 8 | b[3];
    }
    const keel_status s = keel_shape_check(shape, keel_dtype_size(type->dtype));
    return s < 0 ? keel_fail_within(s, "%s", r->what) : s;
}

/* Decode the big-endian elements at `from` into the tensor. `from` lies at the end of the tensor's
 * own memory, so a widened element never overwrites one that is still to be read. */
static void unpack(keel_tensor *t, unsigned char code, const unsigned char *from, size_t count)
{
    int32_t *i32 = t->data;
    switch (code) {
    case 8:
        break;
    case 9:
        for (size_t i = 0; i < count; i++) i32[i] = (int8_t)from[i];
        break;
    case 11:
        for (size_t i = 0; i < count; i++)
            i32[i] = (int16_t)(uint16_t)(from[2 * i] << 8 | from[2 * i + 1]);
        break;
    case 12:
    case 13: {
        uint32_t *w = t->data;
        for (size_t i = 0; i < count; i++) w[i] = __builtin_bswap32(w[i]);
        break;
    }
    default: {
        uint64_t *w = t->data;
        for (size_t i = 0; i < count; i++) w[i] = __builtin_bswap64(w[i]);
    }
    }
}

static keel_status decode(keel_tensor *out, reader *r)
{
    unsigned char code = 0;
    idx_type type = { 0 };
    keel_shape shape = { 0 };
    keel_tensor t = { 0 };
    const uint64_t n_bytes = r->left;
    keel_status s = reader_open(r);
    if (s >= 0) s = read_header(r, &code, &type, &shape);
    if (s < 0) goto out;
    const size_t count = (size_t)keel_shape_count(&shape), need = count * type.size;
    if (need > n_bytes && (!r->gzip || need / EXPANSION_MAX > n_bytes)) {
        char text[96];
        keel_shape_text(text, &shape);
        s = keel_fail(KEEL_EFORMAT, "%s: cut short: %s needs %zu bytes, the file has %llu", r->what,
                      text, need, (unsigned long long)n_bytes);
        goto out;
    }
    s = keel_tensor_create(&t, type.dtype, &shape);
    if (s < 0) goto out;
    unsigned char *end = (unsigned char *)t.data + count * keel_dtype_size(type.dtype) - need;
    s = reader_all(r, end, need);
    if (s >= 0) s = reader_end(r);
    if (s < 0) goto out;
    unpack(&t, code, end, count);
    *out = t;
    t = (keel_tensor){ 0 };
out:
    keel_tensor_free(&t);
    reader_close(r);
    return s;
}

keel_status keel_idx_decode(keel_tensor *out, const void *data, size_t n_bytes, const char *what)
{
    reader r = { .memory = data, .left = n_bytes, .what = what };
    return decode(out, &r);
}

keel_status keel_idx_read(keel_tensor *out, const char *path)
{
    keel_file f;
    KEEL_TRY(keel_file_open(&f, path));
    reader r = { .file = &f, .left = f.n_bytes, .what = path };
    const keel_status s = decode(out, &r);
    keel_file_close(&f);
    return s;
}
