/* Files of text; see text_file.h. One source of bytes serves lines and pieces. */
#include "io/text_file.h"
#include "base/memory.h"
#include <limits.h>
#include <stdbool.h>
#include <string.h>
#include <zlib.h>

enum { PIECE = 1 << 16, EXPANSION_MAX = 200, FREE_BYTES = 16 << 20 };

typedef struct source {
    keel_file file;
    const char *memory; /* NULL: read from `file` */
    uint64_t at;        /* position in the file */
    bool gzip, ended;
    z_stream z;
    uint64_t inflated;
    unsigned char *piece; /* [PIECE]: input of z */
} source;

static void source_close(source *s)
{
    if (s->gzip) inflateEnd(&s->z); /* zlib allocates about 48 KiB by its own malloc */
    s->gzip = false;
    keel_free(s->piece);
    s->piece = NULL;
    keel_file_close(&s->file);
}

static keel_status source_open(source *s, const char *path)
{
    unsigned char b[2] = { 0 };
    *s = (source){ .file.fd = -1 };
    KEEL_TRY(keel_file_open(&s->file, path));
    keel_status r = KEEL_OK;
    if (s->file.n_bytes >= 2) r = keel_file_read_at(&s->file, 0, b, 2);
    if (r >= 0 && b[0] == 0x1F && b[1] == 0x8B) {
        if (!(s->piece = keel_calloc(PIECE, 1))) r = KEEL_ENOMEM;
        if (r >= 0 && inflateInit2(&s->z, 15 + 16) != Z_OK) /* gzip with the largest window */
            r = keel_fail(KEEL_ENOMEM, "%s: inflate: out of memory", path);
        s->gzip = r >= 0;
    }
    if (r < 0) source_close(s);
    return r;
}

/* Refill the input of z; *more: there was input left. */
static keel_status refill(source *s, bool *more)
{
    const uint64_t left = s->file.n_bytes - s->at;
    const size_t n = left < PIECE ? (size_t)left : PIECE;
    *more = s->z.avail_in > 0 || n > 0;
    if (s->z.avail_in > 0 || !n) return KEEL_OK;
    KEEL_TRY(keel_file_read_at(&s->file, s->at, s->piece, n));
    s->at += n;
    s->z.next_in = s->piece;
    s->z.avail_in = (uInt)n;
    return KEEL_OK;
}

static keel_status inflate_some(source *s, char *out, size_t n_bytes, size_t *got)
{
    bool more;
    while (*got < n_bytes && !s->ended) {
        const size_t room = n_bytes - *got;
        KEEL_TRY(refill(s, &more));
        if (!more)
            return keel_fail(KEEL_EFORMAT,
                             "%s: the gzip data is cut short behind byte %llu of the text",
                             s->file.path, (unsigned long long)s->inflated);
        s->z.next_out = (Bytef *)out + *got;
        s->z.avail_out = room < UINT_MAX ? (uInt)room : UINT_MAX;
        const uInt before = s->z.avail_out;
        const int z = inflate(&s->z, Z_NO_FLUSH);
        *got += before - s->z.avail_out;
        s->inflated += before - s->z.avail_out;
        if (z != Z_OK && z != Z_STREAM_END)
            return keel_fail(KEEL_EFORMAT,
                             "%s: the gzip data is damaged behind byte %llu of the text: %s",
                             s->file.path, (unsigned long long)s->inflated,
                             s->z.msg ? s->z.msg : "it is cut short");
        if (s->inflated > FREE_BYTES && s->inflated / EXPANSION_MAX > s->at)
            return keel_fail(KEEL_EFORMAT,
                             "%s: expands to more than %d times its size; if that is right, unpack "
                             "it with gunzip first",
                             s->file.path, EXPANSION_MAX);
        if (z != Z_STREAM_END) continue;
        KEEL_TRY(refill(s, &more)); /* gzip files may be joined */
        s->ended = !more;
        if (more) inflateReset(&s->z);
    }
    return KEEL_OK;
}

/* Read up to n_bytes; fewer only at the end. */
static keel_status source_read(source *s, char *out, size_t n_bytes, size_t *got)
{
    *got = 0;
    if (s->gzip) return inflate_some(s, out, n_bytes, got);
    const uint64_t left = s->file.n_bytes - s->at;
    const size_t n = n_bytes < left ? n_bytes : (size_t)left;
    if (s->memory && n) memcpy(out, s->memory + s->at, n);
    if (!s->memory) KEEL_TRY(keel_file_read_at(&s->file, s->at, out, n));
    s->at += n;
    *got = n;
    return KEEL_OK;
}

/* ---- texts ------------------------------------------------------------------------------------
 */

/* The bytes that were read last. */
static keel_status check_text(const source *s, const char *text, size_t n, bool begin)
{
    const char *path = s->file.path, *zero = memchr(text, 0, n);
    const uint64_t end = s->gzip ? s->inflated : s->at;
    if (begin && n >= 2 && (!memcmp(text, "\xff\xfe", 2) || !memcmp(text, "\xfe\xff", 2)))
        return keel_fail(KEEL_EFORMAT, "%s: is a text in UTF-16; convert it to UTF-8", path);
    if (!zero) return KEEL_OK;
    return keel_fail(KEEL_EFORMAT, "%s: not a text file: byte %llu is 0", path,
                     (unsigned long long)(end - n + (size_t)(zero - text)));
}

/* ---- lines ------------------------------------------------------------------------------------
 */

struct keel_lines {
    source from;
    char *data; /* [room + KEEL_TEXT_PAD] */
    size_t room, begin, end, most;
    uint64_t got; /* bytes of the text up to `end` */
    int64_t number;
    bool begun, over; /* the source has no more bytes */
};

enum { ROOM = 1 << 18, LITTLE_ROOM = 64 };

static keel_lines *new_lines(size_t room)
{
    keel_lines *l = keel_calloc(1, sizeof *l);
    if (!l) return NULL;
    l->from.file.fd = -1;
    l->room = room;
    l->most = KEEL_LINE_MAX;
    if ((l->data = keel_calloc(room + KEEL_TEXT_PAD, 1))) return l;
    keel_free(l);
    return NULL;
}

keel_status keel_lines_open(keel_lines **out, const char *path)
{
    keel_lines *l = new_lines(ROOM);
    if (!l) return KEEL_ENOMEM;
    const keel_status s = source_open(&l->from, path); /* in its place: zlib keeps the address */
    if (s < 0)
        keel_lines_close(l);
    else
        *out = l;
    return s;
}

keel_status keel_lines_open_memory(keel_lines **out, const char *text, size_t n_bytes,
                                   const char *what)
{
    keel_lines *l = new_lines(LITTLE_ROOM);
    if (!l) return KEEL_ENOMEM;
    l->from = (source){ .file = { -1, what, n_bytes }, .memory = text };
    *out = l;
    return KEEL_OK;
}

/* Read more bytes behind those of the line that has begun. */
static keel_status fill(keel_lines *l)
{
    size_t got;
    memmove(l->data, l->data + l->begin, l->end - l->begin);
    l->end -= l->begin;
    l->begin = 0;
    if (l->end == l->room) {
        if (l->room >= l->most)
            return keel_fail(KEEL_EFORMAT, "%s:%lld: a line of more than %zu MiB",
                             l->from.file.path, (long long)l->number, l->most >> 20);
        char *more = keel_grow(l->data, 2 * l->room + KEEL_TEXT_PAD, 1);
        if (!more) return KEEL_ENOMEM;
        l->data = more;
        l->room *= 2;
    }
    const bool first = !l->begun;
    KEEL_TRY(source_read(&l->from, l->data + l->end, l->room - l->end, &got));
    KEEL_TRY(check_text(&l->from, l->data + l->end, got, first));
    if (first) l->begin = keel_text_mark(l->data, got);
    l->begun = true;
    l->over = got < l->room - l->end;
    l->end += got;
    l->got += got;
    memset(l->data + l->end, 0, KEEL_TEXT_PAD);
    return KEEL_OK;
}

keel_status keel_lines_next(keel_lines *l, char **line, size_t *n_bytes)
{
    size_t seen = 0; /* bytes of the line without an end */
    char *newline = NULL;
    l->number++;
    while (!(newline = memchr(l->data + l->begin + seen, '\n', l->end - l->begin - seen))) {
        seen = l->end - l->begin;
        if (l->over && !seen) return KEEL_END;
        if (l->over) break;
        KEEL_TRY(fill(l));
    }
    char *begin = l->data + l->begin, *end = newline ? newline : l->data + l->end;
    l->begin = (size_t)(end - l->data) + (newline != NULL);
    if (newline && end > begin && end[-1] == '\r') end--;
    *end = 0;
    *line = begin;
    *n_bytes = (size_t)(end - begin);
    return KEEL_OK;
}

keel_status keel_lines_more(keel_lines *l, char **text, size_t *n_bytes, bool *last)
{
    l->most = KEEL_PIECE_MAX;
    l->number = 1;
    KEEL_TRY(fill(l));
    *text = l->data + l->begin;
    *n_bytes = l->end - l->begin;
    *last = l->over;
    return KEEL_OK;
}

void keel_lines_pass(keel_lines *l, size_t n_bytes)
{
    l->begin += n_bytes;
}

uint64_t keel_lines_place(const keel_lines *l)
{
    return l->got - (l->end - l->begin);
}

const keel_file *keel_lines_file(const keel_lines *l)
{
    return l->from.gzip || l->from.memory ? NULL : &l->from.file;
}

void keel_lines_seek(keel_lines *l, uint64_t place)
{
    l->begin = l->end = 0;
    l->got = l->from.at = place;
}

int64_t keel_lines_number(const keel_lines *l)
{
    return l->number;
}

void keel_lines_close(keel_lines *l)
{
    if (!l) return;
    source_close(&l->from);
    keel_free(l->data);
    keel_free(l);
}
