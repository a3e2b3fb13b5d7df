/* Writing; see row_file.h. Small rows are gathered, so that not each is a call of the system. */
#include "io/row_file.h"
#include "base/hash.h"
#include "base/memory.h"
#include <string.h>
#include <zlib.h>

enum { HEAD = 16, END = 24, ENTRY = 32, VERSION = 1, GATHERED = 1 << 18, FASTEST = 1 };

struct keel_row_writer {
    keel_new_file *file;
    char *path;
    int n_dims;
    uint64_t at;  /* bytes so far */
    size_t n;     /* of them gathered */
    int64_t room; /* rows that `rows` and `dims` have place for */
    unsigned char *rows, *dims;
    unsigned char gathered[GATHERED];
};

static void put64(unsigned char *to, uint64_t value)
{
    for (int i = 0; i < 8; i++) to[i] = (unsigned char)(value >> (8 * i));
}

keel_status keel_row_pack(keel_row_packed *out, const void *data, size_t n_bytes, bool deflate,
                          keel_scratch *scratch)
{
    *out = (keel_row_packed){ .data = data, .n_bytes = n_bytes, .inflated = n_bytes };
    if (deflate && n_bytes) {
        uLongf n = compressBound((uLong)n_bytes);
        void *to = keel_scratch_reserve(scratch, 1, n);
        if (!to) return KEEL_ENOMEM;
        if (compress2(to, &n, data, (uLong)n_bytes, FASTEST) != Z_OK)
            return keel_fail(KEEL_ENOMEM, "deflate: out of memory");
        if (n < n_bytes) {
            out->data = to;
            out->n_bytes = n;
        }
    }
    out->fingerprint = keel_fingerprint(out->data, out->n_bytes);
    return KEEL_OK;
}

static keel_status flush(keel_row_writer *w)
{
    const size_t n = w->n;
    w->n = 0;
    return n ? keel_new_file_write(w->file, w->gathered, n) : KEEL_OK;
}

static keel_status put(keel_row_writer *w, const void *data, size_t n)
{
    if (n > GATHERED - w->n) KEEL_TRY(flush(w));
    if (n > GATHERED) {
        KEEL_TRY(keel_new_file_write(w->file, data, n));
    } else if (n) {
        memcpy(w->gathered + w->n, data, n);
        w->n += n;
    }
    w->at += n;
    return KEEL_OK;
}

keel_status keel_row_writer_create(keel_row_writer **out, const char *path, int n_dims)
{
    unsigned char head[HEAD] = { 'K', 'E', 'E', 'L', 'R', 'O', 'W', 'S', VERSION };
    keel_row_writer *w = keel_calloc(1, sizeof *w);
    if (!w) return KEEL_ENOMEM;
    w->n_dims = n_dims;
    keel_status s = (w->path = keel_strdup(path)) ? KEEL_OK : KEEL_ENOMEM;
    if (s >= 0) s = keel_new_file_create(&w->file, w->path);
    if (s >= 0) s = put(w, head, sizeof head);
    if (s < 0) {
        keel_row_writer_abort(w);
        return s;
    }
    *out = w;
    return KEEL_OK;
}

void keel_row_writer_abort(keel_row_writer *w)
{
    if (!w) return;
    keel_new_file_abort(w->file);
    keel_free(w->path);
    keel_free(w->rows);
    keel_free(w->dims);
    keel_free(w);
}

static keel_status grow(keel_row_writer *w, int64_t row)
{
    int64_t room = w->room ? w->room : 1024;
    while (room <= row) room *= 2;
    if (room == w->room) return KEEL_OK;
    unsigned char *rows = keel_grow(w->rows, (size_t)room, ENTRY);
    if (!rows) return KEEL_ENOMEM;
    w->rows = rows;
    unsigned char *dims = keel_grow(w->dims, (size_t)room * 8, (size_t)w->n_dims + 1);
    if (!dims) return KEEL_ENOMEM;
    w->dims = dims;
    w->room = room;
    return KEEL_OK;
}

keel_status keel_row_writer_add(keel_row_writer *w, int64_t row, const keel_row_packed *p,
                                const uint64_t *dims)
{
    KEEL_TRY(grow(w, row));
    unsigned char *entry = w->rows + row * ENTRY;
    put64(entry, w->at);
    put64(entry + 8, p->n_bytes);
    put64(entry + 16, p->inflated);
    put64(entry + 24, p->fingerprint);
    for (int k = 0; k < w->n_dims; k++) put64(w->dims + (row * w->n_dims + k) * 8, dims[k]);
    return put(w, p->data, p->n_bytes);
}

/* The index and the end of the file. */
static keel_status put_index(keel_row_writer *w, int64_t count, const char *head)
{
    const keel_section list[] = {
        { "head", head, strlen(head) },
        { "rows", w->rows, (size_t)count * ENTRY },
        { "dims", w->dims, (size_t)count * (size_t)w->n_dims * 8 },
    };
    static const char zeros[8];
    unsigned char end[END];
    void *block;
    size_t n;
    KEEL_TRY(put(w, zeros, (size_t)(-w->at & 7))); /* rows have any size; the index is aligned */
    KEEL_TRY(keel_sections_encode(list, 3, &block, &n));
    put64(end, w->at);
    put64(end + 8, n);
    memcpy(end + 16, "KEELROWE", 8);
    keel_status s = put(w, block, n);
    keel_free(block);
    if (s >= 0) s = put(w, end, sizeof end);
    return s < 0 ? s : flush(w);
}

keel_status keel_row_writer_commit(keel_row_writer *w, int64_t count, const char *head)
{
    keel_status s = put_index(w, count, head);
    if (s >= 0) {
        s = keel_new_file_commit(w->file);
        w->file = NULL;
    }
    keel_row_writer_abort(w);
    return s;
}
