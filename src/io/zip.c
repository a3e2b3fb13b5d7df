/* Zip archives, read; see zip.h for what is checked. Writing is in zip_write.c.
 *
 * The end record gives the place of the central directory, which is read whole, up to
 * DIRECTORY_BYTES_MAX. It is checked before use: members lie before it and do not overlap, and
 * names differ. A member's own header must have the same name and method. Names are kept in a
 * sorted list, so no choice of names makes an archive slow to read.
 * Why not libzip: it hashes the names and trusts the directory.
 * Source: PKWARE APPNOTE.TXT 6.3.10, sections 4.3 to 4.5. */
#include "io/zip.h"
#include "base/memory.h"
#include "io/file.h"
#include <limits.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>

enum {
    MEMBERS_MAX = 65535,
    DIRECTORY_BYTES_MAX = 32 << 20,
    EXPANSION_MAX = 1032, /* of deflate: at most 258 bytes from 2 bits */
    END_BYTES = 22,
    END64_BYTES = 56,
    LOCATOR_BYTES = 20,
    CENTRAL_BYTES = 46,
    LOCAL_BYTES = 30,
    COMMENT_MAX = 65535,
    STORED = 0,
    DEFLATED = 8,
    ENCRYPTED = 1 | 1 << 6 | 1 << 13, /* flags: traditional, strong, encrypted directory */
    PIECE = 1 << 16,                  /* compressed bytes per read */
};

typedef struct member {
    const char *name; /* in keel_zip.names */
    uint64_t size, packed, at;
    unsigned method;
    uint32_t crc;
} member;

struct keel_zip {
    char *what;
    const unsigned char *memory; /* NULL: read from `file` */
    keel_file file;
    uint64_t n_bytes;
    int64_t count;
    member *members;
    char *names;
    const member **sorted; /* by name */
};

struct keel_zip_stream {
    keel_zip *zip;
    const member *member;
    uint64_t at, packed_left; /* position in the archive, and stored bytes that follow */
    uint64_t left;            /* bytes of the member that follow, by its announced size */
    uLong crc;
    z_stream z;
    bool inflates, ended;
    unsigned char piece[PIECE];
};

static unsigned get16(const unsigned char *p)
{
    return p[0] | (unsigned)p[1] << 8;
}

static uint32_t get32(const unsigned char *p)
{
    return get16(p) | (uint32_t)get16(p + 2) << 16;
}

static uint64_t get64(const unsigned char *p)
{
    return get32(p) | (uint64_t)get32(p + 4) << 32;
}

static keel_status read_at(const keel_zip *z, uint64_t at, void *data, size_t n)
{
    if (at > z->n_bytes || n > z->n_bytes - at)
        return keel_fail(KEEL_EFORMAT, "%s: a damaged zip archive: an offset lies beyond its end",
                         z->what);
    if (!z->memory) return keel_file_read_at(&z->file, at, data, n);
    memcpy(data, z->memory + at, n);
    return KEEL_OK;
}

/* ---- the directory --------------------------------------------------------------------------- */

typedef struct directory {
    uint64_t at, n_bytes, count;
    uint64_t end; /* offset of the end record that describes the directory */
} directory;

/* Find the end record, which only its own comment may follow, and copy it to p. */
static keel_status find_end(const keel_zip *z, unsigned char p[END_BYTES], uint64_t *at)
{
    const uint64_t most = END_BYTES + COMMENT_MAX;
    const size_t n = (size_t)(z->n_bytes < most ? z->n_bytes : most);
    if (n < END_BYTES)
        return keel_fail(KEEL_EFORMAT, "%s: not a zip archive, or cut short: %zu bytes", z->what,
                         n);
    unsigned char *tail = keel_calloc(n, 1);
    if (!tail) return KEEL_ENOMEM;
    keel_status s = read_at(z, z->n_bytes - n, tail, n);
    size_t i = n - END_BYTES;
    for (; s >= 0; i--) {
        if (get32(tail + i) == 0x06054B50 && get16(tail + i + 20) == n - END_BYTES - i) break;
        if (i == 0) s = keel_fail(KEEL_EFORMAT, "%s: not a zip archive, or cut short", z->what);
    }
    if (s >= 0) {
        memcpy(p, tail + i, END_BYTES);
        *at = z->n_bytes - n + i;
    }
    keel_free(tail);
    return s;
}

static keel_status find_directory(const keel_zip *z, directory *d)
{
    unsigned char p[END64_BYTES];
    KEEL_TRY(find_end(z, p, &d->end));
    unsigned disks = get16(p + 4) | get16(p + 6);
    uint64_t here = get16(p + 8);
    d->count = get16(p + 10);
    d->n_bytes = get32(p + 12);
    d->at = get32(p + 16);
    unsigned char locator[LOCATOR_BYTES] = { 0 };
    if (d->end >= LOCATOR_BYTES) KEEL_TRY(read_at(z, d->end - LOCATOR_BYTES, locator, 20));
    if (get32(locator) == 0x07064B50) {
        const uint64_t at = get64(locator + 8);
        if (d->end < LOCATOR_BYTES + END64_BYTES || at > d->end - LOCATOR_BYTES - END64_BYTES)
            return keel_fail(KEEL_EFORMAT, "%s: a damaged zip archive: its end record is missing",
                             z->what);
        KEEL_TRY(read_at(z, at, p, END64_BYTES));
        if (get32(p) != 0x06064B50)
            return keel_fail(KEEL_EFORMAT, "%s: a damaged zip archive: its end record is missing",
                             z->what);
        disks = get32(p + 16) | get32(p + 20) | get32(locator + 4);
        here = get64(p + 24);
        d->count = get64(p + 32);
        d->n_bytes = get64(p + 40);
        d->at = get64(p + 48);
        d->end = at;
    }
    if (disks || here != d->count)
        return keel_fail(KEEL_EUNSUP, "%s: a zip archive in several files", z->what);
    if (d->count > MEMBERS_MAX || d->n_bytes > DIRECTORY_BYTES_MAX)
        return keel_fail(
            KEEL_EFORMAT,
            "%s: %llu members with a directory of %llu bytes; at most %d and %d are read", z->what,
            (unsigned long long)d->count, (unsigned long long)d->n_bytes, MEMBERS_MAX,
            DIRECTORY_BYTES_MAX);
    if (d->at > d->end || d->n_bytes != d->end - d->at || d->count * CENTRAL_BYTES > d->n_bytes)
        return keel_fail(KEEL_EFORMAT,
                         "%s: a damaged zip archive: its directory does not end where its end "
                         "record begins",
                         z->what);
    return KEEL_OK;
}

/* Zip64: sizes and offsets of 4 GiB and more are in an extra field, in this order, each only if the
 * 32-bit field is all ones. */
static bool take_zip64(member *m, const unsigned char *extra, size_t n)
{
    uint64_t *const wanted[] = { &m->size, &m->packed, &m->at };
    for (size_t i = 0; i + 4 <= n;) {
        const unsigned id = get16(extra + i), length = get16(extra + i + 2);
        const unsigned char *p = extra + i + 4;
        size_t left = length;
        i += 4 + (size_t)length;
        if (i > n) return false;
        if (id != 1) continue;
        for (int k = 0; k < 3; k++) {
            if (*wanted[k] != UINT32_MAX) continue;
            if (left < 8) return false;
            *wanted[k] = get64(p);
            p += 8;
            left -= 8;
        }
        return true;
    }
    return m->size != UINT32_MAX && m->packed != UINT32_MAX && m->at != UINT32_MAX;
}

/* Check method and size of a member. Of compression only deflate is read: NumPy and Keras write no
 * other method, and deflate's expansion has a bound that sizes can be checked against. */
static keel_status check_member(const keel_zip *z, const member *m, unsigned flags, uint64_t before)
{
    if (flags & ENCRYPTED)
        return keel_fail(KEEL_EUNSUP, "%s: member '%.200s' is encrypted", z->what, m->name);
    if (m->method != STORED && m->method != DEFLATED)
        return keel_fail(
            KEEL_EUNSUP,
            "%s: member '%.200s' has compression %u; supported are stored and deflated", z->what,
            m->name, m->method);
    const bool fits = m->at <= before && before - m->at >= LOCAL_BYTES &&
                      m->packed <= before - m->at - LOCAL_BYTES;
    if (!fits ||
        (m->method == STORED ? m->size != m->packed : m->size > (m->packed + 1) * EXPANSION_MAX))
        return keel_fail(
            KEEL_EFORMAT,
            "%s: member '%.200s' claims %llu bytes from %llu stored ones, in an archive of %llu",
            z->what, m->name, (unsigned long long)m->size, (unsigned long long)m->packed,
            (unsigned long long)z->n_bytes);
    return KEEL_OK;
}

/* Parse the directory entry at *p and copy its name to *names; both pointers advance. */
static keel_status take_member(const keel_zip *z, member *m, const unsigned char **p,
                               const unsigned char *end, char **names, uint64_t before)
{
    const unsigned char *c = *p;
    const size_t left = (size_t)(end - c);
    if (left < CENTRAL_BYTES || get32(c) != 0x02014B50)
        return keel_fail(KEEL_EFORMAT, "%s: a damaged zip archive: its directory is cut short",
                         z->what);
    const size_t name = get16(c + 28), extra = get16(c + 30), comment = get16(c + 32);
    if (left - CENTRAL_BYTES < name + extra + comment)
        return keel_fail(KEEL_EFORMAT, "%s: a damaged zip archive: its directory is cut short",
                         z->what);
    if (name == 0 || memchr(c + CENTRAL_BYTES, 0, name))
        return keel_fail(KEEL_EFORMAT, "%s: a member's name is empty or has a zero byte", z->what);
    *m = (member){ .name = memcpy(*names, c + CENTRAL_BYTES, name),
                   .method = get16(c + 10),
                   .crc = get32(c + 16),
                   .packed = get32(c + 20),
                   .size = get32(c + 24),
                   .at = get32(c + 42) };
    *names += name + 1;
    *p = c + CENTRAL_BYTES + name + extra + comment;
    if (!take_zip64(m, c + CENTRAL_BYTES + name, extra))
        return keel_fail(KEEL_EFORMAT, "%s: member '%.200s' has no valid size", z->what, m->name);
    return check_member(z, m, get16(c + 8), before);
}

static int by_name(const void *a, const void *b)
{
    return strcmp((*(const member *const *)a)->name, (*(const member *const *)b)->name);
}

static int by_place(const void *a, const void *b)
{
    const uint64_t x = (*(const member *const *)a)->at, y = (*(const member *const *)b)->at;
    return (x > y) - (x < y);
}

/* Members may not overlap, which bounds their total size by that of the archive, and names may not
 * repeat. */
static keel_status check_all(keel_zip *z)
{
    for (int64_t i = 0; i < z->count; i++) z->sorted[i] = &z->members[i];
    qsort(z->sorted, (size_t)z->count, sizeof *z->sorted, by_place);
    for (int64_t i = 1; i < z->count; i++) {
        const member *a = z->sorted[i - 1], *b = z->sorted[i];
        if (a->at + LOCAL_BYTES + strlen(a->name) + a->packed > b->at)
            return keel_fail(KEEL_EFORMAT, "%s: members '%.200s' and '%.200s' overlap", z->what,
                             a->name, b->name);
    }
    qsort(z->sorted, (size_t)z->count, sizeof *z->sorted, by_name);
    for (int64_t i = 1; i < z->count; i++)
        if (!strcmp(z->sorted[i - 1]->name, z->sorted[i]->name))
            return keel_fail(KEEL_EFORMAT, "%s: there are two members '%.200s'", z->what,
                             z->sorted[i]->name);
    return KEEL_OK;
}

static keel_status read_directory(keel_zip *z)
{
    directory d = { 0 };
    keel_status s = find_directory(z, &d);
    unsigned char *bytes = NULL;
    if (s < 0) return s;
    bytes = keel_calloc((size_t)d.n_bytes, 1);
    z->members = keel_calloc((size_t)d.count, sizeof *z->members);
    z->names = keel_calloc((size_t)d.n_bytes, 1); /* enough: an entry is longer than its name */
    z->sorted = keel_calloc((size_t)d.count, sizeof *z->sorted);
    if (!bytes || !z->members || !z->names || !z->sorted) {
        s = KEEL_ENOMEM;
        goto out;
    }
    if ((s = read_at(z, d.at, bytes, (size_t)d.n_bytes)) < 0) goto out;
    const unsigned char *p = bytes, *end = bytes + d.n_bytes;
    char *names = z->names;
    for (; s >= 0 && z->count < (int64_t)d.count; z->count++)
        s = take_member(z, &z->members[z->count], &p, end, &names, d.at);
    if (s >= 0 && p != end)
        s = keel_fail(KEEL_EFORMAT,
                      "%s: a damaged zip archive: its directory is longer than its entries",
                      z->what);
    if (s >= 0) s = check_all(z);
out:
    keel_free(bytes);
    return s;
}

/* ---- archives -------------------------------------------------------------------------------- */

keel_status keel_zip_open_memory(keel_zip **out, const void *data, size_t n_bytes, const char *what)
{
    keel_zip *z = keel_calloc(1, sizeof *z);
    if (!z) return KEEL_ENOMEM;
    z->memory = data;
    z->n_bytes = n_bytes;
    z->file.fd = -1;
    z->what = keel_strdup(what);
    const keel_status s = z->what ? read_directory(z) : KEEL_ENOMEM;
    if (s >= 0)
        *out = z;
    else
        keel_zip_close(z);
    return s;
}

keel_status keel_zip_open(keel_zip **out, const char *path)
{
    keel_zip *z = keel_calloc(1, sizeof *z);
    if (!z) return KEEL_ENOMEM;
    z->file.fd = -1;
    z->what = keel_strdup(path);
    keel_status s = z->what ? keel_file_open(&z->file, z->what) : KEEL_ENOMEM;
    if (s >= 0) {
        z->n_bytes = z->file.n_bytes;
        s = read_directory(z);
    }
    if (s >= 0)
        *out = z;
    else
        keel_zip_close(z);
    return s;
}

void keel_zip_close(keel_zip *z)
{
    if (!z) return;
    keel_file_close(&z->file);
    keel_free(z->members);
    keel_free(z->names);
    keel_free(z->sorted);
    keel_free(z->what);
    keel_free(z);
}

int64_t keel_zip_count(const keel_zip *z)
{
    return z->count;
}

const char *keel_zip_name(const keel_zip *z, int64_t index)
{
    return z->members[index].name;
}

int64_t keel_zip_find(const keel_zip *z, const char *name)
{
    int64_t low = 0, high = z->count;
    while (low < high) {
        const int64_t middle = low + (high - low) / 2;
        const int order = strcmp(z->sorted[middle]->name, name);
        if (order == 0) return z->sorted[middle] - z->members;
        if (order < 0)
            low = middle + 1;
        else
            high = middle;
    }
    return -1;
}

const char *keel_zip_what(const keel_zip *z)
{
    return z->what;
}

uint64_t keel_zip_size(const keel_zip *z, int64_t index)
{
    return z->members[index].size;
}

/* ---- members --------------------------------------------------------------------------------- */

static keel_status stream_fail(const keel_zip_stream *s, const char *why)
{
    return keel_fail(KEEL_EFORMAT, "%s: member '%.200s' is damaged: %s", s->zip->what,
                     s->member->name, why);
}

/* Check the member's own header: it has the name and method of the directory. Size and checksum are
 * not compared, since they may follow the data. */
static keel_status read_local(keel_zip_stream *s)
{
    unsigned char p[LOCAL_BYTES];
    const member *m = s->member;
    const size_t name = strlen(m->name);
    KEEL_TRY(read_at(s->zip, m->at, p, LOCAL_BYTES));
    if (get32(p) != 0x04034B50 || get16(p + 8) != m->method || get16(p + 26) != name ||
        (get16(p + 6) & ENCRYPTED))
        return stream_fail(s, "its header differs from the directory");
    for (size_t done = 0; done < name;) {
        const size_t n = name - done < PIECE ? name - done : PIECE;
        KEEL_TRY(read_at(s->zip, m->at + LOCAL_BYTES + done, s->piece, n));
        if (memcmp(s->piece, m->name + done, n) != 0)
            return stream_fail(s, "its header differs from the directory");
        done += n;
    }
    s->at = m->at + LOCAL_BYTES + name + get16(p + 28);
    s->packed_left = m->packed;
    s->left = m->size;
    return KEEL_OK;
}

keel_status keel_zip_stream_open(keel_zip_stream **out, keel_zip *z, int64_t index)
{
    keel_zip_stream *s = keel_calloc(1, sizeof *s);
    if (!s) return KEEL_ENOMEM;
    s->zip = z;
    s->member = &z->members[index];
    s->crc = crc32(0, NULL, 0);
    keel_status status = read_local(s);
    if (status >= 0 && s->member->method == DEFLATED) {
        if (inflateInit2(&s->z, -15) == Z_OK) /* raw deflate; takes 40 KiB by malloc */
            s->inflates = true;
        else
            status = keel_fail(KEEL_ENOMEM, "%s: inflate: out of memory", z->what);
    }
    if (status >= 0)
        *out = s;
    else
        keel_zip_stream_close(s);
    return status;
}

/* Read up to n bytes of a stored member, at least one unless it ends. */
static keel_status stored_some(keel_zip_stream *s, void *data, size_t n, size_t *got)
{
    *got = s->packed_left < n ? (size_t)s->packed_left : n;
    KEEL_TRY(read_at(s->zip, s->at, data, *got));
    s->at += *got;
    s->packed_left -= *got;
    s->ended = s->packed_left == 0;
    return KEEL_OK;
}

static keel_status inflated_some(keel_zip_stream *s, void *data, size_t n, size_t *got)
{
    s->z.next_out = data;
    s->z.avail_out = n < UINT_MAX ? (uInt)n : UINT_MAX;
    const uInt room = s->z.avail_out;
    *got = 0;
    while (*got == 0 && !s->ended) {
        if (s->z.avail_in == 0) {
            const size_t piece = s->packed_left < PIECE ? (size_t)s->packed_left : PIECE;
            KEEL_TRY(read_at(s->zip, s->at, s->piece, piece));
            s->z.next_in = s->piece;
            s->z.avail_in = (uInt)piece;
            s->at += piece;
            s->packed_left -= piece;
        }
        const int z = inflate(&s->z, Z_NO_FLUSH);
        *got = room - s->z.avail_out;
        s->ended = z == Z_STREAM_END;
        if (z != Z_OK && z != Z_STREAM_END)
            return stream_fail(s, s->z.msg ? s->z.msg : "its deflated bytes are cut short");
    }
    return KEEL_OK;
}

static keel_status some(keel_zip_stream *s, void *data, size_t n, size_t *got)
{
    KEEL_TRY(s->inflates ? inflated_some(s, data, n, got) : stored_some(s, data, n, got));
    const unsigned char *p = data;
    for (size_t left = *got; left > 0;) { /* crc32 counts in 32 bits */
        const uInt piece = left > 1u << 30 ? 1u << 30 : (uInt)left;
        s->crc = crc32(s->crc, p, piece);
        p += piece;
        left -= piece;
    }
    return KEEL_OK;
}

keel_status keel_zip_stream_read(keel_zip_stream *s, void *data, size_t n_bytes)
{
    unsigned char *p = data;
    while (n_bytes > 0) {
        size_t got = 0;
        if (s->left == 0 || s->ended) return stream_fail(s, "it ends before the size it claims");
        KEEL_TRY(some(s, p, n_bytes < s->left ? n_bytes : (size_t)s->left, &got));
        p += got;
        n_bytes -= got;
        s->left -= got;
    }
    return KEEL_OK;
}

keel_status keel_zip_stream_finish(keel_zip_stream *s)
{
    char more;
    size_t got = 0;
    keel_status status = KEEL_OK;
    if (s->left > 0) status = stream_fail(s, "it has more bytes than were read");
    if (status >= 0 && !s->ended) status = some(s, &more, 1, &got);
    if (status >= 0 && (got > 0 || s->packed_left + s->z.avail_in > 0))
        status = stream_fail(s, "it is longer than the size it claims");
    if (status >= 0 && s->crc != s->member->crc) status = stream_fail(s, "its checksum differs");
    keel_zip_stream_close(s);
    return status;
}

void keel_zip_stream_close(keel_zip_stream *s)
{
    if (!s) return;
    if (s->inflates) inflateEnd(&s->z);
    keel_free(s);
}

keel_status keel_zip_read(keel_zip *z, const char *name, size_t limit, void **data, size_t *n_bytes)
{
    const int64_t index = keel_zip_find(z, name);
    if (index < 0) return keel_fail(KEEL_EFORMAT, "%s: has no member '%.200s'", z->what, name);
    const uint64_t size = z->members[index].size;
    if (size > limit)
        return keel_fail(KEEL_EFORMAT, "%s: member '%.200s' has %llu bytes, more than %zu", z->what,
                         name, (unsigned long long)size, limit);
    keel_zip_stream *stream = NULL;
    unsigned char *bytes = keel_calloc((size_t)size + 1, 1);
    keel_status s = bytes ? keel_zip_stream_open(&stream, z, index) : KEEL_ENOMEM;
    if (s >= 0) s = keel_zip_stream_read(stream, bytes, (size_t)size);
    if (s >= 0) {
        s = keel_zip_stream_finish(stream);
        stream = NULL;
    }
    keel_zip_stream_close(stream);
    if (s < 0) {
        keel_free(bytes);
        return s;
    }
    *data = bytes;
    *n_bytes = (size_t)size;
    return KEEL_OK;
}

keel_status keel_zip_place(keel_zip *z, int64_t index, uint64_t *at)
{
    keel_zip_stream *stream = NULL;
    unsigned char *piece = keel_calloc(PIECE, 1);
    keel_status s = piece ? keel_zip_stream_open(&stream, z, index) : KEEL_ENOMEM;
    const uint64_t begin = s >= 0 && !stream->inflates ? stream->at : 0;
    while (s >= 0 && begin > 0 && stream->left > 0)
        s = keel_zip_stream_read(stream, piece, stream->left < PIECE ? stream->left : PIECE);
    if (s >= 0 && begin > 0) {
        s = keel_zip_stream_finish(stream);
        stream = NULL;
    }
    keel_zip_stream_close(stream);
    keel_free(piece);
    if (s >= 0) *at = begin;
    return s;
}

keel_status keel_zip_read_at(const keel_zip *z, uint64_t at, void *data, size_t n)
{
    return read_at(z, at, data, n);
}
