/* An optimizer moves one tile of one weight: a range of the flat masters, gradients and moments. */
#ifndef KEEL_OPTIMIZERS_OPTIMIZER_H
#define KEEL_OPTIMIZERS_OPTIMIZER_H
#include "base/field.h"
#include "ops/op.h"

enum { KEEL_SLOTS_MAX = 3 };

/* The arguments that every Keras optimizer has; each optimizer's args begin with this. */
typedef struct keel_optimizer_common {
    double learning_rate;
    double weight_decay;                         /* NAN: none */
    double clipnorm, clipvalue, global_clipnorm; /* NAN or 0: none; at most one may be given */
} keel_optimizer_common;

/* Put these into an optimizer's field table; defaults of the first two differ between optimizers.
 */
#define KEEL_OPTIMIZER_FIELDS(args, rate, decay)                                                   \
    { .key = "learning_rate",                                                                      \
      .kind = KEEL_FIELD_FLOAT,                                                                    \
      .dflt = rate,                                                                                \
      .min = 0,                                                                                    \
      .max = 1e30,                                                                                 \
      .offset = offsetof(args, common.learning_rate),                                              \
      .help = "step size" },                                                                       \
        { .key = "weight_decay",                                                                   \
          .kind = KEEL_FIELD_FLOAT,                                                                \
          .dflt = decay,                                                                           \
          .min = 0,                                                                                \
          .max = 1e30,                                                                             \
          .offset = offsetof(args, common.weight_decay),                                           \
          .help = "decoupled: w -= rate * decay * w" },                                            \
        { .key = "clipnorm",                                                                       \
          .kind = KEEL_FIELD_FLOAT,                                                                \
          .dflt = "null",                                                                          \
          .min = 0,                                                                                \
          .max = 1e30,                                                                             \
          .offset = offsetof(args, common.clipnorm),                                               \
          .help = "largest norm of one weight's gradient" },                                       \
        { .key = "clipvalue",                                                                      \
          .kind = KEEL_FIELD_FLOAT,                                                                \
          .dflt = "null",                                                                          \
          .min = 0,                                                                                \
          .max = 1e30,                                                                             \
          .offset = offsetof(args, common.clipvalue),                                              \
          .help = "largest element of a gradient" },                                               \
        { .key = "global_clipnorm",                                                                \
          .kind = KEEL_FIELD_FLOAT,                                                                \
          .dflt = "null",                                                                          \
          .min = 0,                                                                                \
          .max = 1e30,                                                                             \
          .offset = offsetof(args, common.global_clipnorm),                                        \
          .help = "largest norm of all gradients" },                                               \
        KEEL_REFUSE("use_ema", "false", "moving averages of weights"),                             \
        KEEL_IGNORE("ema_momentum", "only read with use_ema"),                                     \
        KEEL_IGNORE("ema_overwrite_frequency", "only read with use_ema"),                          \
        KEEL_REFUSE("loss_scale_factor", "null", "fixed loss scale"),                              \
        KEEL_REFUSE("gradient_accumulation_steps", "null",                                         \
                    "use a larger batch size: shards are exact"),                                  \
        KEEL_IGNORE("name", "of the optimizer")

typedef struct keel_update {
    const void *args;
    int64_t iteration;    /* 1 for the first step ever, Keras's iterations + 1 */
    double learning_rate; /* in force at this step */
    int64_t count;        /* elements of the tile */
    void *w;              /* masters, moved */
    const void *g;        /* divided, regularised, not yet clipped */
    double scale;         /* of clipping by norm: use g * scale ... */
    double clip;          /* ... then clamped to +-clip; INFINITY: no clamp */
    void *slot[KEEL_SLOTS_MAX];
} keel_update;

/* Keras saves an optimizer's variables in this order (optimizer/vars/0, 1, 2 ... of the file), and
 * so do we: 0 iteration (int64, no dims), 1 learning_rate (float32, no dims), then for every
 * trainable weight in the order of model.trainable_variables its first `together` slots side by
 * side, then every further slot for all weights: Adam m0 v0 m1 v1 ..., with amsgrad then hat0 hat1
 * ... SGD without momentum has no slots. All slots begin as zeros and have the shape of their
 * weight. */
typedef struct keel_optimizer {
    keel_type type;
    int (*slots)(const void *args, const char *names[KEEL_SLOTS_MAX]); /* Keras's: "momentum" */
    int together;
    void (*apply[2])(const keel_update *u); /* decoupled weight decay included; float32, float64 */
    /* How much of the last move is kept, where a tile is moved as keel_tile_move says but for a
     * clamp; else 0. NULL: never. */
    double (*plain_momentum)(const void *args);
} keel_optimizer;

extern const keel_optimizer *const keel_optimizers[]; /* generated; ends with NULL */
const keel_type *keel_optimizer_find(const char *name);

/* KEEL_EARG where more than one of the three clips is given, as in Keras. */
keel_status keel_optimizer_check(const keel_type *type, const keel_optimizer_common *c);

/* Does this limit clip? In Keras null and 0 both mean that nothing is clipped. */
static inline bool keel_clips(double limit)
{
    return limit > 0;
}

/* keel_update.scale for a gradient (or all of them) of that norm; 1 where the limit does not clip.
 */
double keel_clip_scale(double norm, double limit);

/* keel_update.clip for that clipvalue; INFINITY where it does not clip. */
double keel_clip_bound(double clipvalue);

#endif
