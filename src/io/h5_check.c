/* The strict HDF5 reader; see h5_check.h.
 *
 * Safety: every block (superblock, header, B-tree node, heap, symbol node, elements) is claimed
 * before it is read. A claim must lie inside the file, and all claims together may not exceed the
 * size of the file. So a cycle of addresses ends, and the work is linear in the size of the file.
 * At the end the claims are sorted, and none may overlap another. */
#include "io/h5_check.h"
#include "base/memory.h"
#include "tensor/shape.h"
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    PATH_BYTES_MAX = 512,
    /* An entry takes 300 bytes while the file is read. For a layer with two weights Keras writes 4
     * entries, with Adam 6 more, with paths of 20 to 50 bytes. */
    ENTRIES_MAX = 1 << 18,
    NAMES_BYTES_MAX = 16 << 20,
    BTREE_LEVEL_MAX = 8,
    CHUNKS_MAX = 64, /* in one object header */
    TREE_K_MAX = 512,
    SUPERBLOCK_BYTES = KEEL_H5_BEGIN_BYTES,
    SYMBOL_BYTES = 40,
};
#define ADDRESS_UNDEFINED UINT64_MAX

typedef struct span {
    size_t begin, end;
    const char *what;
} span;

typedef struct object { /* a group or dataset; its header may not have been read yet */
    size_t path;        /* offset in walk.names */
    uint64_t header;
    keel_h5_entry entry; /* its path is set by make_tree */
} object;

typedef struct attribute {
    size_t object, at, n_bytes;
} attribute;

typedef struct block { /* kept until all is checked */
    struct block *before;
    unsigned char bytes[];
} block;

typedef struct walk {
    const keel_h5_source *source;
    block *blocks;
    size_t size, claimed;
    unsigned leaf_k, internal_k;
    span *spans;
    size_t n_spans, spans_capacity;
    object *objects;
    size_t n_objects, objects_capacity;
    attribute *attributes;
    size_t n_attributes, attributes_capacity;
    char *names;
    size_t names_bytes, names_capacity;
} walk;

KEEL_PRINTF(2, 3) static keel_status bad(uint64_t at, const char *format, ...)
{
    char text[KEEL_ERROR_MAX / 2];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    return keel_fail(KEEL_EFORMAT, "weights file, offset %llu: %s", (unsigned long long)at, text);
}

static uint16_t get16(const unsigned char *p)
{
    return (uint16_t)(p[0] | p[1] << 8);
}

static uint32_t get32(const unsigned char *p)
{
    return get16(p) | (uint32_t)get16(p + 2) << 16;
}

static uint64_t get64(const unsigned char *p)
{
    return get32(p) | (uint64_t)get32(p + 4) << 32;
}

/* Grow *array, which has `n` elements of `size` bytes, so that `more` can be appended. */
static keel_status reserve(void **array, size_t *capacity, size_t n, size_t more, size_t size)
{
    if (n + more <= *capacity) return KEEL_OK;
    const size_t wanted = 2 * (n + more) + 64;
    void *grown = keel_grow(*array, wanted, size);
    if (!grown) return KEEL_ENOMEM;
    *array = grown;
    *capacity = wanted;
    return KEEL_OK;
}

/* The bytes of a block that lies in the file. */
static keel_status get_block(walk *w, uint64_t at, uint64_t n_bytes, const unsigned char **bytes)
{
    block *b = keel_calloc(1, sizeof *b + (size_t)n_bytes);
    if (!b) return KEEL_ENOMEM;
    b->before = w->blocks;
    w->blocks = b;
    *bytes = b->bytes;
    return w->source->read(w->source->context, at, b->bytes, (size_t)n_bytes);
}

/* Reserve the block [at, at + n_bytes) for a `what` (its name in messages), and give its bytes.
 * bytes NULL: they are not needed. */
static keel_status claim(walk *w, uint64_t at, uint64_t n_bytes, const char *what,
                         const unsigned char **bytes)
{
    if (at > w->size || n_bytes > w->size - at)
        return bad(at, "a %s of %llu bytes does not fit in the file of %zu", what,
                   (unsigned long long)n_bytes, w->size);
    if (n_bytes > w->size - w->claimed) return bad(at, "a %s overlaps another block", what);
    w->claimed += n_bytes;
    KEEL_TRY(reserve((void **)&w->spans, &w->spans_capacity, w->n_spans, 1, sizeof *w->spans));
    w->spans[w->n_spans++] = (span){ (size_t)at, (size_t)(at + n_bytes), what };
    return bytes ? get_block(w, at, n_bytes, bytes) : KEEL_OK;
}

/* ---- the messages of an object header ---- */

typedef struct header {
    size_t object; /* whose header it is */
    uint64_t at;
    bool has_space, has_type, has_layout, has_table;
    keel_h5_type type;
    size_t element_bytes;
    keel_shape shape;
    uint64_t data, data_bytes; /* from the layout message */
    uint64_t btree, heap;      /* from the symbol table message */
    struct {
        uint64_t at, n_bytes;
    } chunks[CHUNKS_MAX];
    int n_chunks;
} header;

static keel_status read_space(header *h, const unsigned char *m, size_t n, uint64_t at)
{
    if (h->has_space) return bad(at, "a second dataspace");
    if (n < 4 || m[0] < 1 || m[0] > 2) return bad(at, "a dataspace of unknown version");
    if (m[0] == 2 && m[3] == 2) return keel_fail(KEEL_EUNSUP, "weights file: a null dataspace");
    const size_t begin = m[0] == 1 ? 8 : 4;
    const int rank = m[1], copies = m[2] & 1 ? 2 : 1; /* bit 0: maximum sizes follow */
    if (m[2] > 1) return bad(at, "a dataspace with unknown flags %d", m[2]);
    if (rank > KEEL_RANK_MAX)
        return keel_fail(KEEL_EUNSUP, "weights file: an array of %d dimensions, at most %d", rank,
                         KEEL_RANK_MAX);
    if (n < begin + (size_t)(8 * rank * copies)) return bad(at, "a dataspace is cut short");
    h->shape.rank = rank;
    for (int i = 0; i < rank; i++) {
        const uint64_t dim = get64(m + begin + 8 * i);
        if (dim > INT64_MAX || (copies == 2 && get64(m + begin + 8 * (rank + i)) != dim))
            return bad(at, "a dataspace that is too large or can grow");
        h->shape.dim[i] = (int64_t)dim;
    }
    h->has_space = true;
    return KEEL_OK;
}

/* A datatype message is compared as a whole: class, sign, byte order, sizes and bit positions. */
static keel_status read_type(header *h, const unsigned char *m, size_t n, uint64_t at)
{
    static const struct {
        unsigned char n, bytes[20];
    } types[KEEL_H5_TYPE_COUNT] = {
        [KEEL_H5_FLOAT32] = { 20,
                              { 0x11, 0x20, 31, 0, 4, 0, 0, 0, 0, 0, 32, 0, 23, 8, 0, 23, 127 } },
        [KEEL_H5_FLOAT64] = { 20,
                              { 0x11, 0x20, 63, 0, 8, 0, 0, 0, 0, 0, 64, 0, 52, 11, 0, 52, 255,
                                3 } },
        [KEEL_H5_UINT8] = { 12, { 0x10, 0, 0, 0, 1, 0, 0, 0, 0, 0, 8 } },
        [KEEL_H5_INT32] = { 12, { 0x10, 8, 0, 0, 4, 0, 0, 0, 0, 0, 32 } },
        [KEEL_H5_INT64] = { 12, { 0x10, 8, 0, 0, 8, 0, 0, 0, 0, 0, 64 } },
        [KEEL_H5_UINT32] = { 12, { 0x10, 0, 0, 0, 4, 0, 0, 0, 0, 0, 32 } },
    };
    static const char *const classes[] = {
        "integer",         "float",     "time",
        "string",          "bit field", "opaque (bfloat16?)",
        "compound",        "reference", "enumeration (bool?)",
        "variable length", "array",
    };
    if (h->has_type) return bad(at, "a second datatype");
    if (n < 8) return bad(at, "a datatype is cut short");
    for (int i = 0; i < KEEL_H5_TYPE_COUNT; i++) {
        if (n < types[i].n || memcmp(m, types[i].bytes, types[i].n) != 0) continue;
        h->type = (keel_h5_type)i;
        h->element_bytes = m[4];
        h->has_type = true;
        return KEEL_OK;
    }
    const int class = m[0] & 15;
    if (class == 0 && (m[1] & 8) && get32(m + 4) == 1)
        return keel_fail(KEEL_EUNSUP,
                         "weights file, offset %llu: an array of int8, as quantize() makes them of "
                         "kernels: quantized layers are not supported: train before quantize()",
                         (unsigned long long)at);
    return keel_fail(KEEL_EUNSUP,
                     "weights file, offset %llu: an array of type %s with %u bytes; supported are "
                     "little-endian float32, float64, uint8, uint32, int32 and int64",
                     (unsigned long long)at,
                     class < (int)(sizeof classes / sizeof *classes) ? classes[class] : "unknown",
                     get32(m + 4));
}

static keel_status read_layout(header *h, const unsigned char *m, size_t n, uint64_t at)
{
    static const char *const classes[] = { "compact", "contiguous", "chunked", "virtual" };
    if (h->has_layout) return bad(at, "a second layout");
    if (n < 2 || m[0] < 3 || m[0] > 4) return bad(at, "a layout of unknown version");
    if (m[1] != 1)
        return keel_fail(KEEL_EUNSUP,
                         "weights file, offset %llu: a %s array; Keras writes "
                         "contiguous arrays",
                         (unsigned long long)at, m[1] < 4 ? classes[m[1]] : "strange");
    if (n < 18) return bad(at, "a layout is cut short");
    h->data = get64(m + 2);
    h->data_bytes = get64(m + 10);
    h->has_layout = true;
    return KEEL_OK;
}

/* Name, type, dataspace and value follow one another. Only the sizes of the first three are
 * checked.
 */
static keel_status read_attribute(walk *w, const header *h, const unsigned char *m, size_t n,
                                  uint64_t at)
{
    if (n < 8 || m[0] < 1 || m[0] > 3) return bad(at, "an attribute of unknown version");
    if (m[0] > 1 && m[1] != 0) return bad(at, "an attribute with a shared type");
    const size_t round = m[0] == 1 ? 7 : 0; /* version 1 pads each part to 8 bytes */
    const size_t name = get16(m + 2), type = get16(m + 4), space = get16(m + 6);
    const size_t begin = m[0] == 3 ? 9 : 8;
    const size_t need =
        begin + ((name + round) & ~round) + ((type + round) & ~round) + ((space + round) & ~round);
    if (n < need || name == 0 || m[begin + name - 1] != 0)
        return bad(at, "an attribute is cut short or has no name");
    KEEL_TRY(reserve((void **)&w->attributes, &w->attributes_capacity, w->n_attributes, 1,
                     sizeof *w->attributes));
    w->attributes[w->n_attributes++] = (attribute){ h->object, (size_t)at, n };
    return KEEL_OK;
}

static keel_status read_message(walk *w, header *h, unsigned type, const unsigned char *m, size_t n,
                                uint64_t at)
{
    switch (type) {
    case 0x00: /* NIL */
    case 0x04: /* fill value, old */
    case 0x05: /* fill value: only matters for elements that were never written */
    case 0x0E: /* modification time, old */
    case 0x12: /* modification time */
        return KEEL_OK;
    case 0x01:
        return read_space(h, m, n, at);
    case 0x03:
        return read_type(h, m, n, at);
    case 0x08:
        return read_layout(h, m, n, at);
    case 0x0C:
        return read_attribute(w, h, m, n, at);
    case 0x10:
        if (n < 16) return bad(at, "a continuation is cut short");
        if (h->n_chunks == CHUNKS_MAX)
            return bad(at, "an object header in more than %d pieces", CHUNKS_MAX);
        h->chunks[h->n_chunks].at = get64(m);
        h->chunks[h->n_chunks++].n_bytes = get64(m + 8);
        return KEEL_OK;
    case 0x11:
        if (n < 16 || h->has_table) return bad(at, "a symbol table is cut short or repeated");
        h->btree = get64(m);
        h->heap = get64(m + 8);
        h->has_table = true;
        return KEEL_OK;
    case 0x06:
        return keel_fail(KEEL_EUNSUP, "weights file, offset %llu: a link that Keras does not write",
                         (unsigned long long)at);
    case 0x07:
        return keel_fail(KEEL_EUNSUP, "weights file, offset %llu: elements in an external file",
                         (unsigned long long)at);
    case 0x0B:
        return keel_fail(KEEL_EUNSUP, "weights file, offset %llu: a filter (compression)",
                         (unsigned long long)at);
    default:
        return keel_fail(KEEL_EUNSUP,
                         "weights file, offset %llu: header message 0x%02x, which "
                         "Keras does not write",
                         (unsigned long long)at, type);
    }
}

static keel_status read_header(walk *w, header *h)
{
    const unsigned char *p = NULL;
    if (h->at > w->size || w->size - h->at < 16) return bad(h->at, "an object header is cut short");
    KEEL_TRY(claim(w, h->at, 16, "object header", &p));
    if (p[0] != 1) return bad(h->at, "an object header of version %d; Keras writes 1", p[0]);
    if (get32(p + 4) != 1) return bad(h->at, "an object with %u links", get32(p + 4));
    const unsigned messages = get16(p + 2);
    const uint32_t first = get32(p + 8);
    unsigned seen = 0;
    h->chunks[h->n_chunks].at = h->at + 16;
    h->chunks[h->n_chunks++].n_bytes = first;
    for (int i = 0; i < h->n_chunks; i++) {
        const uint64_t at = h->chunks[i].at, n_bytes = h->chunks[i].n_bytes;
        KEEL_TRY(claim(w, at, n_bytes, "piece of an object header", &p));
        for (uint64_t k = 0; k < n_bytes; seen++) {
            if (n_bytes - k < 8) return bad(at + k, "a header message is cut short");
            const unsigned type = get16(p + k), size = get16(p + k + 2), flags = p[k + 4];
            if (size % 8 != 0 || size > n_bytes - k - 8)
                return bad(at + k, "a header message of %u bytes ends outside its header", size);
            if (flags & 2) return bad(at + k, "a shared header message");
            KEEL_TRY(read_message(w, h, type, p + k + 8, size, at + k + 8));
            k += 8 + size;
        }
    }
    if (seen != messages)
        return bad(h->at, "an object header has %u messages, it announces %u", seen, messages);
    return KEEL_OK;
}

/* ---- groups ---- */

typedef struct heap { /* the names in one group */
    uint64_t at;
    const unsigned char *bytes;
    size_t n_bytes;
} heap;

/* Append an object: its path is the parent's path and the name at `offset` in the heap. */
static keel_status add_object(walk *w, const heap *names, uint64_t offset, size_t parent,
                              uint64_t header_at)
{
    if (offset >= names->n_bytes) return bad(names->at, "a name begins outside its heap");
    const char *name = (const char *)names->bytes + offset;
    const size_t n = strnlen(name, names->n_bytes - offset);
    if (n == names->n_bytes - offset)
        return bad(names->at, "a name without an end inside its heap");
    if (n == 0 || !strcmp(name, ".") || !strcmp(name, "..") || memchr(name, '/', n))
        return bad(names->at + offset, "a name that is empty, '.', '..' or has a '/'");
    for (size_t i = 0; i < n; i++)
        if ((unsigned char)name[i] < 32 || name[i] == 127)
            return bad(names->at + offset, "a name with control characters");
    /* The first object is the root, whose path is empty. */
    const size_t above = strlen(w->names + w->objects[parent].path), slash = above > 0;
    if (above + slash + n >= PATH_BYTES_MAX)
        return bad(names->at + offset, "a path of more than %d bytes", PATH_BYTES_MAX - 1);
    if (w->n_objects == ENTRIES_MAX)
        return bad(names->at, "more than %d groups and arrays", ENTRIES_MAX);
    if (w->names_bytes + above + n + 2 > NAMES_BYTES_MAX)
        return bad(names->at, "the names of groups and arrays have more than %d bytes",
                   NAMES_BYTES_MAX);
    KEEL_TRY(
        reserve((void **)&w->names, &w->names_capacity, w->names_bytes, above + slash + n + 1, 1));
    KEEL_TRY(
        reserve((void **)&w->objects, &w->objects_capacity, w->n_objects, 1, sizeof *w->objects));
    char *path = w->names + w->names_bytes;
    memcpy(path, w->names + w->objects[parent].path, above);
    if (slash) path[above] = '/';
    memcpy(path + above + slash, name, n);
    path[above + slash + n] = 0;
    w->objects[w->n_objects++] = (object){ .path = w->names_bytes, .header = header_at };
    w->names_bytes += above + slash + n + 1;
    return KEEL_OK;
}

static keel_status read_symbols(walk *w, const heap *names, size_t parent, uint64_t at)
{
    const unsigned char *p = NULL;
    KEEL_TRY(claim(w, at, 8 + 2 * w->leaf_k * SYMBOL_BYTES, "symbol node", &p));
    const unsigned count = get16(p + 6);
    if (memcmp(p, "SNOD", 4) != 0 || p[4] != 1 || count > 2 * w->leaf_k)
        return bad(at, "not a symbol node");
    for (unsigned i = 0; i < count; i++) {
        const unsigned char *symbol = p + 8 + SYMBOL_BYTES * i;
        if (get32(symbol + 16) > 1) /* cache type: 0 none, 1 a group's addresses, 2 a soft link */
            return bad(at, "a symbolic link, which Keras does not write");
        KEEL_TRY(add_object(w, names, get64(symbol), parent, get64(symbol + 8)));
    }
    return KEEL_OK;
}

/* level -1: the root, which states its own level. Recursion is at most BTREE_LEVEL_MAX deep, since
 * each child is one level lower. */
static keel_status read_btree(walk *w, const heap *names, size_t parent, uint64_t at, int level)
{
    const unsigned char *p = NULL;
    KEEL_TRY(claim(w, at, 32 + 32 * (uint64_t)w->internal_k, "B-tree node", &p));
    if (memcmp(p, "TREE", 4) != 0 || p[4] != 0) return bad(at, "not the B-tree of a group");
    const int here = p[5];
    const unsigned used = get16(p + 6);
    if (here > BTREE_LEVEL_MAX || (level >= 0 && here != level))
        return bad(at, "a B-tree node of the wrong level %d", here);
    if (used > 2 * w->internal_k) return bad(at, "a B-tree node with %u children", used);
    for (unsigned i = 0; i < used; i++) {
        const uint64_t child =
            get64(p + 32 + 16 * i); /* keys and children alternate, 8 bytes each */
        if (here == 0)
            KEEL_TRY(read_symbols(w, names, parent, child));
        else
            KEEL_TRY(read_btree(w, names, parent, child, here - 1));
    }
    return KEEL_OK;
}

static keel_status read_group(walk *w, size_t index, const header *h)
{
    const unsigned char *p = NULL;
    heap names = { 0 };
    KEEL_TRY(claim(w, h->heap, 32, "heap", &p));
    if (memcmp(p, "HEAP", 4) != 0 || p[4] != 0) return bad(h->heap, "not a local heap");
    names.at = get64(p + 24);
    const uint64_t n_bytes = get64(p + 8);
    KEEL_TRY(claim(w, names.at, n_bytes, "heap's names", &names.bytes));
    names.n_bytes = (size_t)n_bytes;
    return read_btree(w, &names, index, h->btree, -1);
}

static keel_status read_dataset(walk *w, object *o, const header *h)
{
    if (!h->has_space || !h->has_type || !h->has_layout)
        return bad(h->at, "neither a group nor an array");
    keel_status s = keel_shape_check(&h->shape, 8); /* a uint32 element is widened to 8 bytes */
    if (s < 0) return keel_fail_within(s, "weights file, offset %llu", (unsigned long long)h->at);
    const uint64_t n_bytes = (uint64_t)keel_shape_count(&h->shape) * h->element_bytes;
    if (h->data_bytes != n_bytes) {
        char shape[96];
        keel_shape_text(shape, &h->shape);
        return bad(h->at, "an array of shape %s has %llu bytes, it needs %llu", shape,
                   (unsigned long long)h->data_bytes, (unsigned long long)n_bytes);
    }
    if (n_bytes > 0) KEEL_TRY(claim(w, h->data, n_bytes, "array", NULL));
    o->entry = (keel_h5_entry){ .type = h->type,
                                .shape = h->shape,
                                .offset = n_bytes ? (size_t)h->data : 0,
                                .n_bytes = (size_t)n_bytes };
    return KEEL_OK;
}

static keel_status read_object(walk *w, size_t index)
{
    header h = { .object = index, .at = w->objects[index].header };
    KEEL_TRY(read_header(w, &h));
    if (!h.has_table) return read_dataset(w, &w->objects[index], &h);
    if (h.has_space || h.has_type || h.has_layout)
        return bad(h.at, "an object that is both a group and an array");
    w->objects[index].entry.is_group = true;
    return read_group(w, index, &h);
}

/* ---- the whole ---- */

static keel_status read_superblock(walk *w, uint64_t *root)
{
    const unsigned char *p = NULL;
    KEEL_TRY(get_block(w, 0, w->size < SUPERBLOCK_BYTES ? w->size : SUPERBLOCK_BYTES, &p));
    if (w->size < 8 || memcmp(p, "\x89HDF\r\n\x1a\n", 8) != 0) return bad(0, "not an HDF5 file");
    if (w->size < SUPERBLOCK_BYTES)
        return bad(0, "cut short within the first %d bytes", SUPERBLOCK_BYTES);
    if (p[8] != 0)
        return keel_fail(KEEL_EUNSUP, "weights file: superblock version %d; Keras writes 0", p[8]);
    if (p[9] != 0 || p[10] != 0 || p[12] != 0 || p[13] != 8 || p[14] != 8)
        return bad(9, "a superblock that Keras does not write");
    w->leaf_k = get16(p + 16);
    w->internal_k = get16(p + 18);
    if (w->leaf_k < 1 || w->leaf_k > TREE_K_MAX || w->internal_k < 1 || w->internal_k > TREE_K_MAX)
        return bad(16, "B-trees of order %u and %u", w->leaf_k, w->internal_k);
    if (get64(p + 24) != 0 || get64(p + 32) != ADDRESS_UNDEFINED ||
        get64(p + 48) != ADDRESS_UNDEFINED)
        return bad(24, "a base address, free space or driver block, which Keras does not write");
    if (get64(p + 40) > w->size)
        return bad(40, "cut short: it announces %llu bytes and has %zu",
                   (unsigned long long)get64(p + 40), w->size);
    w->size = (size_t)get64(p + 40);
    if (w->size < SUPERBLOCK_BYTES || get32(p + 72) > 1) return bad(40, "a damaged superblock");
    *root = get64(p + 64);
    return claim(w, 0, SUPERBLOCK_BYTES, "superblock", NULL);
}

keel_status keel_h5_announced(uint64_t *n_bytes, const void *begin)
{
    const unsigned char *p = begin;
    if (memcmp(p, "\x89HDF\r\n\x1a\n", 8) != 0) return bad(0, "not an HDF5 file");
    if (p[8] != 0)
        return keel_fail(KEEL_EUNSUP, "weights file: superblock version %d; Keras writes 0", p[8]);
    *n_bytes = get64(p + 40);
    return KEEL_OK;
}

static int by_begin(const void *a, const void *b)
{
    const span *x = a, *y = b;
    return x->begin != y->begin ? (x->begin < y->begin ? -1 : 1)
                                : (x->end > y->end) - (x->end < y->end);
}

static keel_status check_overlap(walk *w)
{
    qsort(w->spans, w->n_spans, sizeof *w->spans, by_begin);
    for (size_t i = 1; i < w->n_spans; i++)
        if (w->spans[i].begin < w->spans[i - 1].end)
            return bad(w->spans[i].begin, "a %s lies within a %s", w->spans[i].what,
                       w->spans[i - 1].what);
    return KEEL_OK;
}

static int by_path(const void *a, const void *b)
{
    return strcmp(((const keel_h5_entry *)a)->path, ((const keel_h5_entry *)b)->path);
}

static int by_path_and_place(const void *a, const void *b)
{
    const keel_h5_attribute *x = a, *y = b;
    const int order = strcmp(x->path, y->path);
    return order ? order : (x->offset > y->offset) - (x->offset < y->offset);
}

static keel_status make_attributes(const walk *w, keel_h5_tree *t)
{
    t->attributes = keel_calloc(w->n_attributes, sizeof *t->attributes);
    if (!t->attributes) return KEEL_ENOMEM;
    for (size_t i = 0; i < w->n_attributes; i++)
        t->attributes[t->n_attributes++] =
            (keel_h5_attribute){ w->names + w->objects[w->attributes[i].object].path,
                                 w->attributes[i].at, w->attributes[i].n_bytes };
    qsort(t->attributes, t->n_attributes, sizeof *t->attributes, by_path_and_place);
    return KEEL_OK;
}

/* All objects but the root, and all attributes, with the memory of their names. */
static keel_status make_tree(walk *w, keel_h5_tree *t)
{
    t->entries = keel_calloc(w->n_objects, sizeof *t->entries);
    if (!t->entries) return KEEL_ENOMEM;
    for (size_t i = 1; i < w->n_objects; i++) {
        t->entries[t->count] = w->objects[i].entry;
        t->entries[t->count++].path = w->names + w->objects[i].path;
    }
    qsort(t->entries, t->count, sizeof *t->entries, by_path);
    for (size_t i = 1; i < t->count; i++)
        if (!strcmp(t->entries[i - 1].path, t->entries[i].path))
            return keel_fail(KEEL_EFORMAT, "weights file: '%s' occurs twice", t->entries[i].path);
    KEEL_TRY(make_attributes(w, t));
    t->names = w->names;
    w->names = NULL;
    return KEEL_OK;
}

keel_status keel_h5_check(keel_h5_tree *out, const keel_h5_source *source)
{
    walk w = { .source = source, .size = source->n_bytes };
    keel_h5_tree t = { 0 };
    uint64_t root = 0;
    keel_status s = read_superblock(&w, &root);
    if (s < 0) goto out;
    s = reserve((void **)&w.names, &w.names_capacity, 0, 1, 1);
    if (s >= 0) s = reserve((void **)&w.objects, &w.objects_capacity, 0, 1, sizeof *w.objects);
    if (s < 0) goto out;
    w.names[w.names_bytes++] = 0;
    w.objects[w.n_objects++] = (object){ .header = root };
    for (size_t i = 0; i < w.n_objects; i++) { /* read_object appends what it finds */
        s = read_object(&w, i);
        if (s < 0) {
            if (i > 0) s = keel_fail_within(s, "'%s'", w.names + w.objects[i].path);
            goto out;
        }
    }
    if (!w.objects[0].entry.is_group) s = bad(64, "the root is not a group");
    if (s >= 0) s = check_overlap(&w);
    if (s >= 0) s = make_tree(&w, &t);
    if (s < 0) goto out;
    *out = t;
    t = (keel_h5_tree){ 0 };
out:
    keel_h5_tree_free(&t);
    keel_free(w.names);
    keel_free(w.objects);
    keel_free(w.spans);
    keel_free(w.attributes);
    for (block *b; (b = w.blocks); keel_free(b)) w.blocks = b->before;
    return s;
}

void keel_h5_tree_free(keel_h5_tree *t)
{
    if (!t) return;
    keel_free(t->entries);
    keel_free(t->attributes);
    keel_free(t->names);
    *t = (keel_h5_tree){ 0 };
}
