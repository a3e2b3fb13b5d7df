/* The arguments of ops: plain numbers, which the layer that emits the op has resolved.
 *
 * Zeroed bytes are the simplest form of an op, if it has one (relu, add, dense). An axis counts the
 * dims of one row from 0, or from the end with -1 as the last; the batch dim is not counted.
 * Padding is {before, behind} for each dim, for images {top, bottom, left, right}; 'same' and
 * 'valid' are words of the layer, not of the op. */
#ifndef KEEL_OPS_ARGS_H
#define KEEL_OPS_ARGS_H
#include "ops/batch_norm.h"
#include "tensor/shape.h"
#include <stdbool.h>
#include <stdint.h>

struct keel_op;

typedef struct keel_conv2d_args { /* conv2d, depthwise_conv2d; dims are {height, width} */
    int64_t strides[2];
    int64_t dilation[2];
    int64_t pad[4];
    int64_t groups; /* conv2d only */
} keel_conv2d_args;

typedef struct keel_conv3d_args { /* conv3d; dims are {depth, height, width} */
    int64_t strides[3];
    int64_t dilation[3];
    int64_t pad[6];
    int64_t groups;
} keel_conv3d_args;

/* conv_transpose; dims are {depth, height, width}. The numbers are those of the convolution of
 * which this is the backward pass: from places `to`, its output, to its input. */
typedef struct keel_conv_transpose_args {
    int64_t strides[3];
    int64_t dilation[3];
    int64_t pad[6];
    int64_t to[3];
} keel_conv_transpose_args;

typedef struct keel_pool2d_args { /* max_pool2d, average_pool2d */
    int64_t pool[2];
    int64_t strides[2];
    int64_t pad[4]; /* each is less than the pool, so every window has a part of the image */
    bool relu;      /* max_pool2d: of the result, so it is 0 if the whole window is below 0 */
} keel_pool2d_args;

typedef struct keel_global_pool2d_args { /* global_average_pool2d, masked_mean */
    bool keepdims;
} keel_global_pool2d_args;

typedef struct keel_zero_pad2d_args { /* zero_pad2d */
    int64_t pad[4];
} keel_zero_pad2d_args;

typedef struct keel_reshape_args { /* reshape; Flatten is rank 1 and dim -1 */
    keel_shape shape; /* of one row; one dim may be -1, and is computed from the others */
} keel_reshape_args;

typedef struct keel_rescaling_args { /* rescaling: y = x scale + offset */
    double scale, offset;
} keel_rescaling_args;

/* The ops of ops/binary.h. With one input, the other operand is the constant. */
typedef struct keel_binary_args {
    bool left; /* the constant is the first operand */
    double constant;
} keel_binary_args;

typedef enum keel_comparison {
    KEEL_EQUAL,
    KEEL_NOT_EQUAL,
    KEEL_LESS,
    KEEL_LESS_EQUAL,
    KEEL_GREATER,
    KEEL_GREATER_EQUAL
} keel_comparison;

/* Whether it holds of two numbers of one type, on processors and GPUs; NaN is only not equal. */
#define KEEL_HOLDS(is, a, b)                                                                       \
    ((is) == KEEL_EQUAL        ? (a) == (b)                                                        \
     : (is) == KEEL_NOT_EQUAL  ? (a) != (b)                                                        \
     : (is) == KEEL_LESS       ? (a) < (b)                                                         \
     : (is) == KEEL_LESS_EQUAL ? (a) <= (b)                                                        \
     : (is) == KEEL_GREATER    ? (a) > (b)                                                         \
                               : (a) >= (b))

typedef struct keel_compare_args { /* compare */
    keel_binary_args operands;
    keel_comparison is;
} keel_compare_args;

typedef struct keel_where_args { /* where: which of its two values are constants */
    bool fixed[2];
    double constant[2];
} keel_where_args;

typedef enum keel_reduce_to {
    KEEL_REDUCE_MEAN,
    KEEL_REDUCE_SUM,
    KEEL_REDUCE_MAX,
    KEEL_REDUCE_MIN
} keel_reduce_to;

typedef struct keel_reduce_args { /* reduce */
    keel_reduce_to to;
    bool over[KEEL_RANK_MAX]; /* which dims of a row */
    bool keepdims;
} keel_reduce_args;

typedef struct keel_permute_args { /* permute: dim d of the output is dim from[d] of the input */
    int64_t from[KEEL_RANK_MAX];
} keel_permute_args;

typedef struct keel_slice_args { /* slice: `count` places of each dim, from `begin`, by `step` */
    int64_t begin[KEEL_RANK_MAX], step[KEEL_RANK_MAX], count[KEEL_RANK_MAX];
} keel_slice_args;
keel_slice_args keel_slice_all(const keel_shape *s); /* all places of rows of that shape */

typedef struct keel_upsample_args { /* upsample: `factor` places along an axis for each */
    int64_t axis, factor;
    bool between; /* linear interpolation between neighbours; false: the nearest */
} keel_upsample_args;

typedef struct keel_noise_args { /* noise: normal draws are added to the input, or multiply it with
                                    mean 1 */
    double stddev;
    bool multiplies;
} keel_noise_args;

typedef struct keel_not_equal_to_args { /* not_equal_to */
    double value;
    bool any; /* over the last axis */
} keel_not_equal_to_args;

typedef struct keel_axis_args { /* concatenate, softmax, log_softmax, sparsemax, glu */
    int64_t axis;
} keel_axis_args;

/* masked_softmax; a place is [T, S]: step t of T attends to those of S that the mask and these
 * arguments allow. */
typedef struct keel_masked_softmax_args {
    bool causal;    /* none after t */
    int64_t window; /* none at this distance from t or more; 0: any distance */
    bool uniform;   /* a step that attends to nothing has equal weights everywhere; else zeros */
} keel_masked_softmax_args;

typedef struct keel_dropout_args { /* dropout */
    double rate;                   /* 0 .. 1, the fraction that is dropped */
    keel_shape noise; /* of one row; a dim of 1 shares its draw; rank 0: as the input */
    uint32_t first;   /* draw of the first element: a layer that drops twice uses other draws */
} keel_dropout_args;

/* batch_norm, over the last axis. A second input is added to the result; with relu, what is then
 * below 0 becomes 0, and what is above max_value becomes max_value. Layers use none of it:
 * graph/fuse.h fuses the ops after a batch_norm into it. */
typedef struct keel_batch_norm_args {
    double epsilon, momentum;
    bool center, scale; /* whether there is a beta, a gamma; weights: gamma, beta, moving mean and
                           variance */
    bool frozen;        /* normalise by the moving statistics although the graph trains */
    bool relu;
    double max_value;         /* of relu; 0: none */
    bool silu;                /* y sigmoid(y) of the result; not with relu or a second input */
    keel_batch_renorm renorm; /* on: three more weights, moving deviation, and mean and deviation
                                 that correct */
} keel_batch_norm_args;

typedef struct keel_layer_norm_args { /* layer_norm */
    int64_t dims; /* dims of a row, counted from the last, that are normalised */
    double epsilon;
    bool center, scale; /* whether there is a beta, a gamma; weights: gamma, beta */
    bool rms;           /* divide by the root of the mean square, without subtracting the mean */
} keel_layer_norm_args;

/* Bytes of the bits that relu saves for one place of n channels; bit k is that of channel k. */
static inline int64_t keel_batch_norm_bits(int64_t n)
{
    return (n + 15) / 16 * 2;
}

/* The function of a gate: an op from [U] to [U], with its arguments. */
typedef struct keel_gate {
    const struct keel_op *op;       /* NULL: linear */
    _Alignas(double) char args[32]; /* of that op */
} keel_gate;

/* simple_rnn, lstm, gru: see ops/recurrent.h. The inputs are the steps, then those named below, in
 * this order. */
typedef struct keel_recurrent_args {
    keel_gate activation, recurrent; /* recurrent: of the gates; simple_rnn has none */
    bool masked;                     /* a mask [T] */
    bool stated;                     /* the states before the first step, each [U] */
    bool dropped;                    /* factors of the state, for each gate, [gates, U] */
    bool sequences;   /* the first output has all steps, [T, U]; else the last step */
    bool states;      /* the states after the last step are outputs, too */
    bool backwards;   /* from the last step to the first */
    bool zeros;       /* a masked step has output 0; else the output of the step before */
    bool reset_after; /* gru: the reset gate is applied to the product; weights may have a bias */
} keel_recurrent_args;

typedef struct keel_relu_args { /* relu; zeros mean max(x, 0) */
    bool capped;                /* is there a max_value */
    double max_value, negative_slope, threshold;
} keel_relu_args;

typedef struct keel_alpha_args { /* elu, celu; Keras's default is 1 */
    double alpha;
} keel_alpha_args;

typedef struct keel_leaky_relu_args { /* leaky_relu; Keras's function has 0.2, its layer 0.3 */
    double negative_slope;
} keel_leaky_relu_args;

typedef struct keel_gelu_args { /* gelu */
    bool approximate;           /* the tanh formula */
} keel_gelu_args;

typedef struct keel_threshold_args { /* hard_shrink, soft_shrink (0.5), threshold */
    double threshold;
    double value; /* threshold only: y where x <= threshold */
} keel_threshold_args;

typedef struct keel_squareplus_args { /* squareplus; Keras's default is 4 */
    double b;
} keel_squareplus_args;

#endif
