/* Shared by the files that read the structure of HDF5 files of data: h5_data.c, h5_header.c. */
#ifndef KEEL_IO_H5_DATA_IMPL_H
#define KEEL_IO_H5_DATA_IMPL_H
#include "io/h5_data.h"

enum { KEEL_H5_PIECES_MAX = 64 }; /* of an object header */

static inline uint64_t keel_h5_get(const unsigned char *p, int n_bytes)
{
    uint64_t v = 0;
    for (int i = n_bytes; i-- > 0;) v = v << 8 | p[i];
    return v;
}

typedef struct keel_h5_walk {
    keel_h5_data *d;
    uint64_t size, claimed; /* of the file; of the blocks read so far */
    unsigned leaf_k, internal_k;
    struct object {
        uint64_t header;
        size_t name;
    } * objects;
    struct link {
        size_t name, target; /* in d->names, as paths from the root; target SIZE_MAX: followed */
    } * links;
    size_t n_objects, objects_capacity, arrays_capacity, names_bytes, names_capacity;
    size_t n_links, links_capacity;
} keel_h5_walk;

typedef struct keel_h5_header { /* what an object header says */
    keel_h5_array array;
    bool has_space, has_type, has_layout, has_table;
    uint64_t btree, heap, data_bytes;
    int chunk_rank;
    struct {
        uint64_t at, n_bytes;
    } pieces[KEEL_H5_PIECES_MAX];
    int n_pieces;
} keel_h5_header;

/* KEEL_EFORMAT, with the file and the offset before the text. */
keel_status keel_h5_bad(const keel_h5_walk *w, uint64_t at, const char *what);

/* Read a block of the structure; the caller frees it. */
keel_status keel_h5_block(keel_h5_walk *w, uint64_t at, uint64_t n_bytes, const char *what,
                          unsigned char **out);

/* Keep the first reason why the array cannot be read. */
void keel_h5_refuse(keel_h5_header *h, const char *format, ...) KEEL_PRINTF(2, 3);

/* Read the header of an object: the root's attributes tell a Keras model. */
keel_status keel_h5_header_read(keel_h5_walk *w, keel_h5_header *h, uint64_t at, bool root);

#endif
