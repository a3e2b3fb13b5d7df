/* Object headers of HDF5 files of data: type, shape, layout and filters of an array. What Keel does
 * not read is noted as the reason, and refused if the array is asked for. */
#include "base/memory.h"
#include "io/h5_data_impl.h"
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

void keel_h5_refuse(keel_h5_header *h, const char *format, ...)
{
    va_list list;
    if (*h->array.why) return;
    va_start(list, format);
    vsnprintf(h->array.why, sizeof h->array.why, format, list);
    va_end(list);
}

static keel_status read_space(const keel_h5_walk *w, keel_h5_header *h, const unsigned char *m,
                              size_t n, uint64_t at)
{
    if (h->has_space || n < 4 || m[0] < 1 || m[0] > 2)
        return keel_h5_bad(w, at, "a wrong dataspace");
    h->has_space = true;
    const size_t begin = m[0] == 1 ? 8 : 4;
    const int rank = m[1];
    if (m[0] == 2 && m[3] == 2) keel_h5_refuse(h, "it has no elements at all (a null dataspace)");
    if (rank > KEEL_RANK_MAX) {
        keel_h5_refuse(h, "it has %d dims, more than %d", rank, KEEL_RANK_MAX);
        return KEEL_OK;
    }
    if (n < begin + 8 * (size_t)rank) return keel_h5_bad(w, at, "a dataspace that is cut short");
    h->array.shape.rank = rank;
    for (int i = 0; i < rank; i++) {
        const uint64_t dim = keel_h5_get(m + begin + 8 * i, 8);
        if (dim > INT64_MAX) return keel_h5_bad(w, at, "a dim that is too large");
        h->array.shape.dim[i] = (int64_t)dim;
    }
    return KEEL_OK;
}

static void read_whole_type(keel_h5_header *h, const unsigned char *m, size_t n)
{
    const size_t size = (size_t)keel_h5_get(m + 4, 4);
    char descr[4] = { m[1] & 1 ? '>' : '<', m[1] & 8 ? 'i' : 'u', 0, 0 };
    if (n < 12 || keel_h5_get(m + 8, 2) != 0 || keel_h5_get(m + 10, 2) != 8 * size || size > 8) {
        keel_h5_refuse(h, "its integers have unused bits");
        return;
    }
    descr[2] = (char)('0' + size);
    if (keel_npy_type_read(&h->array.type, descr) < 0)
        keel_h5_refuse(h, "it has %sint%zu; integers of 1, 2, 4 and 8 bytes are read",
                       m[1] & 8 ? "" : "u", 8 * size);
}

static void read_real_type(keel_h5_header *h, const unsigned char *m, size_t n)
{
    static const unsigned char ieee[3][5] = { { 10, 5, 0, 10, 15 },
                                              { 23, 8, 0, 23, 127 },
                                              { 52, 11, 0, 52, 255 } }; /* 255: low byte of 1023 */
    const size_t size = (size_t)keel_h5_get(m + 4, 4);
    const int k = size == 2 ? 0 : size == 4 ? 1 : size == 8 ? 2 : -1;
    char descr[4] = { m[1] & 1 ? '>' : '<', 'f', (char)('0' + size % 10), 0 };
    if (k < 0 || n < 20 || keel_h5_get(m + 8, 2) != 0 || keel_h5_get(m + 10, 2) != 8 * size ||
        memcmp(m + 12, ieee[k], 5) != 0 || keel_h5_get(m + 17, 1) != (k == 2 ? 3 : 0) ||
        m[1] & 0x40 || keel_npy_type_read(&h->array.type, descr) < 0)
        keel_h5_refuse(h, "its floats are not those of IEEE 754 with 2, 4 or 8 bytes");
}

static keel_status read_type(const keel_h5_walk *w, keel_h5_header *h, const unsigned char *m,
                             size_t n, uint64_t at)
{
    static const char *const classes[] = {
        "integers",    "floats",    "times",      "texts",          "bit fields",
        "opaque data", "compounds", "references", "an enumeration", "lists or texts of any length",
        "arrays"
    };
    if (h->has_type || n < 8) return keel_h5_bad(w, at, "a wrong datatype");
    h->has_type = true;
    const int class = m[0] & 15;
    if (class == 0)
        read_whole_type(h, m, n);
    else if (class == 1)
        read_real_type(h, m, n);
    else if (class == 8 && keel_h5_get(m + 1, 2) == 2 && n >= 16 && keel_h5_get(m + 4, 4) == 1 &&
             (m[8] & 15) == 0)
        return keel_npy_type_named(&h->array.type, "bool"); /* as h5py writes it */
    else
        keel_h5_refuse(h, "it has %s, not numbers%s",
                       class <= 10 ? classes[class] : "an unknown type",
                       class == 3 || class == 9 ? "; .npz and .csv can have texts" : "");
    return KEEL_OK;
}

static keel_status read_layout(const keel_h5_walk *w, keel_h5_header *h, const unsigned char *m,
                               size_t n, uint64_t at)
{
    if (h->has_layout || n < 2) return keel_h5_bad(w, at, "a wrong layout");
    h->has_layout = true;
    if (m[0] != 3 || m[1] > 2) {
        keel_h5_refuse(h, "its layout is that of a newer or very old version of HDF5");
        return KEEL_OK;
    }
    if (n < (m[1] == 0 ? 4 : m[1] == 1 ? 18 : 11))
        return keel_h5_bad(w, at, "a layout that is cut short");
    if (m[1] == 0) { /* compact: the elements stand in the message */
        h->array.at = at + 4;
        h->data_bytes = keel_h5_get(m + 2, 2);
        if (h->data_bytes > n - 4) return keel_h5_bad(w, at, "a compact array that is cut short");
        return KEEL_OK;
    }
    if (m[1] == 1) {
        h->array.at = keel_h5_get(m + 2, 8);
        h->data_bytes = keel_h5_get(m + 10, 8);
        return KEEL_OK;
    }
    h->array.chunked = true;
    h->chunk_rank = m[2] - 1;
    h->array.at = keel_h5_get(m + 3, 8);
    if (h->chunk_rank < 1 || h->chunk_rank > KEEL_RANK_MAX) {
        keel_h5_refuse(h, "its chunks have %d dims", h->chunk_rank);
        return KEEL_OK;
    }
    if (n < 11 + 4 * (size_t)(h->chunk_rank + 1))
        return keel_h5_bad(w, at, "a layout that is cut short");
    for (int i = 0; i < h->chunk_rank; i++)
        h->array.chunk[i] = (int64_t)keel_h5_get(m + 11 + 4 * i, 4);
    return KEEL_OK;
}

static keel_status read_filters(const keel_h5_walk *w, keel_h5_header *h, const unsigned char *m,
                                size_t n, uint64_t at)
{
    static const struct {
        int id;
        const char *name;
    } known[] = {
        { 4, "szip" },      { 5, "nbit" },    { 6, "scaleoffset" },    { 32000, "lzf" },
        { 32001, "blosc" }, { 32004, "lz4" }, { 32008, "bitshuffle" }, { 32015, "zstd" }
    };
    if (n < 2 || m[0] < 1 || m[0] > 2) return keel_h5_bad(w, at, "filters of an unknown version");
    size_t k = m[0] == 1 ? 8 : 2;
    for (int i = 0; i < m[1]; i++) {
        const bool named = m[0] == 1 || (k + 2 <= n && keel_h5_get(m + k, 2) >= 256);
        const size_t head = named ? 8 : 6;
        if (k > n || n - k < head) return keel_h5_bad(w, at, "filters that are cut short");
        const int id = (int)keel_h5_get(m + k, 2);
        size_t name = named ? (size_t)keel_h5_get(m + k + 2, 2) : 0;
        const size_t values = (size_t)keel_h5_get(m + k + head - 2, 2);
        if (m[0] == 1) name = (name + 7) & ~(size_t)7;
        k += head + name + 4 * values + (m[0] == 1 && values % 2 ? 4 : 0);
        if (i < KEEL_H5_FILTERS_MAX && id >= KEEL_H5_DEFLATE && id <= KEEL_H5_FLETCHER32) {
            h->array.filter[i] = (keel_h5_filter)id;
            h->array.n_filters = i + 1;
            continue;
        }
        if (i >= KEEL_H5_FILTERS_MAX) {
            keel_h5_refuse(h, "it has more than %d filters", KEEL_H5_FILTERS_MAX);
            return KEEL_OK;
        }
        const char *what = NULL;
        for (size_t j = 0; j < sizeof known / sizeof *known; j++)
            if (known[j].id == id) what = known[j].name;
        if (what)
            keel_h5_refuse(h, "it is compressed by %s; gzip, shuffle and fletcher32 are read",
                           what);
        else
            keel_h5_refuse(h, "it has a filter of number %d; gzip is read", id);
    }
    return KEEL_OK;
}

static keel_status read_message(keel_h5_walk *w, keel_h5_header *h, unsigned type,
                                const unsigned char *m, size_t n, uint64_t at, bool root)
{
    switch (type) {
    case 0x01:
        return read_space(w, h, m, n, at);
    case 0x03:
        return read_type(w, h, m, n, at);
    case 0x07:
        keel_h5_refuse(h, "its elements are in another file");
        return KEEL_OK;
    case 0x08:
        return read_layout(w, h, m, n, at);
    case 0x0B:
        return read_filters(w, h, m, n, at);
    case 0x0C: { /* an attribute: only its name is looked at */
        const size_t begin = n && m[0] == 3 ? 9 : 8;
        const char *name = (const char *)m + begin;
        if (root && n > begin + 14 && memchr(name, 0, n - begin))
            w->d->keras |= !strcmp(name, "keras_version") || !strcmp(name, "model_config") ||
                           !strcmp(name, "layer_names");
        return KEEL_OK;
    }
    case 0x10:
        if (n < 16) return keel_h5_bad(w, at, "a continuation that is cut short");
        if (h->n_pieces == KEEL_H5_PIECES_MAX)
            return keel_h5_bad(w, at, "an object header in too many pieces");
        h->pieces[h->n_pieces].at = keel_h5_get(m, 8);
        h->pieces[h->n_pieces++].n_bytes = keel_h5_get(m + 8, 8);
        return KEEL_OK;
    case 0x11:
        if (n < 16 || h->has_table) return keel_h5_bad(w, at, "a wrong symbol table");
        h->btree = keel_h5_get(m, 8);
        h->heap = keel_h5_get(m + 8, 8);
        h->has_table = true;
        return KEEL_OK;
    default: /* times, fill values, comments: they do not change how elements are read */
        return KEEL_OK;
    }
}

static keel_status read_piece(keel_h5_walk *w, keel_h5_header *h, uint64_t at, uint64_t n_bytes,
                              bool root)
{
    unsigned char *p = NULL;
    keel_status s = keel_h5_block(w, at, n_bytes, "piece of an object header", &p);
    for (uint64_t k = 0; s >= 0 && n_bytes - k >= 8;) {
        const unsigned type = (unsigned)keel_h5_get(p + k, 2),
                       size = (unsigned)keel_h5_get(p + k + 2, 2);
        if (size > n_bytes - k - 8) {
            s = keel_h5_bad(w, at + k, "a header message that ends outside its header");
        } else if (p[k + 4] & 2) { /* shared: its content is elsewhere */
            if (type == 0x03) {
                h->has_type = true;
                keel_h5_refuse(h, "it has a named datatype");
            } else if (type == 0x01 || type == 0x08 || type == 0x0B) {
                s = keel_h5_bad(w, at + k, "a shared header message");
            }
        } else {
            s = read_message(w, h, type, p + k + 8, size, at + k + 8, root);
        }
        k += 8 + (uint64_t)size;
    }
    keel_free(p);
    return s;
}

keel_status keel_h5_header_read(keel_h5_walk *w, keel_h5_header *h, uint64_t at, bool root)
{
    unsigned char *p = NULL;
    KEEL_TRY(keel_h5_block(w, at, 16, "object header", &p));
    const bool newer = !memcmp(p, "OHDR", 4);
    const int version = p[0];
    h->pieces[0].at = at + 16;
    h->pieces[0].n_bytes = keel_h5_get(p + 8, 4);
    h->n_pieces = 1;
    keel_free(p);
    if (newer)
        return keel_fail(KEEL_EUNSUP,
                         "%s: HDF5 in the newer format (libver='latest' or track_order); write it "
                         "with h5py's defaults",
                         w->d->file.path);
    if (version != 1) return keel_h5_bad(w, at, "not an object header");
    for (int i = 0; i < h->n_pieces; i++)
        KEEL_TRY(read_piece(w, h, h->pieces[i].at, h->pieces[i].n_bytes, root));
    return KEEL_OK;
}
