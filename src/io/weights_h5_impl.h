/* Shared by weights_h5.c (the list) and weights_h5_write.c (the file). */
#ifndef KEEL_IO_WEIGHTS_H5_IMPL_H
#define KEEL_IO_WEIGHTS_H5_IMPL_H
#include "io/weights_h5.h"

typedef struct keel_weights_group {
    const char *path;
    char *name; /* its attribute "name", or NULL; not read back */
} keel_weights_group;

struct keel_weights {
    keel_weight *arrays; /* sorted by path */
    keel_weights_group *groups;
    size_t n_arrays, n_groups;
    bool decoded;      /* the tree owns the paths, and nothing can be added */
    bool once;         /* an array that was read has no data any more */
    keel_h5_tree tree; /* set if decoded, like the next three */
    const void *image; /* NULL: the list is read from its source */
    size_t n_bytes;
    keel_h5_source source;
};

#endif
