/* Overflow-checked arithmetic on shapes. */
#ifndef KEEL_TENSOR_SHAPE_H
#define KEEL_TENSOR_SHAPE_H
#include "keel/tensor.h"
#include <stdbool.h>
#include <stddef.h>

keel_shape keel_shape_of(int rank, const int64_t *dims); /* rank <= KEEL_RANK_MAX */
#define KEEL_SHAPE(...)                                                                            \
    keel_shape_of((int)(sizeof((int64_t[]){ __VA_ARGS__ }) / sizeof(int64_t)),                     \
                  (int64_t[]){ __VA_ARGS__ })

int64_t
keel_shape_count(const keel_shape *s); /* product of dims; 1 for rank 0; the shape is valid */
keel_status keel_shape_check(const keel_shape *s,
                             size_t element_size); /* KEEL_ESHAPE: negative, overflow */
bool keel_shape_equal(const keel_shape *a, const keel_shape *b);
bool keel_shape_is_open(const keel_shape *s);                   /* true if a dim is KEEL_DIM_OPEN */
keel_shape keel_shape_closed(const keel_shape *s, int64_t dim); /* with `dim` for each open dim */
void keel_shape_text(char out[96], const keel_shape *s);        /* "(100, None, 3)" */

#endif
