/* MNIST's idx files, plain or gzipped.
 *
 * Two zero bytes, a type, the rank, then rank sizes and the elements, all big-endian. Types:
 * 8 unsigned byte, 9 signed byte (becomes int32), 11 short (int32), 12 int, 13 float, 14 double.
 * The file must have exactly the announced elements; a gzipped file that announces more than it
 * can hold is refused before memory is taken.
 * Source: http://yann.lecun.com/exdb/mnist, "the idx file format". */
#ifndef KEEL_IO_IDX_H
#define KEEL_IO_IDX_H
#include "base/error.h"
#include "keel/tensor.h"
#include <stddef.h>

/* A new tensor (keel_tensor_free); gzip is told by its first two bytes, not by the name. */
keel_status keel_idx_read(keel_tensor *out, const char *path);
keel_status keel_idx_decode(keel_tensor *out, const void *data, size_t n_bytes, const char *what);

#endif
