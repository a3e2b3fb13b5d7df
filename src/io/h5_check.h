/* A strict reader of the HDF5 files that Keras writes, and of nothing else.
 *
 * libhdf5 never reads a file from outside, so its known faults on crafted files cannot be reached.
 * Accepted is what h5py writes by default (libver "earliest"): superblock version 0, groups as
 * symbol tables (B-tree version 1, local heap, symbol nodes), object headers version 1, contiguous
 * datasets of little-endian numbers, attributes. Every block must lie inside the file and no two
 * may overlap, so there are no cycles and the work is linear in the size of the file. Links,
 * filters, chunks, external files and shared messages are refused. An error names the fault and
 * its offset. Of attributes only the bounds are checked here; io/h5_texts.h reads those that are
 * texts.
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
    KEEL_H5_UINT32, /* random state of Keras on JAX */
    KEEL_H5_TYPE_COUNT
} keel_h5_type;

typedef struct keel_h5_entry {
    const char *path; /* "layers/dense/vars/0": no slash before or after */
    bool is_group;    /* a group leaves the members below unset */
    keel_h5_type type;
    keel_shape shape;
    size_t offset; /* of the elements in the file, in bytes; may be unaligned */
    size_t n_bytes;
} keel_h5_entry;

typedef struct keel_h5_attribute { /* a message of an object header: its value is not checked */
    const char *path;              /* of the group or array that has it; "": the root */
    size_t offset, n_bytes;        /* of the message in the file */
} keel_h5_attribute;

typedef struct keel_h5_tree {
    keel_h5_entry *entries; /* sorted by path (strcmp); all paths differ */
    size_t count;
    keel_h5_attribute *attributes; /* sorted by path */
    size_t n_attributes;
    char *names;  /* storage of all paths */
    bool looked;  /* h5_texts.c: an attribute has been read, and ... */
    size_t steps; /* ... how many steps through heaps are still allowed */
} keel_h5_tree;

enum { KEEL_H5_BEGIN_BYTES = 96 };
/* The file size that the superblock states, from the first KEEL_H5_BEGIN_BYTES of the file. The
 * caller then reads no more than that. */
keel_status keel_h5_announced(uint64_t *n_bytes, const void *begin);

/* A file: `read` reads n bytes from byte `at` on, which it has. */
typedef struct keel_h5_source {
    keel_status (*read)(const void *context, uint64_t at, void *to, size_t n);
    const void *context;
    size_t n_bytes;
} keel_h5_source;

/* Check the structure of a whole file, and list its groups and arrays: at most 262,144 of them,
 * with 16 MiB of paths. The elements of arrays are not read. KEEL_EFORMAT: damaged, or not as Keras
 * writes it; KEEL_EUNSUP: an unsupported type; KEEL_ENOMEM; KEEL_EIO. */
keel_status keel_h5_check(keel_h5_tree *out, const keel_h5_source *source);
void keel_h5_tree_free(keel_h5_tree *t); /* NULL and an empty tree are allowed */

#endif
