/* Operations of keras.ops in a Functional model: layers without weights, policy or `trainable`,
 * called with values and constants. Their names are those of keras.src.ops (Add is a class there,
 * and a layer in keras.layers); files are named ops_NAME.c, like keras.ops.NAME. */
#ifndef KEEL_LAYERS_OPERATIONS_OPERATION_H
#define KEEL_LAYERS_OPERATIONS_OPERATION_H
#include "layers/layer.h"
#include "ops/args.h"
#include "ops/numbers.h"

typedef struct keel_operand {
    bool given;
    keel_value value; /* -1: the constant */
    double constant;
} keel_operand;

/* The argument of the call at that place, or with that name: {KEEL_CALL_VALUE: i}, or numbers, for
 * NumPy's arrays and tensors nested lists of them. NULL: it is not given. */
const json_t *keel_argument(const keel_emit *e, size_t place, const char *name);
/* A number or nested lists of them; and a value that has them in every row. KEEL_EUNSUP: it is
 * something else. */
keel_status keel_list_read(const json_t *v, const char *name, keel_numbers_args *out);
keel_status keel_emit_numbers(keel_emit *e, const json_t *v, const char *name, keel_value *out);

/* The same as a value or a number. KEEL_EUNSUP: it is neither. */
keel_status keel_operand_at(const keel_emit *e, size_t place, const char *name, keel_operand *out);
/* Numbers as a value that is broadcast with rows of `rank` dims: dims of 1 are put before its own,
 * and a dim of 1 where the rows are is left out. */
keel_status keel_emit_array(keel_emit *e, const json_t *v, const char *name, int rank,
                            keel_value *out);
/* A value or a number; an array as such a value. */
keel_status keel_operand_or_array(keel_emit *e, size_t place, const char *name, int rank,
                                  keel_operand *out);

/* Emits an operation on one value, by an op with one output. */
keel_status keel_emit_unary(keel_emit *e, const keel_op *op, const void *args);
/* Emits an operation on two values, one of which may be a number or an array of the rows' shape.
 * args begin with keel_binary_args, which are set here. */
keel_status keel_emit_binary(keel_emit *e, const keel_op *op, void *args);
keel_status keel_operands(keel_emit *e, keel_operand x[2]); /* its two parts */
keel_status keel_emit_operands(keel_emit *e, const keel_op *op, void *args,
                               const keel_operand x[2]);
/* The same for a comparison: of whole numbers that are inputs of the graph to the last digit. */
keel_status keel_emit_compare(keel_emit *e, keel_comparison is);
/* args of an op that reduces: axis as in Keras, without the batch. */
keel_status keel_reduce_axes(const keel_emit *e, const keel_ints *axis, keel_reduce_args *out);

/* The place among the dims of a row at which a new axis, as Keras counts it, is inserted. */
keel_status keel_new_axis(const keel_emit *e, int64_t axis, int64_t *place);
/* The same where the rows will have `rank` dims, also those of other new axes. */
keel_status keel_new_axis_of(int rank, int64_t axis, int64_t *place);

/* An op of ops/binary.h on two values; in * scale + offset. */
keel_status keel_emit_pair(keel_emit *e, const keel_op *op, keel_value a, keel_value b,
                           keel_value *out);
keel_status keel_emit_scaled(keel_emit *e, keel_value in, double scale, double offset,
                             keel_value *out);

#define KEEL_OPERATION_HEAD(class_, module_, help_)                                                \
    .name = class_, .module = "keras.src.ops." module_, .help = help_

/* The tables of operations: without arguments, and with those of the file (args_t, fields).
 * `inputs_`: how many values they take at most; -1: any number. `...`: other members. */
#define KEEL_PLAIN_OPERATION(stem, class_, module_, inputs_, help_, ...)                           \
    const keel_layer keel_layer_##stem = { .type = { KEEL_OPERATION_HEAD(class_, module_,          \
                                                                         help_) },                 \
                                           .min_inputs = 1,                                        \
                                           .max_inputs = inputs_,                                  \
                                           .operation = true,                                      \
                                           .emit = emit,                                           \
                                           __VA_ARGS__ };
#define KEEL_ARGS_OPERATION(stem, class_, module_, inputs_, help_, ...)                            \
    const keel_layer keel_layer_##stem = { .type = { KEEL_OPERATION_HEAD(class_, module_, help_),  \
                                                     .args_size = sizeof(args_t),                  \
                                                     .fields = fields },                           \
                                           .min_inputs = 1,                                        \
                                           .max_inputs = inputs_,                                  \
                                           .operation = true,                                      \
                                           .emit = emit,                                           \
                                           __VA_ARGS__ };

/* An operation that is one pointwise op; args is NULL or a pointer. */
#define KEEL_UNARY_OPERATION(stem, class_, module_, op_, args_, help_, ...)                        \
    static keel_status emit(keel_emit *e)                                                          \
    {                                                                                              \
        return keel_emit_unary(e, &keel_op_##op_, args_);                                          \
    }                                                                                              \
    const keel_layer keel_layer_##stem = { .type = { KEEL_OPERATION_HEAD(class_, module_,          \
                                                                         help_) },                 \
                                           .min_inputs = 1,                                        \
                                           .max_inputs = 1,                                        \
                                           .operation = true,                                      \
                                           .emit = emit,                                           \
                                           __VA_ARGS__ };

/* `...`: other members of the table. */
#define KEEL_BINARY_OPERATION(stem, class_, op_, help_, ...)                                       \
    static keel_status emit(keel_emit *e)                                                          \
    {                                                                                              \
        keel_binary_args args = { 0 };                                                             \
        return keel_emit_binary(e, &keel_op_##op_, &args);                                         \
    }                                                                                              \
    const keel_layer keel_layer_##stem = { .type = { KEEL_OPERATION_HEAD(class_, "numpy",          \
                                                                         help_) },                 \
                                           .min_inputs = 1,                                        \
                                           .max_inputs = 2,                                        \
                                           .operation = true,                                      \
                                           .emit = emit,                                           \
                                           __VA_ARGS__ };

#define KEEL_COMPARE_OPERATION(stem, class_, is_, help_)                                           \
    static keel_status emit(keel_emit *e)                                                          \
    {                                                                                              \
        return keel_emit_compare(e, is_);                                                          \
    }                                                                                              \
    const keel_layer keel_layer_##stem = {                                                         \
        .type = { KEEL_OPERATION_HEAD(class_, "numpy", help_) },                                   \
        .min_inputs = 1,                                                                           \
        .max_inputs = 2,                                                                           \
        .operation = true,                                                                         \
        .emit = emit,                                                                              \
        .whole = KEEL_WHOLE_ALWAYS,                                                                \
        .wide_alone = true,                                                                        \
    };

/* The table of an operation of one input whose arguments are args_; `fields` and `emit` are the
 * file's. */
#define KEEL_ONE_INPUT_OPERATION(stem, class_, module_, args_, help_, ...)                         \
    const keel_layer keel_layer_##stem = { .type = { KEEL_OPERATION_HEAD(class_, module_, help_),  \
                                                     .args_size = sizeof(args_),                   \
                                                     .fields = fields },                           \
                                           .min_inputs = 1,                                        \
                                           .max_inputs = 1,                                        \
                                           .operation = true,                                      \
                                           .emit = emit,                                           \
                                           __VA_ARGS__ };

/* The arguments of an operation over axes with keepdims, and the operation. */
typedef struct keel_reduction {
    keel_ints axis;
    bool keepdims;
} keel_reduction;
#define KEEL_REDUCTION_FIELDS                                                                      \
    KEEL_INTS(keel_reduction, axis, -1, "null", -7, 7, "over which dims, the batch is 0"),         \
        KEEL_BOOL(keel_reduction, keepdims, "false", "keep them as dims of 1")
/* The table of an operation over dims; `fields` and `emit` are the file's. */
#define KEEL_REDUCTION_LAYER(stem, class_, module_, help_, ...)                                    \
    KEEL_ONE_INPUT_OPERATION(stem, class_, module_, keel_reduction, help_, __VA_ARGS__)

#define KEEL_REDUCTION_OPERATION(stem, class_, to_, help_, ...)                                    \
    static const keel_field fields[] = { KEEL_REDUCTION_FIELDS, { 0 } };                           \
    static keel_status emit(keel_emit *e)                                                          \
    {                                                                                              \
        const keel_reduction *a = e->args;                                                         \
        keel_reduce_args op = { .to = to_, .keepdims = a->keepdims };                              \
        KEEL_TRY(keel_reduce_axes(e, &a->axis, &op));                                              \
        return keel_emit_unary(e, &keel_op_reduce, &op);                                           \
    }                                                                                              \
    KEEL_REDUCTION_LAYER(stem, class_, "numpy", help_, __VA_ARGS__)

/* An operation along one dim that is one op with keel_axis_args. */
typedef struct keel_along {
    int64_t axis;
} keel_along;

#define KEEL_AXIS_OPERATION(stem, class_, module_, op_, help_, ...)                                \
    static const keel_field fields[] = {                                                           \
        KEEL_INT(keel_along, axis, "-1", -7, 7, "along which dim, the batch is 0"),                \
        { 0 },                                                                                     \
    };                                                                                             \
    static keel_status emit(keel_emit *e)                                                          \
    {                                                                                              \
        const keel_along *a = e->args;                                                             \
        keel_axis_args op;                                                                         \
        KEEL_TRY(keel_row_axis(e, a->axis, &op.axis));                                             \
        return keel_emit_unary(e, &keel_op_##op_, &op);                                            \
    }                                                                                              \
    KEEL_ONE_INPUT_OPERATION(stem, class_, module_, keel_along, help_, __VA_ARGS__)

#endif
