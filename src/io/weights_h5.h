/* `model.weights.h5`: a list of arrays by path.
 *
 * Keras stores the variables of a layer as layers/dense/vars/0, /1, ..., those of the optimizer as
 * optimizer/vars/N, and gives each "vars" group an attribute "name". A layer without variables has
 * an empty group with that attribute; the root has "vars" with the model's name.
 * Files are read by the strict reader of h5_check.h, never by libhdf5. They are written by libhdf5
 * with the settings of h5py.
 *
 *   to write:  create, add_group("layers/dense/vars", "dense"), add("layers/dense/vars/0", &t),
 *              ..., write, destroy
 *   to read:   decode or open, read("layers/dense/vars/0", ...), ..., destroy */
#ifndef KEEL_IO_WEIGHTS_H5_H
#define KEEL_IO_WEIGHTS_H5_H
#include "io/file.h"
#include "io/h5_texts.h"

typedef struct keel_weights keel_weights;

typedef struct keel_weight {
    const char *path; /* no slash before or after */
    keel_dtype dtype; /* what keel_weight_copy writes: uint32 becomes int64 */
    keel_shape shape;
    keel_h5_type stored;
    const void *data; /* borrowed, as stored; in a decoded list it may be unaligned. NULL: not in
                         memory */
    uint64_t at;      /* where it is in the file of such a list */
} keel_weight;

keel_status keel_weights_create(keel_weights **out);
void keel_weights_destroy(keel_weights *w); /* NULL is allowed */

/* Add an array, with the groups of its path. The elements are borrowed until destroy.
 * KEEL_EARG: the path is empty, has an empty part, or exists already. */
keel_status keel_weights_add(keel_weights *w, const char *path, const keel_tensor *t);
/* Add a group, which may stay empty; `name` (NULL: none) becomes its attribute "name". */
keel_status keel_weights_add_group(keel_weights *w, const char *path, const char *name);

/* Write the HDF5 file into `file`, from byte `at` to its end; *n_bytes is its length. The arrays go
 * there from where they are. Equal lists give equal bytes. Any thread; calls wait for each other.
 * KEEL_EIO: writing failed, or libhdf5 did; the message has the reason. */
keel_status keel_weights_write(const keel_weights *w, keel_new_file *file, int64_t at,
                               uint64_t *n_bytes);

/* Make a list from a file image, which is borrowed until destroy. Arrays are sorted by path
 * (strcmp).
 * KEEL_EFORMAT, KEEL_EUNSUP as keel_h5_check. */
keel_status keel_weights_decode(keel_weights **out, const void *image, size_t n_bytes);

/* Make a list from a file that is not in memory. Its arrays are read by keel_weights_read, each
 * straight to where it goes, and in no other way; texts in attributes cannot be read. */
keel_status keel_weights_open(keel_weights **out, const keel_h5_source *source);

/* From now on keel_weights_read gives back the memory of what it has read, in an image that is
 * writable: each array can be read once, and the whole file is not in memory beside the model. */
void keel_weights_read_once(keel_weights *w);

int64_t keel_weights_count(const keel_weights *w); /* arrays, without groups */
const keel_weight *keel_weights_at(const keel_weights *w, int64_t index);
const keel_weight *keel_weights_find(const keel_weights *w, const char *path); /* or NULL */
/* The texts in an attribute of a group ("": the root) of a decoded list, as keel_h5_texts. */
keel_status keel_weights_texts(keel_weights *w, const char *path, const char *name,
                               keel_h5_text **out, size_t *count);
bool keel_weights_has_group(const keel_weights *w, const char *path);

/* Copy all elements of one array, in its own dtype, to `out`. */
void keel_weight_copy(const keel_weight *a, void *out);
/* Copy the array at `path`, which must have `shape`, to `out`, converted to `dtype` by value (float
 * to float, integer to integer). KEEL_EFORMAT: no such array;
 * KEEL_ESHAPE: another shape, naming both; KEEL_EUNSUP: float from integer or the other way;
 * KEEL_EFORMAT: an integer that does not fit, or it has been read where that is possible once. */
keel_status keel_weights_read(const keel_weights *w, const char *path, keel_dtype dtype,
                              const keel_shape *shape, void *out);

#endif
