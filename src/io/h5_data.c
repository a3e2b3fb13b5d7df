/* The structure of HDF5 files of data; see h5_data.h. Rows are read by h5_chunks.c. */
#include "io/h5_data_impl.h"
#include "base/memory.h"
#include "tensor/dtype.h"
#include "tensor/shape.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    ARRAYS_MAX = 1 << 16,
    OBJECTS_MAX = 1 << 17,
    NAMES_BYTES_MAX = 16 << 20,
    META_BYTES_MAX = 64 << 20,
    CHUNKS_MAX = 1 << 20,       /* of an array */
    CHUNK_BYTES_MAX = 64 << 20, /* decoded */
    BLOCK_BYTES = 64 << 10,     /* of contiguous rows that are read together */
    LEVEL_MAX = 8,              /* of a B-tree */
    TREE_K_MAX = 512,
    CHUNK_TREE_CHILDREN = 64, /* twice the K that superblocks of version 0 imply */
    SUPERBLOCK_BYTES = 96,
    SYMBOL_BYTES = 40,
};

keel_status keel_h5_bad(const keel_h5_walk *w, uint64_t at, const char *what)
{
    return keel_fail(KEEL_EFORMAT, "%s: HDF5, offset %llu: %s", w->d->file.path,
                     (unsigned long long)at, what);
}

keel_status keel_h5_block(keel_h5_walk *w, uint64_t at, uint64_t n_bytes, const char *what,
                          unsigned char **out)
{
    if (at > w->size || n_bytes > w->size - at) {
        return keel_fail(KEEL_EFORMAT,
                         "%s: HDF5, offset %llu: a %s of %llu bytes does not fit in the file of "
                         "%llu",
                         w->d->file.path, (unsigned long long)at, what, (unsigned long long)n_bytes,
                         (unsigned long long)w->size);
    }
    if (n_bytes > w->size - w->claimed) return keel_h5_bad(w, at, "blocks that overlap");
    if (w->claimed + n_bytes > META_BYTES_MAX)
        return keel_h5_bad(w, at, "more than 64 MiB of names and lists of chunks");
    w->claimed += n_bytes;
    unsigned char *b = keel_calloc((size_t)n_bytes, 1);
    if (!b) return KEEL_ENOMEM;
    const keel_status s = keel_file_read_at(&w->d->file, at, b, (size_t)n_bytes);
    if (s < 0)
        keel_free(b);
    else
        *out = b;
    return s;
}

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

/* ---- groups ---------------------------------------------------------------------------------- */

typedef struct heap { /* the names in one group */
    uint64_t at;
    const char *bytes;
    size_t n_bytes;
} heap;

/* Adds a path to the names: `name` in a group, or from the root. */
static keel_status add_path(keel_h5_walk *w, const heap *names, size_t parent, const char *name,
                            size_t n, size_t *out)
{
    const size_t above = strlen(w->d->names + w->objects[parent].name), slash = above > 0;
    if (w->n_objects + w->n_links >= OBJECTS_MAX ||
        w->names_bytes + above + n + 2 > NAMES_BYTES_MAX)
        return keel_h5_bad(w, names->at, "more than 131072 groups and arrays, or 16 MiB of names");
    KEEL_TRY(reserve((void **)&w->d->names, &w->names_capacity, w->names_bytes, above + n + 2, 1));
    char *path = w->d->names + w->names_bytes;
    memcpy(path, w->d->names + w->objects[parent].name, above);
    if (slash) path[above] = '/';
    memcpy(path + above + slash, name, n);
    path[above + slash + n] = 0;
    *out = w->names_bytes;
    w->names_bytes += above + slash + n + 1;
    return KEEL_OK;
}

/* The text at `offset` of a heap, which is not empty; a name of its group only without a slash. */
static keel_status text_at(keel_h5_walk *w, const heap *names, uint64_t offset, bool slashes,
                           const char **out, size_t *n)
{
    if (offset >= names->n_bytes) return keel_h5_bad(w, names->at, "a name outside its heap");
    const size_t most = names->n_bytes - offset;
    *out = names->bytes + offset;
    *n = strnlen(*out, most);
    if (*n == 0 || *n == most || (!slashes && memchr(*out, '/', *n)))
        return keel_h5_bad(w, names->at + offset, "a wrong name");
    return KEEL_OK;
}

static keel_status add_object(keel_h5_walk *w, const heap *names, uint64_t offset, size_t parent,
                              uint64_t at)
{
    const char *name;
    size_t n, path;
    KEEL_TRY(text_at(w, names, offset, false, &name, &n));
    KEEL_TRY(add_path(w, names, parent, name, n, &path));
    KEEL_TRY(
        reserve((void **)&w->objects, &w->objects_capacity, w->n_objects, 1, sizeof *w->objects));
    w->objects[w->n_objects++] = (struct object){ at, path };
    return KEEL_OK;
}

/* A soft link: another name for what is at a path, which is followed once all names are known. */
static keel_status add_link(keel_h5_walk *w, const heap *names, const unsigned char *symbol,
                            size_t parent)
{
    const char *name, *target;
    size_t n, n_target;
    struct link l;
    KEEL_TRY(text_at(w, names, keel_h5_get(symbol, 8), false, &name, &n));
    KEEL_TRY(text_at(w, names, keel_h5_get(symbol + 24, 4), true, &target, &n_target));
    const size_t root = strspn(target, "/");
    KEEL_TRY(add_path(w, names, parent, name, n, &l.name));
    KEEL_TRY(add_path(w, names, root ? 0 : parent, target + root, n_target - root, &l.target));
    KEEL_TRY(reserve((void **)&w->links, &w->links_capacity, w->n_links, 1, sizeof *w->links));
    w->links[w->n_links++] = l;
    return KEEL_OK;
}

static keel_status read_symbols(keel_h5_walk *w, const heap *names, size_t parent, uint64_t at)
{
    unsigned char *p = NULL;
    KEEL_TRY(keel_h5_block(w, at, 8 + SYMBOL_BYTES * 2 * (uint64_t)w->leaf_k, "list of names", &p));
    const unsigned used = (unsigned)keel_h5_get(p + 6, 2);
    keel_status s = KEEL_OK;
    if (memcmp(p, "SNOD", 4) != 0 || p[4] != 1 || used > 2 * w->leaf_k)
        s = keel_h5_bad(w, at, "not a list of names");
    for (unsigned i = 0; s >= 0 && i < used; i++) {
        const unsigned char *symbol = p + 8 + SYMBOL_BYTES * i;
        s = keel_h5_get(symbol + 16, 4) == 2
                ? add_link(w, names, symbol, parent)
                : add_object(w, names, keel_h5_get(symbol, 8), parent, keel_h5_get(symbol + 8, 8));
    }
    keel_free(p);
    return s;
}

/* level -1: the root, which states its own. Each child is one level lower. */
static keel_status read_names(keel_h5_walk *w, const heap *names, size_t parent, uint64_t at,
                              int level)
{
    unsigned char *p = NULL;
    KEEL_TRY(keel_h5_block(w, at, 32 + 32 * (uint64_t)w->internal_k, "B-tree node", &p));
    const int here = p[5];
    const unsigned used = (unsigned)keel_h5_get(p + 6, 2);
    keel_status s = KEEL_OK;
    if (memcmp(p, "TREE", 4) != 0 || p[4] != 0 || here > LEVEL_MAX ||
        (level >= 0 && here != level) || used > 2 * w->internal_k)
        s = keel_h5_bad(w, at, "not the B-tree of a group");
    for (unsigned i = 0; s >= 0 && i < used; i++) {
        const uint64_t child = keel_h5_get(p + 32 + 16 * i, 8);
        s = here == 0 ? read_symbols(w, names, parent, child)
                      : read_names(w, names, parent, child, here - 1);
    }
    keel_free(p);
    return s;
}

static keel_status read_group(keel_h5_walk *w, size_t index, const keel_h5_header *h)
{
    unsigned char *p = NULL, *bytes = NULL;
    KEEL_TRY(keel_h5_block(w, h->heap, 32, "heap", &p));
    const bool right = !memcmp(p, "HEAP", 4) && p[4] == 0;
    const uint64_t n_bytes = keel_h5_get(p + 8, 8), at = keel_h5_get(p + 24, 8);
    keel_free(p);
    if (!right) return keel_h5_bad(w, h->heap, "not a heap of names");
    KEEL_TRY(keel_h5_block(w, at, n_bytes, "heap of names", &bytes));
    const heap names = { at, (const char *)bytes, (size_t)n_bytes };
    const keel_status s = read_names(w, &names, index, h->btree, -1);
    keel_free(bytes);
    return s;
}

/* ---- arrays ---------------------------------------------------------------------------------- */

/* Small contiguous rows are read some at a time, as if they were in chunks: a read costs more than
 * such a row. */
static void make_blocks(keel_h5_array *a)
{
    const int64_t rows = a->shape.rank ? a->shape.dim[0] : 0;
    if (rows < 1) return;
    const int64_t count = keel_shape_count(&a->shape) / rows;
    const int64_t row_bytes = count * (int64_t)a->type.element_bytes;
    if (row_bytes < 1 || row_bytes > BLOCK_BYTES / 4) return;
    int64_t n = BLOCK_BYTES / row_bytes;
    while ((rows + n - 1) / n > CHUNKS_MAX) n *= 2;
    for (int i = 0; i < a->shape.rank; i++) {
        a->chunk[i] = i ? a->shape.dim[i] : n;
        a->grid[i] = i ? 1 : (rows + n - 1) / n;
    }
    a->chunk_bytes = (size_t)(n * row_bytes);
    a->n_chunks = a->grid[0];
}

/* Check sizes, and work out the grid of chunks. */
static void check_array(const keel_h5_walk *w, keel_h5_header *h)
{
    keel_h5_array *a = &h->array;
    size_t count = 1, n_bytes;
    const size_t size = a->type.element_bytes;
    if (*a->why) return;
    if (keel_shape_check(&a->shape, 8) < 0) {
        keel_h5_refuse(h, "it is larger than memory can be");
        return;
    }
    if (!a->chunked) {
        n_bytes = (size_t)keel_shape_count(&a->shape) * size;
        if (n_bytes && (h->data_bytes != n_bytes || a->at > w->size || n_bytes > w->size - a->at))
            keel_h5_refuse(h, a->at == UINT64_MAX ? "it was never written"
                                                  : "its elements do not lie within the file");
        if (a->n_filters) keel_h5_refuse(h, "it has filters, but no chunks");
        if (!*a->why) make_blocks(a);
        return;
    }
    if (h->chunk_rank != a->shape.rank) {
        keel_h5_refuse(h, "its chunks have other dims than it");
        return;
    }
    a->n_chunks = 1;
    for (int i = 0; i < a->shape.rank; i++) {
        if (a->chunk[i] < 1 || !keel_mul(count, (size_t)a->chunk[i], &count)) {
            keel_h5_refuse(h, "its chunks have a wrong size");
            return;
        }
        a->grid[i] = (a->shape.dim[i] + a->chunk[i] - 1) / a->chunk[i];
        if (!keel_mul_i64(a->n_chunks, a->grid[i], &a->n_chunks)) a->n_chunks = INT64_MAX;
    }
    if (!keel_mul(count, size, &a->chunk_bytes) || a->chunk_bytes > CHUNK_BYTES_MAX)
        keel_h5_refuse(h, "its chunks are larger than 64 MiB");
    if (a->n_chunks > CHUNKS_MAX) keel_h5_refuse(h, "it has more than %d chunks", CHUNKS_MAX);
}

static keel_status read_object(keel_h5_walk *w, size_t index)
{
    keel_h5_data *d = w->d;
    keel_h5_header h = { .n_pieces = 0 };
    const char *name = d->names + w->objects[index].name;
    KEEL_TRY(keel_h5_header_read(w, &h, w->objects[index].header, index == 0));
    if (h.has_table) return read_group(w, index, &h);
    if (!h.has_space || !h.has_type || !h.has_layout) return KEEL_OK; /* a named type */
    if (d->count == ARRAYS_MAX)
        return keel_fail(KEEL_EFORMAT, "%s: more than %d arrays", d->file.path, ARRAYS_MAX);
    check_array(w, &h);
    const char *vars = strstr(name, "/vars/");
    d->keras |= vars && vars[6] >= '0' && vars[6] <= '9' &&
                (!strncmp(name, "layers/", 7) || !strncmp(name, "_layer_checkpoint", 17));
    KEEL_TRY(reserve((void **)&d->arrays, &w->arrays_capacity, d->count, 1, sizeof *d->arrays));
    h.array.name = w->objects[index].name;
    d->arrays[d->count++] = h.array;
    return KEEL_OK;
}

static keel_status read_superblock(keel_h5_walk *w, uint64_t *root)
{
    unsigned char *p = NULL;
    if (w->size < SUPERBLOCK_BYTES) return keel_h5_bad(w, 0, "not an HDF5 file");
    KEEL_TRY(keel_h5_block(w, 0, SUPERBLOCK_BYTES, "superblock", &p));
    keel_status s = KEEL_OK;
    if (memcmp(p, "\x89HDF\r\n\x1a\n", 8) != 0)
        s = keel_h5_bad(w, 0, "not an HDF5 file");
    else if (p[8] != 0)
        s = keel_fail(KEEL_EUNSUP,
                      "%s: HDF5 in the newer format (superblock %d, libver='latest'); write it "
                      "with h5py's defaults",
                      w->d->file.path, p[8]);
    else if (p[13] != 8 || p[14] != 8 || keel_h5_get(p + 24, 8) != 0)
        s = keel_h5_bad(w, 0, "addresses that are not of 8 bytes, or a user block");
    else if (keel_h5_get(p + 40, 8) > w->size)
        s = keel_h5_bad(w, 40, "the file is cut short: it announces more bytes than it has");
    w->leaf_k = (unsigned)keel_h5_get(p + 16, 2);
    w->internal_k = (unsigned)keel_h5_get(p + 18, 2);
    if (s >= 0 && (w->leaf_k < 1 || w->leaf_k > TREE_K_MAX || w->internal_k < 1 ||
                   w->internal_k > TREE_K_MAX))
        s = keel_h5_bad(w, 16, "B-trees of a strange order");
    *root = keel_h5_get(p + 64, 8);
    keel_free(p);
    return s;
}

/* ---- the list of chunks ------------------------------------------------------------------------
 */

/* Note the chunk of a key of the tree. */
static keel_status add_chunk(const keel_h5_walk *w, keel_h5_array *a, const unsigned char *key,
                             uint64_t child, uint64_t at)
{
    int64_t index = 0;
    for (int i = 0; i < a->shape.rank; i++) {
        const uint64_t offset = keel_h5_get(key + 8 + 8 * i, 8);
        if (offset % (uint64_t)a->chunk[i] ||
            offset / (uint64_t)a->chunk[i] >= (uint64_t)a->grid[i])
            return keel_h5_bad(w, at, "a chunk outside its array");
        index = index * a->grid[i] + (int64_t)(offset / (uint64_t)a->chunk[i]);
    }
    keel_h5_chunk *c = &a->chunks[index];
    const uint32_t n_bytes = (uint32_t)keel_h5_get(key, 4);
    if (c->at || child == 0) return keel_h5_bad(w, at, "a chunk for the second time");
    if (child > w->size || n_bytes > w->size - child)
        return keel_h5_bad(w, at, "a chunk that does not fit in the file");
    if (a->n_filters ? n_bytes > 2 * a->chunk_bytes + 4096 : n_bytes != a->chunk_bytes)
        return keel_h5_bad(w, at, "a chunk of a wrong size");
    *c = (keel_h5_chunk){ child, n_bytes, (uint32_t)keel_h5_get(key + 4, 4) };
    return KEEL_OK;
}

static keel_status read_chunks(keel_h5_walk *w, keel_h5_array *a, uint64_t at, int level)
{
    const size_t key = 8 + 8 * (size_t)(a->shape.rank + 1), step = key + 8;
    unsigned char *p = NULL;
    KEEL_TRY(keel_h5_block(w, at, 24 + CHUNK_TREE_CHILDREN * step + key, "B-tree node", &p));
    const int here = p[5];
    const unsigned used = (unsigned)keel_h5_get(p + 6, 2);
    keel_status s = KEEL_OK;
    if (memcmp(p, "TREE", 4) != 0 || p[4] != 1 || here > LEVEL_MAX ||
        (level >= 0 && here != level) || used > CHUNK_TREE_CHILDREN)
        s = keel_h5_bad(w, at, "not the B-tree of an array");
    for (unsigned i = 0; s >= 0 && i < used; i++) {
        const uint64_t child = keel_h5_get(p + 24 + step * i + key, 8);
        s = here == 0 ? add_chunk(w, a, p + 24 + step * i, child, at)
                      : read_chunks(w, a, child, here - 1);
    }
    keel_free(p);
    return s;
}

keel_status keel_h5_data_index(keel_h5_data *d, size_t i)
{
    keel_h5_array *a = &d->arrays[i];
    char shown[80];
    keel_h5_walk w = { .d = d, .size = d->file.n_bytes };
    if (*a->why)
        return keel_fail(KEEL_EUNSUP, "%s: '%s' cannot be read: %s", d->file.path,
                         keel_printable(shown, sizeof shown, keel_h5_data_name(d, i)), a->why);
    if (a->slot || !a->n_chunks) return KEEL_OK;
    a->slot = keel_calloc((size_t)a->n_chunks + 1, sizeof *a->slot);
    if (!a->slot) return KEEL_ENOMEM;
    if (!a->chunked) return KEEL_OK;
    a->chunks = keel_calloc((size_t)a->n_chunks + 1, sizeof *a->chunks);
    if (!a->chunks) return KEEL_ENOMEM;
    if (a->at == UINT64_MAX) return KEEL_OK; /* nothing was written: each row says so */
    return read_chunks(&w, a, a->at, -1);
}

/* ---- the whole ------------------------------------------------------------------------------- */

static _Thread_local const char *sorted_names; /* of the list that by_path sorts */

static int by_path(const void *a, const void *b)
{
    return strcmp(sorted_names + ((const keel_h5_array *)a)->name,
                  sorted_names + ((const keel_h5_array *)b)->name);
}

static void sort_arrays(keel_h5_data *d)
{
    sorted_names = d->names;
    if (d->count) qsort(d->arrays, d->count, sizeof *d->arrays, by_path);
}

/* Each link to an array becomes an array with the same elements. Links to links are followed so
 * many times; what then leads to no array is left out, as are links to groups. */
static keel_status follow_links(keel_h5_walk *w)
{
    enum { TIMES = 16 };
    keel_h5_data *d = w->d;
    for (int time = 0; time < TIMES; time++) {
        const size_t known = d->count;
        for (size_t i = 0; i < w->n_links; i++) {
            struct link *l = &w->links[i];
            if (l->target == SIZE_MAX) continue;
            const keel_h5_array of = { .name = l->target };
            const keel_h5_array *to = bsearch(&of, d->arrays, known, sizeof of, by_path);
            if (!to) continue;
            if (d->count == ARRAYS_MAX)
                return keel_fail(KEEL_EFORMAT, "%s: more than %d arrays", d->file.path, ARRAYS_MAX);
            keel_h5_array copy = *to;
            copy.name = l->name;
            KEEL_TRY(
                reserve((void **)&d->arrays, &w->arrays_capacity, d->count, 1, sizeof *d->arrays));
            d->arrays[d->count++] = copy;
            l->target = SIZE_MAX;
        }
        if (d->count == known) break;
        sort_arrays(d);
    }
    return KEEL_OK;
}

static keel_status read_structure(keel_h5_data *d)
{
    keel_h5_walk w = { .d = d, .size = d->file.n_bytes };
    uint64_t root = 0;
    keel_status s = read_superblock(&w, &root);
    if (s >= 0) s = reserve((void **)&d->names, &w.names_capacity, 0, 1, 1);
    if (s >= 0) s = reserve((void **)&w.objects, &w.objects_capacity, 0, 1, sizeof *w.objects);
    if (s >= 0) {
        d->names[w.names_bytes++] = 0;
        w.objects[w.n_objects++] = (struct object){ root, 0 };
    }
    for (size_t i = 0; s >= 0 && i < w.n_objects; i++) s = read_object(&w, i);
    if (s >= 0) sort_arrays(d);
    if (s >= 0 && d->count) s = follow_links(&w);
    keel_free(w.objects);
    keel_free(w.links);
    return s;
}

keel_status keel_h5_data_open(keel_h5_data **out, const char *path)
{
    keel_h5_data *d = keel_calloc(1, sizeof *d);
    if (!d) return KEEL_ENOMEM;
    d->file.fd = -1;
    keel_status s = keel_file_open(&d->file, path);
    if (s >= 0) s = keel_h5_cache_create(&d->cache);
    if (s >= 0) s = read_structure(d);
    if (s < 0)
        keel_h5_data_close(d);
    else
        *out = d;
    return s;
}

const char *keel_h5_data_name(const keel_h5_data *d, size_t i)
{
    return d->names + d->arrays[i].name;
}

void keel_h5_data_close(keel_h5_data *d)
{
    if (!d) return;
    keel_h5_cache_destroy(d->cache);
    for (size_t i = 0; i < d->count; i++) {
        keel_free(d->arrays[i].chunks);
        keel_free(d->arrays[i].slot);
    }
    keel_free(d->arrays);
    keel_free(d->names);
    keel_file_close(&d->file);
    keel_free(d);
}
