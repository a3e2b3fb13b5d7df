/* NumPy's .npz: a zip of .npy members, stored or deflated.
 *
 * The sizes in a member's header and in the archive's directory must agree, and zip.h bounds the
 * latter by the size of the archive: a zip bomb is an error and takes no memory. */
#ifndef KEEL_IO_NPZ_H
#define KEEL_IO_NPZ_H
#include "io/npy.h"
#include "io/zip.h"

/* The number of arrays, and the name of one, as in numpy.load(...).files: without ".npy". Members
 * that do not end in ".npy" are not counted. The name is written to `out`, truncated to `size`. */
int64_t keel_npz_count(const keel_zip *z);
keel_status keel_npz_name(const keel_zip *z, int64_t index, char *out, size_t size);

/* True if the archive has an array of this name. */
bool keel_npz_has(const keel_zip *z, const char *name);

/* Shape and type of one array, without its elements. */
keel_status keel_npz_header(keel_npy_header *out, keel_zip *z, const char *name);
/* Read one array, by its name without ".npy", into a new tensor, or an array of texts. */
keel_status keel_npz_read(keel_tensor *out, keel_zip *z, const char *name);
keel_status keel_npz_read_texts(keel_npy_texts *out, keel_zip *z, const char *name);
/* Open, read, close. */
keel_status keel_npz_read_file(keel_tensor *out, const char *path, const char *name);

#endif
