/* Attributes of an HDF5 file that are texts: the configuration of a whole model, names of layers
 * and weights. A text has a fixed length and stands in the attribute, or any length and stands in a
 * global heap of the file; h5py writes both. */
#ifndef KEEL_IO_H5_TEXTS_H
#define KEEL_IO_H5_TEXTS_H
#include "io/h5_check.h"

typedef struct keel_h5_text {
    const char *at; /* in the image, not terminated */
    size_t n_bytes;
} keel_h5_text;

/* The texts of that attribute of the object at `path` ("": the root), one or a list: *out [*count],
 * which the caller frees with keel_free, and which points into the image of the tree. An attribute
 * without elements, whatever its type, gives 0 texts; *out NULL: there is no such attribute.
 * KEEL_EFORMAT: damaged; KEEL_EUNSUP: it is not of texts, or has several dims. */
keel_status keel_h5_texts(keel_h5_tree *t, const void *image, size_t n_bytes, const char *path,
                          const char *name, keel_h5_text **out, size_t *count);

#endif
