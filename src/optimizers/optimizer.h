/* An optimizer changes the weights tile by tile; a tile is a range of the flat masters, gradients
 * and slots. An optimizer that must see more than a tile runs in several passes. All tiles finish a
 * pass before the next one begins, so a pass may read what earlier passes wrote for the whole
 * weight, and sums over the weight, which are added in the order of its tiles. So nothing depends
 * on which worker updates which tile. An optimizer with one pass needs no meeting of workers. */
#ifndef KEEL_OPTIMIZERS_OPTIMIZER_H
#define KEEL_OPTIMIZERS_OPTIMIZER_H
#include "base/field.h"
#include "device/move.h"
#include "graph/graph.h"
#include <math.h>

enum {
    KEEL_OWN_SLOTS_MAX = 3,
    KEEL_SLOTS_MAX = KEEL_OWN_SLOTS_MAX + 2,
    KEEL_UPDATE_SUMS = 2,
    KEEL_SUM_PASSES = 2
};

/* The arguments that every Keras optimizer has; each optimizer's args begin with this. */
typedef struct keel_optimizer_common {
    double learning_rate;
    double weight_decay;                         /* NAN: none */
    double clipnorm, clipvalue, global_clipnorm; /* NAN or 0: none; at most one may be given */
    bool use_ema;
    double ema_momentum;
    int64_t ema_overwrite_frequency;     /* KEEL_INT_NULL: only when training ends */
    int64_t gradient_accumulation_steps; /* KEEL_INT_NULL: each step moves */
} keel_optimizer_common;

/* For an optimizer's field table; the defaults of rate and decay differ between optimizers. */
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
          .nullable = true,                                                                        \
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
          .max = INFINITY,                                                                         \
          .offset = offsetof(args, common.clipvalue),                                              \
          .help = "largest element of a gradient" },                                               \
        { .key = "global_clipnorm",                                                                \
          .kind = KEEL_FIELD_FLOAT,                                                                \
          .dflt = "null",                                                                          \
          .min = 0,                                                                                \
          .max = 1e30,                                                                             \
          .offset = offsetof(args, common.global_clipnorm),                                        \
          .help = "largest norm of all gradients" },                                               \
        { .key = "use_ema",                                                                        \
          .kind = KEEL_FIELD_BOOL,                                                                 \
          .dflt = "false",                                                                         \
          .offset = offsetof(args, common.use_ema),                                                \
          .help = "keep moving averages of weights, which training ends with" },                   \
        { .key = "ema_momentum",                                                                   \
          .kind = KEEL_FIELD_FLOAT,                                                                \
          .dflt = "0.99",                                                                          \
          .max = 1,                                                                                \
          .offset = offsetof(args, common.ema_momentum),                                           \
          .help = "how much of an average is kept at each step" },                                 \
        { .key = "ema_overwrite_frequency",                                                        \
          .kind = KEEL_FIELD_INT,                                                                  \
          .dflt = "null",                                                                          \
          .min = 1,                                                                                \
          .max = 1e15,                                                                             \
          .offset = offsetof(args, common.ema_overwrite_frequency),                                \
          .help = "every so many steps weights become their averages" },                           \
        KEEL_IGNORE("loss_scale_factor", "gradients are divided by it again"),                     \
        { .key = "gradient_accumulation_steps",                                                    \
          .kind = KEEL_FIELD_INT,                                                                  \
          .dflt = "null",                                                                          \
          .min = 2,                                                                                \
          .max = 1e15,                                                                             \
          .offset = offsetof(args, common.gradient_accumulation_steps),                            \
          .help = "weights move by the mean gradient of so many steps" },                          \
        KEEL_IGNORE("name", "of the optimizer")

/* What an optimizer keeps for a weight, and its shape. */
typedef enum keel_slot_kind {
    KEEL_SLOT_NONE,    /* nothing */
    KEEL_SLOT_ALIKE,   /* that of the weight */
    KEEL_SLOT_ROWS,    /* the weight's without its last dim: a number for each row */
    KEEL_SLOT_COLUMNS, /* the weight's without its last dim but one */
    KEEL_SLOT_MARK,    /* no memory: in files a scalar int32, 0 */
} keel_slot_kind;

typedef struct keel_slot {
    const char *name; /* Keras's: "momentum" */
    keel_slot_kind kind;
    int group;            /* in files, slots of a group are stored together, weight by weight */
    double first;         /* the value of each element before the first step ... */
    bool first_is_weight; /* ... or, if alike, the weight as it was then */
} keel_slot;

typedef struct keel_slots {
    int count; /* the same for all weights */
    keel_slot at[KEEL_SLOTS_MAX];
    int64_t scratch; /* elements of working memory for this weight; they are not saved */
} keel_slots;

/* The weight that a tile is part of. */
typedef struct keel_update_whole {
    const keel_shape *shape;
    int64_t count;
    const void *g;
    void *w, *slot[KEEL_SLOTS_MAX], *scratch;
    int tile, n_tile; /* which of its tiles this is, or which share: see keel_optimizer.by_rows */
    double sum[KEEL_SUM_PASSES]
              [KEEL_UPDATE_SUMS]; /* from the passes before this one, over all tiles */
} keel_update_whole;

enum { KEEL_MOVE_STEP = 1, KEEL_MOVE_LAST };

typedef struct keel_update {
    const void *args;
    int64_t iteration;          /* 1 for the first step, Keras's iterations + 1 */
    double learning_rate;       /* at this step */
    double number;              /* see keel_optimizer.number: its value after this step */
    int64_t count;              /* elements of the tile: whole rows of the last dim */
    void *w;                    /* masters, moved */
    const void *g;              /* divided and regularised, not yet clipped */
    double scale;               /* clipping by norm: use g * scale ... */
    double clip;                /* ... then clamped to +-clip; INFINITY: no clamp */
    void *slot[KEEL_SLOTS_MAX]; /* at the tile, if slots are alike; else NULL */

    /* Only for optimizers with several passes. */
    int pass;
    int64_t first; /* the element of the weight at which the tile begins */
    double *sum; /* [KEEL_UPDATE_SUMS] out: the tile's part of sums; NULL from pass KEEL_SUM_PASSES
                    on */
    const keel_update_whole *whole;
} keel_update;

/* Keras saves an optimizer's variables in this order (optimizer/vars/0, 1, 2 ... of the file), and
 * so does Keel: 0 iteration (scalar int64); 1 learning_rate (scalar float32, not with a schedule);
 * then, group by group, the slots of all weights in the order of model.trainable_variables: for
 * Adam m0 v0 m1 v1 ..., with amsgrad then hat0 hat1 ...; then the number. */
typedef struct keel_optimizer {
    keel_type type;
    /* What it keeps for a weight: slots with these names, alike, zero at first, in one group; or
     * what the function says. Ask keel_optimizer_slots. */
    const char *alike[KEEL_OWN_SLOTS_MAX];
    keel_status (*slots)(const void *args, const keel_weight_info *w, keel_slots *out);
    void (*apply[2])(const keel_update *u); /* with decoupled weight decay; float32, float64 */
    /* The same as a move that a device can make; NULL: the host applies it. A weight with two
     * passes there: pass 0 moves all but w, KEEL_MOVE_STEP leaves a step in the place of the
     * gradient, and KEEL_MOVE_LAST moves w by it, with sums of the squares of w and of that step.
     * With `orthogonal` these are the weights that have scratch: the step is made orthogonal in
     * between, and there are no sums. All other weights then move in pass 0 alone. */
    void (*move[2])(const keel_update *u, keel_device_move *out);
    void (*orthogonal)(const void *args, keel_device_orthogonal *out); /* steps, a, b and c */
    /* Instead of `move`, if mean squares are kept by row and by column: what one call of a device
     * does to a whole weight. out: all but pointers and tile. */
    void (*factored[2])(const keel_update *u, keel_device_factored *out);
    bool (*moves_there)(const void *args); /* whether devices can; NULL: with any arguments */
    int (*passes)(const void *args);       /* NULL: one */
    /* Whether this pass makes rows of whole weights, which all workers share, whoever owns their
     * tiles: whole->tile is then the share, of n_tile, and w, g and slots are the weight's. NULL:
     * no pass does. */
    bool (*by_rows)(const void *args, int pass);
    /* A number that it keeps for all weights together: computes its value after a step from that
     * before. NULL: none. */
    double (*number[2])(const void *args, int64_t iteration, double before);
    double first_number; /* before the first step */
    /* The part of the last update that is kept, if a tile is moved as keel_tile_move says, except
     * for clipping; else 0. NULL: never. */
    double (*plain_momentum)(const void *args);
    /* Does an element whose gradient is 0 stay as it is, and what is kept for it too? NULL: no. */
    bool (*rests)(const void *args);
} keel_optimizer;

extern const keel_optimizer *const keel_optimizers[]; /* generated; ends with NULL */
const keel_type *keel_optimizer_find(const char *name);

/* KEEL_EARG: more than one of the three clips is given, as in Keras. */
keel_status keel_optimizer_check(const keel_type *type, const keel_optimizer_common *c);

/* What the optimizer keeps for that weight: its own slots, then the moving average and the sum of
 * gradients if its arguments ask for them; in files those come before all others. */
keel_status keel_optimizer_slots(const keel_optimizer *o, const void *args,
                                 const keel_weight_info *w, keel_slots *out);

/* The shape of a slot of this kind. false: it has no memory. */
bool keel_slot_shape(keel_slot_kind kind, const keel_shape *weight, keel_shape *out);

/* A slot of one of several weights. */
typedef struct keel_slot_place {
    int weight, slot;
    keel_slot what;
} keel_slot_place;

/* What an optimizer keeps for some weights, in the order of Keras's optimizer.variables, with slots
 * that have no memory: *out [*n], to free by keel_free. info [n_weight]: NULL for a weight that it
 * does not move. */
keel_status keel_optimizer_places(const keel_optimizer *o, const void *args,
                                  const keel_weight_info *const *info, int n_weight,
                                  keel_slot_place **out, int *n);

/* For optimizers that keep `count` slots with these names, alike, in one group, zero at first. */
keel_status keel_slots_alike(keel_slots *out, int count, const char *const *names);

/* Whether this limit clips. In Keras null and 0 mean no clipping. */
static inline bool keel_clips(double limit)
{
    return limit > 0 && limit < INFINITY;
}

/* keel_update.scale for a gradient (or all gradients) with that norm; 1 if the limit does not clip.
 */
double keel_clip_scale(double norm, double limit);

/* keel_update.clip for that clipvalue; INFINITY if it does not clip. */
double keel_clip_bound(double clipvalue);

#endif
