/* The header of a .npy file that is about to be written. */
#ifndef KEEL_IO_NPY_WRITE_H
#define KEEL_IO_NPY_WRITE_H
#include "base/error.h"
#include "keel/tensor.h"
#include <stddef.h>

enum { KEEL_NPY_HEADER_MOST = 512 };

/* Format 1.0 of NumPy: the dict is padded so that elements begin at a multiple of 64, and so that
 * dim 0 may become any number: all headers for one type and row have one length. Returns it. */
size_t keel_npy_header_write(char out[KEEL_NPY_HEADER_MOST], keel_dtype dtype,
                             const keel_shape *shape);

#endif
