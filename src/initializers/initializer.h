/* Initial weights, drawn by Philox: stream KEEL_STREAM_WEIGHTS, row = index of the weight in the
 * model, draw = element, so that a model begins equal on every machine. One file each. */
#ifndef KEEL_INITIALIZERS_INITIALIZER_H
#define KEEL_INITIALIZERS_INITIALIZER_H
#include "base/field.h"
#include "base/philox.h"
#include "tensor/shape.h"

typedef struct keel_initializer {
    keel_type type;
    /* Fill `out` (shape in Keras's layout) in double; the model rounds to its dtype. fan_in and
     * fan_out are Keras's compute_fans of the shape. `row` is the index of the weight. */
    keel_status (*fill)(const void *args, const keel_shape *shape, const keel_chance *c,
                        uint64_t row, double *out);
    bool by_fans; /* the order of a shape's dims is nothing to it, their fans are; its args begin
                     with keel_fan_args */
} keel_initializer;

extern const keel_initializer *const keel_initializers[]; /* generated; ends with NULL */
const keel_type *keel_initializer_find(const char *name);

void keel_compute_fans(const keel_shape *s, double *fan_in,
                       double *fan_out); /* Keras: compute_fans */
/* A draw from N(0, 1), keyed by element; keel_truncated_normal truncates at 2 standard deviations,
 * as Keras does. */
double keel_normal(const keel_chance *c, uint64_t row, uint64_t element);
double keel_truncated_normal(const keel_chance *c, uint64_t row, uint64_t element);
/* A uniform draw from [0, 1), keyed in the same way. */
double keel_uniform_at(const keel_chance *c, uint64_t row, uint64_t element);

/* Keras: VarianceScaling; Glorot, He and LeCun initializers are special cases of it. */
typedef enum keel_fan_mode { KEEL_FAN_IN, KEEL_FAN_OUT, KEEL_FAN_AVG } keel_fan_mode;
typedef enum keel_distribution {
    KEEL_TRUNCATED_NORMAL,
    KEEL_UNTRUNCATED_NORMAL,
    KEEL_UNIFORM,
} keel_distribution;

/* First member of the args of random initializers; KEEL_INT_NULL: use the model's seed. */
typedef struct keel_seeded {
    int64_t seed;
} keel_seeded;
#define KEEL_SEED_FIELD(args)                                                                      \
    {                                                                                              \
        .key = "seed", .kind = KEEL_FIELD_INT, .offset = offsetof(args, seeded.seed),              \
        .dflt = "null", .help = "used instead of the model's seed"                                 \
    }
/* First member of the args of initializers by fans: the dims whose product is fan_in, and fan_out.
 * Only if both are given they count. */
typedef struct keel_fan_args {
    keel_seeded seeded;
    keel_ints input_axes, output_axes; /* count -1: not given */
} keel_fan_args;
#define KEEL_FAN_FIELDS(args, member)                                                              \
    { .key = "seed",                                                                               \
      .kind = KEEL_FIELD_INT,                                                                      \
      .offset = offsetof(args, member seeded.seed),                                                \
      .dflt = "null",                                                                              \
      .help = "used instead of the model's seed" },                                                \
        { .key = "input_axes",                                                                     \
          .kind = KEEL_FIELD_INTS,                                                                 \
          .offset = offsetof(args, member input_axes),                                             \
          .dflt = "null",                                                                          \
          .min = -7,                                                                               \
          .max = 7,                                                                                \
          .newer = true,                                                                           \
          .help = "dims that count for fan_in" },                                                  \
    {                                                                                              \
        .key = "output_axes", .kind = KEEL_FIELD_INTS,                                             \
        .offset = offsetof(args, member output_axes), .dflt = "null", .min = -7, .max = 7,         \
        .newer = true, .help = "dims that count for fan_out"                                       \
    }
/* The args of STFT, with which a layer may begin its own. */
typedef struct keel_stft_args {
    json_t *window; /* a name, numbers, or NULL */
    int scaling;
    bool periodic;
    int side; /* 0: real */
} keel_stft_args;
#define KEEL_STFT_WINDOW_FIELDS                                                                    \
    KEEL_EITHER_OR_NULL(keel_stft_args, window, "\"hann\"",                                        \
                        "name of a window, or its numbers; null: none"),                           \
        KEEL_BOOL(keel_stft_args, periodic, "false",                                               \
                  "the window is one period of one point more"),                                   \
        KEEL_CHOICE_OR_NULL(keel_stft_args, scaling, "\"density\"", "density|spectrum",            \
                            "divide by the L2 or the L1 norm of the window; null: by nothing")
keel_status keel_stft_check(const keel_stft_args *a); /* the window is one that there is */

/* Fields of the initializers whose args are keel_fan_args. */
extern const keel_field keel_fan_fields[];
static inline bool keel_fans_given(const keel_fan_args *a)
{
    return a->input_axes.count >= 0 && a->output_axes.count >= 0;
}
/* `c`, with the seed of `s` if it is set. Then *row becomes 0: as in Keras, weights of one shape
 * whose initializers have the same seed begin equal. */
keel_chance keel_seeded_chance(const keel_seeded *s, const keel_chance *c, uint64_t *row);

/* out[i] = mean + unit * draw i, from [0, 1) or a standard normal, by the functions above. */
void keel_fill(double *out, int64_t count, keel_distribution d, double mean, double unit,
               const keel_chance *c, uint64_t row);
/* KEEL_EARG: `a` names a dim that the shape does not have. c: without the seed of `a`. */
keel_status keel_variance_scaling(double *out, const keel_shape *shape, const keel_fan_args *a,
                                  double scale, keel_fan_mode mode, keel_distribution distribution,
                                  const keel_chance *c, uint64_t row);

#endif
