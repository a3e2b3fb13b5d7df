/* Files read by place, and gzipped ones in memory; see input.h. */
#include "io/input.h"
#include "base/memory.h"
#include "base/text.h"
#include <string.h>
#include <zlib.h>

enum {
    PIECE = 1 << 16,  /* bytes read at once */
    FIRST = 1 << 20,  /* bytes inflated before the first look */
    EXPANSION = 200,  /* times; deflate reaches 1032 on zeros, examples mostly 2 to 20 */
    SMALL = 16 << 20, /* bytes that may be inflated from anything */
};

keel_status keel_input_open(keel_input *out, const char *path, bool keep_open)
{
    *out = (keel_input){ .file = { .fd = -1 } };
    if (!(out->path = keel_strdup(path))) return KEEL_ENOMEM;
    KEEL_TRY(keel_file_open(&out->file, out->path));
    out->n_bytes = out->file.n_bytes;
    if (!keep_open) keel_file_close(&out->file);
    return KEEL_OK;
}

void keel_input_close(keel_input *in)
{
    if (!in->path) return;
    keel_file_close(&in->file);
    keel_free(in->memory);
    keel_free(in->path);
    *in = (keel_input){ .file = { .fd = -1 } };
}

keel_status keel_input_read(const keel_input *in, uint64_t at, size_t n, void *buffer,
                            const unsigned char **piece)
{
    *piece = buffer;
    if (at > in->n_bytes || n > in->n_bytes - at)
        return keel_fail(KEEL_EIO, "%s: a read beyond its end", in->path);
    if (in->memory) {
        *piece = in->memory + at;
        return KEEL_OK;
    }
    if (in->file.fd >= 0) return keel_file_read_at(&in->file, at, buffer, n);
    keel_file f;
    KEEL_TRY(keel_file_open(&f, in->path));
    const keel_status s = keel_file_read_at(&f, at, buffer, n);
    keel_file_close(&f);
    return s;
}

bool keel_input_is_deflated(const unsigned char *b, size_t n)
{
    if (n >= 3 && b[0] == 0x1f && b[1] == 0x8b && b[2] == 8) return true;
    return n >= 2 && b[0] == 0x78 && (b[0] << 8 | b[1]) % 31 == 0;
}

typedef struct inflater {
    keel_input *in;
    z_stream z;
    uint64_t read; /* bytes of the file */
    size_t room;   /* of in->memory */
    unsigned char piece[PIECE];
} inflater;

static keel_status check_room(const inflater *f, int64_t left)
{
    char most[32];
    const keel_input *in = f->in;
    if (in->n_bytes > (uint64_t)left)
        return keel_fail(
            KEEL_EDATA,
            "%s: the gzipped files have more than %s, which are held in memory; unpack "
            "them with gunzip, then they are read from disk",
            in->path, keel_bytes_text(most, KEEL_INFLATED_MAX));
    if (in->n_bytes > SMALL && in->n_bytes / EXPANSION > in->file.n_bytes)
        return keel_fail(KEEL_EFORMAT,
                         "%s: %zu bytes become more than %d times as many, which no data does; if "
                         "it is right, unpack it with gunzip",
                         in->path, in->file.n_bytes, EXPANSION);
    return KEEL_OK;
}

static keel_status grow(inflater *f)
{
    if (f->in->n_bytes < f->room) return KEEL_OK;
    const size_t room = f->room ? 2 * f->room : FIRST;
    unsigned char *memory = keel_grow(f->in->memory, room, 1);
    if (!memory) return KEEL_ENOMEM;
    f->in->memory = memory;
    f->room = room;
    return KEEL_OK;
}

static keel_status refill(inflater *f)
{
    const uint64_t left = f->in->file.n_bytes - f->read;
    const size_t n = left < PIECE ? (size_t)left : PIECE;
    if (f->z.avail_in) return KEEL_OK;
    if (!n)
        return keel_fail(KEEL_EFORMAT, "%s: the gzip data is cut short behind byte %lld unpacked",
                         f->in->path, (long long)f->in->n_bytes);
    KEEL_TRY(keel_file_read_at(&f->in->file, f->read, f->piece, n));
    f->read += n;
    f->z.next_in = f->piece;
    f->z.avail_in = (uInt)n;
    return KEEL_OK;
}

/* A gzip file may have several members, one behind the other. */
static keel_status inflate_all(inflater *f, int64_t left, keel_input_look look, void *arg)
{
    keel_input *in = f->in;
    for (;;) {
        KEEL_TRY(refill(f));
        KEEL_TRY(grow(f));
        const size_t free_bytes = f->room - (size_t)in->n_bytes;
        const uInt most = free_bytes < FIRST ? (uInt)free_bytes : FIRST;
        f->z.next_out = in->memory + in->n_bytes;
        f->z.avail_out = most;
        const int z = inflate(&f->z, Z_NO_FLUSH);
        in->n_bytes += most - f->z.avail_out;
        if (z != Z_OK && z != Z_STREAM_END && z != Z_BUF_ERROR)
            return keel_fail(z == Z_MEM_ERROR ? KEEL_ENOMEM : KEEL_EFORMAT,
                             "%s: the gzip data is damaged behind byte %lld unpacked: %s", in->path,
                             (long long)in->n_bytes, f->z.msg ? f->z.msg : "it cannot be inflated");
        KEEL_TRY(check_room(f, left));
        const bool whole = z == Z_STREAM_END && !f->z.avail_in && f->read == in->file.n_bytes;
        if (whole || !f->z.avail_out) KEEL_TRY(look(arg, in->memory, in->n_bytes, whole));
        if (whole) return KEEL_OK;
        if (z == Z_STREAM_END && inflateReset(&f->z) != Z_OK)
            return keel_fail(KEEL_ENOMEM, "%s: inflate: out of memory", in->path);
    }
}

keel_status keel_input_inflate(keel_input *out, const char *path, int64_t *room,
                               keel_input_look look, void *arg)
{
    KEEL_TRY(keel_input_open(out, path, true));
    out->n_bytes = 0;
    inflater *f = keel_calloc(1, sizeof *f);
    if (!f) return KEEL_ENOMEM;
    f->in = out;
    /* zlib allocates about 48 KiB by its own malloc, which base/memory.h does not count. */
    keel_status s = inflateInit2(&f->z, 15 + 32) == Z_OK /* gzip or zlib, with any window */
                        ? KEEL_OK
                        : keel_fail(KEEL_ENOMEM, "%s: inflate: out of memory", path);
    if (s >= 0) {
        s = inflate_all(f, *room, look, arg);
        inflateEnd(&f->z);
    }
    if (s >= 0) {
        *room -= (int64_t)out->n_bytes;
        unsigned char *least = keel_grow(out->memory, (size_t)out->n_bytes + 1, 1);
        if (least) out->memory = least;
    }
    keel_free(f);
    keel_file_close(&out->file);
    return s;
}
