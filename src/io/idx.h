/* MNIST's idx files, plain or gzipped.
 *
 * Two zero bytes, a type, the rank, then rank sizes and the elements, all big-endian. Types:
 * 8 unsigned byte, 9 signed byte (becomes int32), 11 short (int32), 12 int, 13 float, 14 double.
 * The file must have exactly the elements that its header announces. A gzipped file that announces
 * more than it can hold is refused before memory is allocated.
 * Source: http://yann.lecun.com/exdb/mnist, "the idx file format". */
#ifndef KEEL_IO_IDX_H
#define KEEL_IO_IDX_H
#include "base/error.h"
#include "keel/tensor.h"
#include <stddef.h>

/* Read into a new tensor, which the caller frees with keel_tensor_free. Gzip is recognised by its
 * first two bytes, not by the name. */
keel_status keel_idx_read(keel_tensor *out, const char *path);
keel_status keel_idx_decode(keel_tensor *out, const void *data, size_t n_bytes, const char *what);

#endif
