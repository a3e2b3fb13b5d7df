/* Moves of weights by an optimizer: what a device does where the weights and what the optimizer
 * keeps for them are (device.h), element by element or, with sums, of whole weights. The rules are
 * in optimizers/rules.h, for the host and for devices. */
#ifndef KEEL_DEVICE_MOVE_H
#define KEEL_DEVICE_MOVE_H
#include "base/round.h"
#include "tensor/dtype.h"
#include "tensor/projection.h"
#include <stdbool.h>
#include <stdint.h>

enum { KEEL_MOVE_SLOTS = 3 };

/* How values are clipped; a NaN stays one. A macro, since compilers make the shortest loop of it.
 */
#define KEEL_CLAMP(x, bound) ((x) > (bound) ? (bound) : (x) < -(bound) ? -(bound) : (x))

typedef enum keel_rule {
    KEEL_RULE_PLAIN,
    KEEL_RULE_MOMENTUM,
    KEEL_RULE_MOMENTUM_ONLY, /* neither decay nor a clip */
    KEEL_RULE_NESTEROV,
    KEEL_RULE_ADAM,
    KEEL_RULE_AMSGRAD,
    KEEL_RULE_RMSPROP,
    KEEL_RULE_RMSPROP_MOMENTUM,
    KEEL_RULE_RMSPROP_CENTERED,
    KEEL_RULE_RMSPROP_CENTERED_MOMENTUM,
    KEEL_RULE_ADAGRAD,
    KEEL_RULE_ADADELTA,
    KEEL_RULE_ADAMAX,
    KEEL_RULE_NADAM,
    KEEL_RULE_LION,
    KEEL_RULE_FTRL,
    KEEL_RULE_SCHEDULE_FREE,
    KEEL_RULE_LAMB,      /* all but its step, which is as long as the whole weight allows */
    KEEL_RULE_LAMB_STEP, /* w = the direction of that step, and no slot changes */
    KEEL_RULE_MUON,      /* all but its step, for which a whole matrix is made orthogonal */
    KEEL_RULE_MUON_STEP, /* w, which is the gradient, becomes that matrix, and no slot changes */
    KEEL_RULE_SUM,       /* what else a step does, without slots: w += g */
    KEEL_RULE_MEAN,      /* w = (w + g) / steps */
    KEEL_RULE_AVERAGE,   /* w = momentum w + (1 - momentum) g */
    KEEL_RULE_PENALTY,   /* w += the gradient of l1 |g| + l2 g^2 */
    KEEL_RULES
} keel_rule;

/* Rounded to the type of the weights where they are used. */
typedef struct keel_rule_numbers {
    double rate, decay, scale, clip; /* as those of keel_update */
    double momentum, epsilon;
    double alpha, beta_1, beta_2, one_less_beta_1, one_less_beta_2; /* Adam's and its relatives' */
    double rho, one_less_rho;                                       /* of mean squares */
    double left, left_2;                                            /* 1 - beta^t */
    double of_m, under_m, of_g, under_g;                            /* Nadam's, and Muon's */
    double l1, twice_l2, twice_shrinkage;                           /* Ftrl's, and of penalties */
    double share, one_less_share;                                   /* of a mean of all steps */
    double steps;
} keel_rule_numbers;

typedef struct keel_device_move {
    keel_rule rule;
    keel_dtype real;
    int64_t count;
    void *w;
    const void *g;
    void *slot[KEEL_MOVE_SLOTS]; /* as many as the rule has */
    keel_rule_numbers number;
} keel_device_move;

/* What a regulariser needs of a weight, tile by tile: sums of |w| and of w^2, in double, in one
 * order (optimizers/_measure.c). */
typedef struct keel_device_measure {
    keel_dtype real;
    int64_t count, tile; /* elements of all; of a tile, of which the last may have fewer */
    const void *w;
    double *sums; /* out: two of each tile */
} keel_device_measure;
enum { KEEL_MEASURE_LANES = 256 };

/* What a step looks at of its gradients, tile by tile, once it has divided them: whether each
 * number is finite, and if it is asked for, the sum of their squares, in the order of a measure.
 * Of weights too, which are divided by nothing. */
typedef struct keel_device_tile {
    int64_t first, count;
} keel_device_tile;
typedef struct keel_device_vote {
    double squares;
    int64_t bad; /* a number is not finite */
} keel_device_vote;
typedef struct keel_device_check {
    keel_dtype real;
    int n_tile;
    const keel_device_tile *tile; /* [n_tile] elements of g; where the device is */
    void *g;
    int64_t first, end; /* elements of g that the tiles are of */
    double scale;       /* rounded to the type; g is multiplied by it, and left alone if it is 1 */
    bool squares;
    keel_device_vote *vote; /* out: [n_tile] */
} keel_device_check;

/* A constraint of a whole weight (tensor/projection.h). */
typedef struct keel_device_project {
    keel_dtype real;
    keel_projection how;
    keel_shape shape;
    void *w;
} keel_device_project;

/* Makes a matrix nearly orthogonal, for Muon: x = x / |x|, and `steps` times, of x or, if it has
 * more rows than columns, of its transpose: A = x x', B = b A + c A A, x = a x + B x. Sums are
 * added in the order of their terms, and no multiply-add is fused, as optimizers/muon.c does. */
typedef struct keel_device_orthogonal {
    keel_dtype real;
    int64_t rows, columns, tile; /* tile: elements; the squares are added up tile by tile */
    int64_t steps;
    double a, b, c;
    void *x;       /* [rows, columns] */
    void *scratch; /* as keel_orthogonal_room_of says, aligned to 256 */
} keel_device_orthogonal;

/* Where its scratch has what, in bytes: sums of tiles, another x, A and B; at last its size. */
typedef struct keel_orthogonal_room {
    int64_t x, a, b, size;
} keel_orthogonal_room;

static inline keel_orthogonal_room keel_orthogonal_room_of(int64_t rows, int64_t columns,
                                                           int64_t tile, int64_t element)
{
    const int64_t few = rows < columns ? rows : columns, count = rows * columns;
    keel_orthogonal_room r;
    r.x = keel_round_up(keel_div_up(count, tile) * 2 * (int64_t)sizeof(double), 256);
    r.a = keel_round_up(r.x + count * element, 256);
    r.b = keel_round_up(r.a + few * few * element, 256);
    r.size = keel_round_up(r.b + few * few * element, 256);
    return r;
}

/* Moves a weight by Adafactor (optimizers/adafactor.c), as rules.h says of one element. Sums are in
 * double. Those of squares, of w and of steps, are a measure's, tile by tile; of a row, lane l of
 * KEEL_FACTORED_LANES adds up elements l, l + LANES, ..., and lanes are folded as a measure's; of a
 * column, KEEL_FACTORED_ROWS rows at a time are added up one after another, and then these sums.
 * The r of a matrix are added up as a measure does, in parts: with one matrix, those of a tile. */
typedef struct keel_device_factored {
    keel_dtype real;
    int64_t count, tile;             /* elements of all; of a tile: whole rows */
    int64_t matrices, rows, columns; /* of each; no matrices: there are no r and c */
    void *w;
    const void *g;
    void *r, *c, *v; /* [matrices, rows], [matrices, columns], as w */
    void *scratch;   /* as keel_factored_room_of says, aligned to 256 */
    keel_rule_numbers number;
    double least, threshold; /* of a weight, for the step; of a step: root mean squares */
} keel_device_factored;
enum { KEEL_FACTORED_LANES = 32, KEEL_FACTORED_ROWS = 128 };

/* What is added up, and where the scratch has it, in bytes: sums of the tiles of w and of the step,
 * of parts of r, of columns over some rows, and the means of r by matrix; at last its size. */
typedef struct keel_factored_room {
    int64_t tiles, part, parts; /* of w; rows of a part of r, and its parts by matrix */
    int64_t heights;            /* how often a matrix has KEEL_FACTORED_ROWS rows, or fewer */
    int64_t w, step, r, columns, mean, size;
} keel_factored_room;

static inline keel_factored_room keel_factored_room_of(const keel_device_factored *f)
{
    const int64_t element = (int64_t)sizeof(double);
    keel_factored_room r;
    r.tiles = keel_div_up(f->count, f->tile);
    r.heights = r.part = r.parts = r.w = 0;
    if (f->matrices > 0) {
        r.heights = keel_div_up(f->rows, KEEL_FACTORED_ROWS);
        r.part = f->matrices == 1 ? f->tile / f->columns : f->rows;
        r.parts = keel_div_up(f->rows, r.part);
    }
    r.step = keel_round_up(r.tiles * element, 256);
    r.r = keel_round_up(r.step + r.tiles * element, 256);
    r.columns = keel_round_up(r.r + f->matrices * r.parts * element, 256);
    r.mean = keel_round_up(r.columns + f->matrices * r.heights * f->columns * element, 256);
    r.size = keel_round_up(r.mean + f->matrices * element, 256);
    return r;
}

static inline int keel_rule_slots(keel_rule rule)
{
    static const int slots[KEEL_RULES] = { 0, 1, 1, 1, 2, 3, 1, 2, 2, 3, 1, 2, 2,
                                           2, 1, 2, 2, 2, 2, 1, 1, 0, 0, 0, 0 };
    return slots[rule];
}

#endif
