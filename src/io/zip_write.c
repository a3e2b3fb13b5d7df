/* Write a zip archive of stored members.
 *
 * A stored member is a header and its bytes, so members are written straight to the new file,
 * without a copy. Sizes and offsets of 4 GiB and more get zip64 fields, and so do sizes that are
 * not known before the member is written. The date of each member is
 * 1 January 1980, as in Keras's files.
 * Source: PKWARE APPNOTE.TXT 6.3.10, sections 4.3 and 4.5.3. */
#include "io/file.h"
#include "io/zip.h"
#include "base/memory.h"
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>

enum {
    DATE_1980 = 0x21,
    STORED_VERSION = 20,
    ZIP64_VERSION = 45,
    UNIX_MADE = 3 << 8,
    LOCAL_BYTES = 30,
    ZIP64_BYTES = 20, /* what a local header has more */
    PIECE = 1 << 20,
};
#define LIMIT32 0xFFFFFFFFu

typedef struct block { /* a header, built here and written in one piece */
    unsigned char bytes[128];
    size_t n;
} block;

static void put(block *b, uint64_t value, int n_bytes)
{
    for (int i = 0; i < n_bytes; i++) b->bytes[b->n++] = (unsigned char)(value >> (8 * i));
}

static void put32_or_64(block *b, uint64_t value)
{
    put(b, value >= LIMIT32 ? LIMIT32 : value, 4);
}

typedef struct written {
    uint64_t offset, n_bytes;
    uint32_t crc;
} written;

/* The fields that local and central headers share: version to length of the name. */
static void put_common(block *b, const keel_zip_member *m, const written *w, bool zip64,
                       uint64_t size32)
{
    put(b, zip64 ? ZIP64_VERSION : STORED_VERSION, 2);
    put(b, 1 << 11, 2); /* the name is UTF-8 */
    put(b, 0, 2);       /* stored */
    put(b, 0, 2);       /* midnight */
    put(b, DATE_1980, 2);
    put(b, w->crc, 4);
    put32_or_64(b, size32);
    put32_or_64(b, size32);
    put(b, strlen(m->name), 2);
}

/* Writes a header, the name and what is `more`, and moves *at behind them. */
static keel_status write_header(keel_new_file *f, const block *head, const char *name,
                                const block *more, uint64_t *at)
{
    const struct {
        const void *data;
        size_t n;
    } part[] = { { head->bytes, head->n }, { name, strlen(name) }, { more->bytes, more->n } };
    for (int i = 0; i < 3; i++) {
        KEEL_TRY(keel_new_file_write_at(f, (int64_t)*at, part[i].data, part[i].n));
        *at += part[i].n;
    }
    return KEEL_OK;
}

static keel_status write_local(keel_new_file *f, const keel_zip_member *m, const written *w,
                               bool zip64)
{
    uint64_t at = w->offset;
    block head = { 0 }, more = { 0 };
    put(&head, 0x04034B50, 4);
    put_common(&head, m, w, zip64, zip64 ? LIMIT32 : w->n_bytes);
    put(&head, zip64 ? ZIP64_BYTES : 0, 2);
    if (zip64) {
        put(&more, 1, 2);
        put(&more, 16, 2);
        put(&more, w->n_bytes, 8);
        put(&more, w->n_bytes, 8);
    }
    return write_header(f, &head, m->name, &more, &at);
}

static keel_status write_central(keel_new_file *f, const keel_zip_member *m, const written *w,
                                 uint64_t *at)
{
    const bool big = w->n_bytes >= LIMIT32, far = w->offset >= LIMIT32;
    const int extra = (big ? 16 : 0) + (far ? 8 : 0);
    block head = { 0 }, more = { 0 };
    put(&head, 0x02014B50, 4);
    put(&head, UNIX_MADE | ZIP64_VERSION, 2);
    put_common(&head, m, w, extra > 0, w->n_bytes);
    put(&head, extra ? (uint64_t)extra + 4 : 0, 2);
    put(&head, 0, 2); /* comment */
    put(&head, 0, 2); /* disk */
    put(&head, 0, 2); /* internal attributes */
    put(&head, 0600u << 16, 4);
    put32_or_64(&head, w->offset);
    if (extra) {
        put(&more, 1, 2);
        put(&more, (uint64_t)extra, 2);
        if (big) put(&more, w->n_bytes, 8);
        if (big) put(&more, w->n_bytes, 8);
        if (far) put(&more, w->offset, 8);
    }
    return write_header(f, &head, m->name, &more, at);
}

static keel_status write_end(keel_new_file *f, uint64_t count, uint64_t begin, uint64_t end)
{
    block b = { 0 };
    if (begin >= LIMIT32 || end - begin >= LIMIT32) {
        put(&b, 0x06064B50, 4); /* zip64 end of central directory */
        put(&b, 44, 8);
        put(&b, UNIX_MADE | ZIP64_VERSION, 2);
        put(&b, ZIP64_VERSION, 2);
        put(&b, 0, 8); /* two disk numbers */
        put(&b, count, 8);
        put(&b, count, 8);
        put(&b, end - begin, 8);
        put(&b, begin, 8);
        put(&b, 0x07064B50, 4); /* its locator */
        put(&b, 0, 4);
        put(&b, end, 8);
        put(&b, 1, 4);
    }
    put(&b, 0x06054B50, 4);
    put(&b, 0, 4); /* two disk numbers */
    put(&b, count, 2);
    put(&b, count, 2);
    put32_or_64(&b, end - begin);
    put32_or_64(&b, begin);
    put(&b, 0, 2); /* comment */
    return keel_new_file_write_at(f, (int64_t)end, b.bytes, b.n);
}

static uint32_t check_sum(const keel_zip_member *m)
{
    const unsigned char *p = m->data;
    uLong crc = crc32(0, NULL, 0);
    for (size_t left = m->n_bytes; left > 0;) { /* crc32 counts in 32 bits */
        const uInt n = left > 1u << 30 ? 1u << 30 : (uInt)left;
        crc = crc32(crc, p, n);
        p += n;
        left -= n;
    }
    return (uint32_t)crc;
}

/* The same of n bytes that have been written. */
static keel_status read_check_sum(const keel_new_file *f, uint64_t at, uint64_t n, uint32_t *out)
{
    uLong crc = crc32(0, NULL, 0);
    keel_status s = KEEL_OK;
    unsigned char *piece = keel_calloc(PIECE, 1);
    if (!piece) return KEEL_ENOMEM;
    for (uint64_t done = 0; s >= 0 && done < n; done += PIECE) {
        const size_t some = n - done < PIECE ? (size_t)(n - done) : PIECE;
        s = keel_new_file_read_at(f, (int64_t)(at + done), piece, some);
        crc = crc32(crc, piece, (uInt)some);
    }
    keel_free(piece);
    *out = (uint32_t)crc;
    return s;
}

/* The header comes last, when size and checksum are known. */
static keel_status write_member(keel_new_file *f, const keel_zip_member *m, written *w,
                                uint64_t *at)
{
    const bool zip64 = m->write || m->n_bytes >= LIMIT32;
    const uint64_t data_at = *at + LOCAL_BYTES + strlen(m->name) + (zip64 ? ZIP64_BYTES : 0);
    *w = (written){ .offset = *at, .n_bytes = m->n_bytes };
    if (m->write) {
        KEEL_TRY(m->write(m->context, f, (int64_t)data_at, &w->n_bytes));
        KEEL_TRY(read_check_sum(f, data_at, w->n_bytes, &w->crc));
    } else {
        w->crc = check_sum(m);
        KEEL_TRY(keel_new_file_write_at(f, (int64_t)data_at, m->data, m->n_bytes));
    }
    *at = data_at + w->n_bytes;
    return write_local(f, m, w, zip64);
}

static int by_text(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

static keel_status check_names(const keel_zip_member *members, int64_t count)
{
    if (count < 0 || count > 65534) /* more need zip64's count, which is not written */
        return keel_fail(KEEL_EARG, "%lld members; an archive of Keel has at most 65534",
                         (long long)count);
    for (int64_t i = 0; i < count; i++) {
        const size_t n = strlen(members[i].name);
        if (n == 0 || n > 65535)
            return keel_fail(KEEL_EARG, "a member's name is empty or too long");
    }
    keel_status s = KEEL_OK;
    const char **names = keel_calloc((size_t)count, sizeof *names);
    if (!names) return KEEL_ENOMEM;
    for (int64_t i = 0; i < count; i++) names[i] = members[i].name;
    qsort(names, (size_t)count, sizeof *names, by_text);
    for (int64_t i = 1; i < count && s >= 0; i++)
        if (!strcmp(names[i - 1], names[i])) s = keel_fail(KEEL_EARG, "two members '%s'", names[i]);
    keel_free(names);
    return s;
}

keel_status keel_zip_write(const char *path, const keel_zip_member *members, int64_t count)
{
    keel_new_file *f = NULL;
    uint64_t at = 0;
    keel_status s = check_names(members, count);
    if (s < 0) return s == KEEL_ENOMEM ? s : keel_fail_within(s, "%s", path);
    written *w = keel_calloc((size_t)count, sizeof *w);
    if (!w) return KEEL_ENOMEM;
    s = keel_new_file_create(&f, path);
    for (int64_t i = 0; s >= 0 && i < count; i++) s = write_member(f, &members[i], &w[i], &at);
    const uint64_t begin = at;
    for (int64_t i = 0; s >= 0 && i < count; i++) s = write_central(f, &members[i], &w[i], &at);
    if (s >= 0) s = write_end(f, (uint64_t)count, begin, at);
    keel_free(w);
    if (s >= 0) return keel_new_file_commit(f);
    keel_new_file_abort(f);
    return s;
}
