/* Reading; see row_file.h. */
#include "io/row_file.h"
#include "base/hash.h"
#include "base/memory.h"
#include <string.h>
#include <zlib.h>

enum { HEAD = 16, END = 24, ENTRY = 32, VERSION = 1, MOST_DIMS = 512 };
enum { DEFLATE_MOST = 1032, DEFLATE_LEAST = 64 }; /* no deflated byte becomes more bytes */

static uint64_t get64(const unsigned char *from)
{
    uint64_t value = 0;
    for (int i = 0; i < 8; i++) value |= (uint64_t)from[i] << (8 * i);
    return value;
}

static const unsigned char *entry(const keel_row_file *f, int64_t i)
{
    return f->rows + i * ENTRY;
}

/* Find the index by the end of the file, and read it. */
static keel_status read_index(keel_row_file *f, uint64_t *begin)
{
    unsigned char head[HEAD], end[END];
    const uint64_t all = f->file.n_bytes;
    if (all < HEAD + END) return keel_fail(KEEL_EFORMAT, "too short");
    KEEL_TRY(keel_file_read_at(&f->file, 0, head, sizeof head));
    if (memcmp(head, "KEELROWS", 8) != 0) return keel_fail(KEEL_EFORMAT, "not a file of rows");
    if (get64(head + 8) != VERSION)
        return keel_fail(KEEL_EUNSUP, "version %llu; this Keel reads %d",
                         (unsigned long long)get64(head + 8), VERSION);
    KEEL_TRY(keel_file_read_at(&f->file, all - END, end, sizeof end));
    const uint64_t at = get64(end), n = get64(end + 8);
    if (memcmp(end + 16, "KEELROWE", 8) != 0)
        return keel_fail(KEEL_EFORMAT, "its end is cut off or damaged");
    if (at < HEAD || at > all - END || n != all - END - at)
        return keel_fail(KEEL_EFORMAT, "its index is damaged");
    if (!(f->block = keel_calloc((size_t)n, 1))) return KEEL_ENOMEM;
    KEEL_TRY(keel_file_read_at(&f->file, at, f->block, (size_t)n));
    const keel_status s = keel_sections_decode(&f->sections, f->block, (size_t)n);
    if (s < 0) return keel_fail_within(s, "its index");
    *begin = at;
    return KEEL_OK;
}

/* Every row lies within the file and claims no more than it can have. */
static keel_status check_rows(const keel_row_file *f, uint64_t rows_end)
{
    for (int64_t i = 0; i < f->count; i++) {
        const uint64_t at = get64(entry(f, i)), n = get64(entry(f, i) + 8);
        const uint64_t inflated = keel_row_file_bytes(f, i);
        if (at < HEAD || at > rows_end || n > rows_end - at ||
            (inflated != n && inflated / DEFLATE_MOST > n + DEFLATE_LEAST))
            return keel_fail(KEEL_EFORMAT, "the place of row %lld is damaged", (long long)i);
    }
    return KEEL_OK;
}

static keel_status find_sections(keel_row_file *f)
{
    const keel_section *rows = keel_sections_find(&f->sections, "rows");
    const keel_section *dims = keel_sections_find(&f->sections, "dims");
    if (!rows || !dims || !keel_sections_find(&f->sections, "head") || rows->n_bytes % ENTRY)
        return keel_fail(KEEL_EFORMAT, "its index is damaged");
    f->rows = rows->data;
    f->dims = dims->data;
    f->count = (int64_t)(rows->n_bytes / ENTRY);
    const size_t each = f->count ? dims->n_bytes / (size_t)f->count : 0;
    f->n_dims = each / 8 > MOST_DIMS ? -1 : (int)(each / 8);
    if (f->n_dims < 0 || (size_t)f->count * (size_t)f->n_dims * 8 != dims->n_bytes)
        return keel_fail(KEEL_EFORMAT, "its index is damaged");
    return KEEL_OK;
}

keel_status keel_row_file_open(keel_row_file *out, const char *path)
{
    uint64_t rows_end = 0;
    *out = (keel_row_file){ .file = { .fd = -1 } };
    if (!(out->path = keel_strdup(path))) return KEEL_ENOMEM;
    KEEL_TRY(keel_file_open(&out->file, out->path));
    keel_status s = read_index(out, &rows_end);
    if (s >= 0) s = find_sections(out);
    if (s >= 0) s = check_rows(out, rows_end);
    return s == KEEL_EFORMAT || s == KEEL_EUNSUP ? keel_fail_within(s, "%s", path) : s;
}

void keel_row_file_close(keel_row_file *f)
{
    if (!f->path) return;
    keel_file_close(&f->file);
    keel_sections_free(&f->sections);
    keel_free(f->block);
    keel_free(f->path);
    *f = (keel_row_file){ .file = { .fd = -1 } };
}

const char *keel_row_file_head(const keel_row_file *f, size_t *n_bytes)
{
    const keel_section *head = keel_sections_find(&f->sections, "head");
    *n_bytes = head->n_bytes;
    return head->data;
}

uint64_t keel_row_file_dim(const keel_row_file *f, int64_t i, int k)
{
    return get64(f->dims + (i * f->n_dims + k) * 8);
}

uint64_t keel_row_file_bytes(const keel_row_file *f, int64_t i)
{
    return get64(entry(f, i) + 16);
}

static keel_status damaged(const keel_row_file *f, int64_t i, const char *why)
{
    return keel_fail(KEEL_EFORMAT, "%s: row %lld is damaged: %s; remove the file to make it anew",
                     f->path, (long long)i, why);
}

keel_status keel_row_file_read(const keel_row_file *f, int64_t i, keel_scratch *scratch,
                               const unsigned char **data, size_t *n_bytes)
{
    const size_t n = (size_t)get64(entry(f, i) + 8), inflated = (size_t)keel_row_file_bytes(f, i);
    unsigned char *stored = keel_scratch_reserve(scratch, 0, n + 1);
    if (!stored) return KEEL_ENOMEM;
    KEEL_TRY(keel_file_read_at(&f->file, get64(entry(f, i)), stored, n));
    if (keel_fingerprint(stored, n) != get64(entry(f, i) + 24))
        return damaged(f, i, "its checksum does not match");
    *data = stored;
    *n_bytes = inflated;
    if (inflated == n) return KEEL_OK;
    unsigned char *out = keel_scratch_reserve(scratch, 1, inflated + 1);
    uLongf got = (uLongf)inflated;
    if (!out) return KEEL_ENOMEM;
    const int z = uncompress(out, &got, stored, (uLong)n);
    if (z == Z_MEM_ERROR) return keel_fail(KEEL_ENOMEM, "%s: inflate: out of memory", f->path);
    if (z != Z_OK || got != inflated) return damaged(f, i, "it cannot be inflated");
    *data = out;
    return KEEL_OK;
}
