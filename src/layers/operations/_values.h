/* Short forms for operations that are made of several ops: values in, one value out. */
#ifndef KEEL_LAYERS_OPERATIONS_VALUES_H
#define KEEL_LAYERS_OPERATIONS_VALUES_H
#include "layers/operations/_operation.h"

#define KEEL_OF_NUMBER(x) ((keel_operand){ .given = true, .value = -1, .constant = (x) })
#define KEEL_OF_VALUE(x)  ((keel_operand){ .given = true, .value = (x) })

const keel_shape *keel_value_shape(const keel_emit *e, keel_value x);

/* A pointwise op without arguments; an op of ops/binary.h on a value and a number; an op with
 * keel_axis_args. */
keel_status keel_emit_each(keel_emit *e, const keel_op *op, keel_value x, keel_value *out);
keel_status keel_emit_with(keel_emit *e, const keel_op *op, keel_value x, double number,
                           keel_value *out);
keel_status keel_emit_along(keel_emit *e, const keel_op *op, keel_value x, int64_t axis,
                            keel_value *out);

/* 1 where a value compares so with a number, or with another value; where it is no number. */
keel_status keel_emit_is(keel_emit *e, keel_comparison is, keel_value x, double number,
                         keel_value *out);
keel_status keel_emit_compared(keel_emit *e, keel_comparison is, keel_value a, keel_value b,
                               keel_value *out);
keel_status keel_emit_no_number(keel_emit *e, keel_value x, keel_value *out);
/* The op of the truths of the two operands: 1 where one is not 0. The truth of input 0, and its
 * largest or smallest over the axes of keel_reduction. */
keel_status keel_emit_of_truths(keel_emit *e, const keel_op *op, const void *args);
keel_status keel_emit_truth_over(keel_emit *e, keel_reduce_to to);
/* The logarithm of the sum of two powers, to the base whose natural logarithm is `unit`. */
keel_status keel_emit_log_of_sum(keel_emit *e, double unit);
/* a where the condition holds, else b. */
keel_status keel_emit_choice(keel_emit *e, keel_value condition, keel_operand a, keel_operand b,
                             keel_value *out);

/* As many times one number as `like` has elements. */
keel_status keel_emit_filled(keel_emit *e, keel_value like, double number, keel_value *out);
/* Over one dim of a row. */
keel_status keel_emit_reduced(keel_emit *e, keel_reduce_to to, keel_value x, int64_t axis,
                              bool keepdims, keel_value *out);
/* Two of the dims of a row become the last ones. */
keel_status keel_emit_two_last(keel_emit *e, keel_value x, int64_t first, int64_t second,
                               keel_value *out);
/* Diagonal k of the matrices that two dims of a row make. It becomes the last dim. */
keel_status keel_emit_diagonal_of(keel_emit *e, keel_value x, int64_t rows, int64_t columns,
                                  int64_t k, keel_value *out);
/* softmax, or its logarithm, over one dim or several together; axes as in Keras. */
keel_status keel_emit_softmax(keel_emit *e, const keel_ints *axis, bool log, keel_value x,
                              keel_value *out);
/* Of two values where one has 1 in a dim, it gets the other's number there. */
keel_status keel_emit_alike(keel_emit *e, int64_t axis, keel_value x[2]);
/* `to` for a dim of 1. */
keel_status keel_emit_repeated(keel_emit *e, keel_value x, int64_t axis, int64_t to,
                               keel_value *out);

/* The operation on another value in place of input 0. It must have one output. */
keel_status keel_emit_instead(keel_emit *e, const keel_layer *operation, keel_value x);

/* An argument of the call as a value with `rank` dims, whatever it is: dims of 1 come before those
 * of an array, and a number has no others. */
keel_status keel_value_at(keel_emit *e, size_t place, const char *name, int rank, keel_value *out);
/* The first two arguments of the call so, with the rank of input 0. */
keel_status keel_two_values(keel_emit *e, const char *first, const char *second, keel_value out[2]);

#endif
