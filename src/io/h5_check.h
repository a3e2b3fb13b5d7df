/* A strict reader of the HDF5 files that Keras writes, and of nothing else.
 *
 * It walks the raw image itself; libhdf5 never sees a byte that comes from outside, so none of
 * its known faults on crafted files can be reached by reading. Accepted is what h5py writes by
 * default (libver "earliest"): superblock version 0, groups as symbol tables (B-tree version 1,
 * local heap, symbol nodes), object headers version 1, contiguous datasets of little-endian
 * numbers, attributes. Every block must lie inside the file and no two may overlap, so there are
 * no cycles and the work is bounded by the length of the file. Links, filters, chunks, external
 * files and shared messages are refused; messages name what and at which offset.
 * Attributes are checked for their bounds; their values are not read, nothing in Keel needs them.
 * Source: HDF5 File Format Specification, version 3.0. */
#ifndef KEEL_IO_H5_CHECK_H
#define KEEL_IO_H5_CHECK_H
#include "base/error.h"
#include "keel/tensor.h"
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef enum keel_h5_type {
    KEEL_H5_FLOAT32,
    KEEL_H5_FLOAT64,
    KEEL_H5_UINT8,
    KEEL_H5_INT32,
    KEEL_H5_INT64,
    KEEL_H5_UINT32, /* the random state of Keras on JAX */
    KEEL_H5_TYPE_COUNT
} keel_h5_type;

typedef struct keel_h5_entry {
    const char *path; /* "layers/dense/vars/0": no slash before or after */
    bool is_group;    /* then the rest has no meaning */
    keel_h5_type type;
    keel_shape shape;
    size_t offset; /* of the elements in the image, perhaps not aligned */
    size_t n_bytes;
} keel_h5_entry;

typedef struct keel_h5_tree {
    keel_h5_entry *entries; /* sorted by path (strcmp); all paths differ */
    size_t count;
    char *names; /* the memory of the paths */
} keel_h5_tree;

enum { KEEL_H5_BEGIN_BYTES = 96 };
/* How long the file is by its own word, from its first KEEL_H5_BEGIN_BYTES: so that a caller need
 * not read what lies behind it. */
keel_status keel_h5_announced(uint64_t *n_bytes, const void *begin);

/* At most 262,144 groups and arrays and 16 MiB of paths. KEEL_EFORMAT: damaged, or not what Keras
 * writes; KEEL_EUNSUP: a type that Keel does not have; KEEL_ENOMEM. The tree does not point into
 * the image. */
keel_status keel_h5_check(keel_h5_tree *out, const void *image, size_t n_bytes);
void keel_h5_tree_free(keel_h5_tree *t); /* NULL and an empty one are fine */

#endif
