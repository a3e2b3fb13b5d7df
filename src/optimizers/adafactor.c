/* Adafactor (Shazeer and Stern 2018), in the order of operations of Keras's update_step. The mean
 * square of a matrix's gradient is kept by row, r, and by column, c; v = r / mean(r) c. With
 * s = g^2 + eps1, b = 1 - t^beta_2_decay and p = min(lr, 1 / sqrt(t)):
 *
 *     pass 0   r = b r + (1 - b) mean of s by row, by who has the row; c likewise by column, the
 *              columns shared by tiles; the squares of w and the elements of r are added
 *     pass 1   v, and u = g / sqrt(v), whose squares are added
 *     pass 2   w -= max(eps2, rms(w)) p u / max(1, rms(u) / clip_threshold)
 *
 * Weights with fewer than two dims keep v = b v + (1 - b) s instead; of more dims, the last two
 * are a matrix. Sums are in the orders of keel_device_factored, so that devices, which share them
 * among many threads, have the same bits. */
#ifndef REAL
#include "optimizers/move.h"
#include "optimizers/one_pass.h"

typedef struct args_t {
    keel_optimizer_common common;
    double beta_2_decay, epsilon_1, epsilon_2, clip_threshold;
    bool relative_step;
} args_t;

static const keel_field fields[] = {
    KEEL_OPTIMIZER_FIELDS(args_t, "0.001", "null"),
    KEEL_FLOAT(args_t, beta_2_decay, "-0.8", -1e30, 1e30, "how fast the mean square slows down"),
    KEEL_FLOAT(args_t, epsilon_1, "1e-30", 0, 1e30, "added to the square of the gradient"),
    KEEL_FLOAT(args_t, epsilon_2, "0.001", 0, 1e30, "least size of a weight, for the step"),
    KEEL_FLOAT(args_t, clip_threshold, "1.0", 1e-30, 1e30, "largest root mean square of a step"),
    KEEL_BOOL(args_t, relative_step, "true", "learning rate at most 1 over the root of the step"),
    { 0 },
};

static keel_status slots(const void *args, const keel_weight_info *w, keel_slots *out)
{
    const bool matrix = w->spec.shape.rank >= 2;
    (void)args;
    *out = (keel_slots){
        .count = 3,
        .at = { { .name = "r", .kind = matrix ? KEEL_SLOT_ROWS : KEEL_SLOT_MARK },
                { .name = "c", .kind = matrix ? KEEL_SLOT_COLUMNS : KEEL_SLOT_MARK },
                { .name = "velocity", .kind = KEEL_SLOT_ALIKE } },
    };
    return KEEL_OK;
}

static int passes(const void *args)
{
    (void)args;
    return 3;
}

#define RULE        static inline __attribute__((always_inline))
#define TIMES(x, y) ((x) * (y))
#define REAL_FILE   "optimizers/adafactor.c"
#include "ops/real.h"

const keel_optimizer keel_optimizer_adafactor = {
    .type = {
        .name = "Adafactor",
        .alias = "adafactor",
        .module = "keras.optimizers",
        .help = "Adam with the mean square of a matrix kept by row and by column",
        .args_size = sizeof(args_t),
        .fields = fields,
    },
    .slots = slots,
    .apply = REALS(apply),
    .factored = REALS(factored),
    .passes = passes,
};

#else
#include "optimizers/rules.h"

enum { REAL_(AT_ONCE) = 2 * KEEL_MEASURE_LANES, REAL_(COLUMNS) = 16 };

static void REAL_(factored)(const keel_update *u, keel_device_factored *out)
{
    const args_t *a = u->args;
    const keel_shape *s = u->whole->shape;
    const REAL step = (REAL)u->iteration, rate = (REAL)u->learning_rate;
    /* relative_step sets the same bound again; as in Keras, it changes nothing */
    const REAL slow = 1 / REAL_SQRT(step), kept = 1 - REAL_POW(step, (REAL)a->beta_2_decay);
    keel_device_move m;
    keel_move_begin(u, &a->common, REAL_IS_DOUBLE, &m);
    m.number.epsilon = a->epsilon_1;
    m.number.rho = kept;
    m.number.one_less_rho = 1 - kept;
    m.number.alpha = rate < slow ? rate : slow;
    *out = (keel_device_factored){ .real = m.real,
                                   .count = u->whole->count,
                                   .number = m.number,
                                   .least = a->epsilon_2,
                                   .threshold = a->clip_threshold };
    if (s->rank < 2) return;
    out->rows = s->dim[s->rank - 2];
    out->columns = s->dim[s->rank - 1];
    out->matrices = out->count / (out->rows * out->columns);
}

/* ---- pass 0 ---------------------------------------------------------------------------------- */

KEEL_ONE_PASS
static void REAL_(decay)(int64_t n, REAL *w, const REAL_(rule_t) * of)
{
    const REAL_(rule_t) f = *of;
    for (int64_t i = 0; f.decay != 0 && i < n; i++) w[i] = REAL_(decayed)(&f, w[i]);
}

KEEL_ONE_PASS
static double REAL_(row_sum)(const REAL *g, int64_t n, const REAL_(rule_t) * of)
{
    enum { LANES = KEEL_FACTORED_LANES };
    const REAL_(rule_t) f = *of;
    double lane[LANES] = { 0 };
    int64_t i = 0;
    for (; i + LANES <= n; i += LANES)
        for (int k = 0; k < LANES; k++) lane[k] += (double)REAL_(factored_square)(&f, g[i + k]);
    for (int k = 0; i < n; i++, k++) lane[k] += (double)REAL_(factored_square)(&f, g[i]);
    return keel_fold_lanes(lane, LANES);
}

/* Neighbouring columns of one matrix, over all its rows. */
KEEL_ONE_PASS
static void REAL_(column_sums)(const REAL *g, int64_t rows, int64_t stride, int n,
                               const REAL_(rule_t) * of, double sum[REAL_(COLUMNS)])
{
    const REAL_(rule_t) f = *of;
    for (int k = 0; k < REAL_(COLUMNS); k++) sum[k] = 0;
    for (int64_t i = 0; i < rows;) {
        const int64_t end = rows - i < KEEL_FACTORED_ROWS ? rows : i + KEEL_FACTORED_ROWS;
        double part[REAL_(COLUMNS)] = { 0 };
        for (; i < end; i++, g += stride)
            for (int k = 0; k < n; k++) part[k] += (double)REAL_(factored_square)(&f, g[k]);
        for (int k = 0; k < REAL_(COLUMNS); k++) sum[k] += part[k];
    }
}

KEEL_ONE_PASS
static double REAL_(add_up)(const REAL *r, int64_t n)
{
    enum { LANES = KEEL_MEASURE_LANES };
    double lane[LANES] = { 0 };
    for (int64_t i = 0; i < n; i += LANES, r += LANES) {
        const int64_t end = n - i < LANES ? n - i : LANES;
        for (int64_t l = 0; l < end; l++) lane[l] += (double)r[l];
    }
    return keel_fold_lanes(lane, LANES);
}

/* Returns the sum of r. */
static double REAL_(rows)(const keel_update *u, const keel_device_factored *d,
                          const REAL_(rule_t) * f)
{
    const REAL *g = u->g;
    const int64_t n = u->count / d->columns;
    REAL *r = (REAL *)u->whole->slot[0] + u->first / d->columns;
    for (int64_t i = 0; i < n; i++) {
        const double sum = REAL_(row_sum)(g + i * d->columns, d->columns, f);
        r[i] = REAL_(factored_mean)(f, r[i], (REAL)(sum / (double)d->columns));
    }
    return REAL_(add_up)(r, n);
}

/* Computes the tile's share of the columns of the whole weight. */
static void REAL_(columns)(const keel_update *u, const keel_device_factored *d,
                           const REAL_(rule_t) * f)
{
    const keel_update_whole *w = u->whole;
    const int64_t each = (d->columns + REAL_(COLUMNS) - 1) / REAL_(COLUMNS);
    const int64_t all = d->matrices * each;
    const int64_t end = all * (w->tile + 1) / w->n_tile;
    for (int64_t i = all * w->tile / w->n_tile; i < end; i++) {
        const int64_t matrix = i / each, column = i % each * REAL_(COLUMNS);
        const int64_t left = d->columns - column;
        const int n = left < REAL_(COLUMNS) ? (int)left : REAL_(COLUMNS);
        REAL *c = (REAL *)w->slot[1] + matrix * d->columns + column;
        double sum[REAL_(COLUMNS)];
        REAL_(column_sums)
        ((const REAL *)w->g + matrix * d->rows * d->columns + column, d->rows, d->columns, n, f,
         sum);
        for (int k = 0; k < n; k++)
            c[k] = REAL_(factored_mean)(f, c[k], (REAL)(sum[k] / (double)d->rows));
    }
}

/* ---- pass 1 ---------------------------------------------------------------------------------- */

/* The mean of r over the rows of a matrix. */
static REAL REAL_(mean_row)(const keel_update_whole *w, const keel_device_factored *d,
                            int64_t matrix)
{
    const double sum = d->matrices == 1
                           ? w->sum[0][1]
                           : REAL_(add_up)((const REAL *)w->slot[0] + matrix * d->rows, d->rows);
    return (REAL)(sum / (double)d->rows);
}

KEEL_ONE_PASS
static void REAL_(spread_row)(int64_t n, REAL *restrict v, const REAL *restrict c, REAL row)
{
    for (int64_t i = 0; i < n; i++) v[i] = row * c[i];
}

static void REAL_(spread_rows)(const keel_update *u, const keel_device_factored *d)
{
    const keel_update_whole *w = u->whole;
    const int64_t first = u->first / d->columns, end = first + u->count / d->columns;
    int64_t matrix = -1;
    REAL mean = 1;
    for (int64_t i = first; i < end; i++) {
        if (i / d->rows != matrix) mean = REAL_(mean_row)(w, d, matrix = i / d->rows);
        REAL_(spread_row)
        (d->columns, (REAL *)u->slot[2] + (i - first) * d->columns,
         (const REAL *)w->slot[1] + matrix * d->columns, ((const REAL *)w->slot[0])[i] / mean);
    }
}

KEEL_ONE_PASS
static void REAL_(mean_squares)(int64_t n, const REAL *restrict g, REAL *restrict v,
                                const REAL_(rule_t) * of)
{
    const REAL_(rule_t) f = *of;
    for (int64_t i = 0; i < n; i++)
        v[i] = REAL_(factored_mean)(&f, v[i], REAL_(factored_square)(&f, g[i]));
}

KEEL_ONE_PASS
static void REAL_(make_step)(int64_t n, const REAL *restrict g, const REAL *restrict v,
                             REAL *restrict step, const REAL_(rule_t) * of)
{
    const REAL_(rule_t) f = *of;
    for (int64_t i = 0; i < n; i++) step[i] = REAL_(factored_step)(&f, g[i], v[i]);
}

static double REAL_(squares_of_step)(const keel_update *u, keel_dtype real, const REAL_(rule_t) * f)
{
    double lanes[KEEL_MEASURE_LANES] = { 0 };
    REAL step[REAL_(AT_ONCE)];
    for (int64_t at = 0; at < u->count; at += REAL_(AT_ONCE)) {
        const int64_t n = u->count - at < REAL_(AT_ONCE) ? u->count - at : REAL_(AT_ONCE);
        REAL_(make_step)(n, (const REAL *)u->g + at, (const REAL *)u->slot[2] + at, step, f);
        keel_add_squares(real, step, n, lanes);
    }
    return keel_fold_lanes(lanes, KEEL_MEASURE_LANES);
}

/* ---- pass 2 ---------------------------------------------------------------------------------- */

KEEL_ONE_PASS
static void REAL_(move)(int64_t n, REAL *restrict w, const REAL *restrict g, const REAL *restrict v,
                        REAL length, REAL over, const REAL_(rule_t) * of)
{
    const REAL_(rule_t) f = *of;
    for (int64_t i = 0; i < n; i++)
        w[i] = w[i] - length * (REAL_(factored_step)(&f, g[i], v[i]) / over);
}

static void REAL_(apply)(const keel_update *u)
{
    const keel_update_whole *whole = u->whole;
    keel_device_factored d;
    REAL_(factored)(u, &d);
    const REAL_(rule_t) f = REAL_(rule_of)(&d.number);
    const bool matrix = d.matrices > 0;
    if (u->pass == 0) {
        REAL_(decay)(u->count, u->w, &f);
        u->sum[0] = keel_squares(d.real, u->w, u->count);
        u->sum[1] = matrix ? REAL_(rows)(u, &d, &f) : 0;
        if (matrix) REAL_(columns)(u, &d, &f);
    } else if (u->pass == 1) {
        if (matrix)
            REAL_(spread_rows)(u, &d);
        else
            REAL_(mean_squares)(u->count, u->g, u->slot[2], &f);
        u->sum[0] = REAL_(squares_of_step)(u, d.real, &f);
        u->sum[1] = 0;
    } else {
        const REAL of_w = REAL_(rms)(whole->sum[0][0], whole->count);
        const REAL of_step = REAL_(rms)(whole->sum[1][0], whole->count);
        REAL_(move)
        (u->count, u->w, u->g, u->slot[2], REAL_(factored_length)(&f, of_w, (REAL)d.least),
         REAL_(factored_over)(of_step, (REAL)d.threshold), &f);
    }
}
#endif
