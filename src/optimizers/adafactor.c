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
 * are a matrix. */
#ifndef REAL
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

typedef struct matrices { /* the weight as matrices of rows x columns */
    int64_t rows, columns, count;
} matrices;

static matrices matrices_of(const keel_update_whole *whole)
{
    const keel_shape *s = whole->shape;
    matrices m = { .rows = s->dim[s->rank - 2], .columns = s->dim[s->rank - 1] };
    m.count = whole->count / (m.rows * m.columns);
    return m;
}

#define REAL_FILE "optimizers/adafactor.c"
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
    .passes = passes,
};

#else
typedef struct REAL_(factor_t) {
    REAL scale, clip, epsilon_1, kept, fresh;
} REAL_(factor_t);

enum { REAL_(AT_ONCE) = 512, REAL_(COLUMNS) = 16 };

/* ---- pass 0 ---------------------------------------------------------------------------------- */

KEEL_ONE_PASS
static double REAL_(decay)(int64_t n, REAL *w, REAL decay, REAL rate)
{
    for (int64_t i = 0; decay != 0 && i < n; i++) w[i] = KEEL_DECAYED(w[i], decay, rate);
    return REAL_(keel_sum_squares)(w, n);
}

KEEL_ONE_PASS
static double REAL_(row_sum)(const REAL *g, int64_t n, const REAL_(factor_t) * of)
{
    const REAL_(factor_t) f = *of;
    double part[KEEL_PARTS] = { 0 };
    int64_t i = 0;
    for (; i + KEEL_PARTS <= n; i += KEEL_PARTS)
        for (int k = 0; k < KEEL_PARTS; k++) {
            const REAL gi = KEEL_CLAMP(g[i + k] * f.scale, f.clip);
            part[k] += (double)(gi * gi + f.epsilon_1);
        }
    for (int k = 0; i < n; i++, k++) {
        const REAL gi = KEEL_CLAMP(g[i] * f.scale, f.clip);
        part[k] += (double)(gi * gi + f.epsilon_1);
    }
    return keel_add_parts(part);
}

/* Neighbouring columns of one matrix, over all its rows. */
KEEL_ONE_PASS
static void REAL_(column_sums)(const REAL *g, int64_t rows, int64_t stride, int n,
                               const REAL_(factor_t) * of, double sum[REAL_(COLUMNS)])
{
    const REAL_(factor_t) f = *of;
    for (int k = 0; k < REAL_(COLUMNS); k++) sum[k] = 0;
    for (int64_t i = 0; i < rows; i++, g += stride)
        for (int k = 0; k < n; k++) {
            const REAL gi = KEEL_CLAMP(g[k] * f.scale, f.clip);
            sum[k] += (double)(gi * gi + f.epsilon_1);
        }
}

static void REAL_(rows)(const keel_update *u, const matrices *m, const REAL_(factor_t) * f)
{
    const REAL *g = u->g;
    REAL *r = (REAL *)u->whole->slot[0] + u->first / m->columns;
    for (int64_t i = 0; i < u->count / m->columns; i++) {
        const double sum = REAL_(row_sum)(g + i * m->columns, m->columns, f);
        r[i] = f->kept * r[i] + f->fresh * (REAL)(sum / (double)m->columns);
        u->sum[1] += (double)r[i];
    }
}

/* Computes the tile's share of the columns of the whole weight. */
static void REAL_(columns)(const keel_update *u, const matrices *m, const REAL_(factor_t) * f)
{
    const keel_update_whole *w = u->whole;
    const int64_t each = (m->columns + REAL_(COLUMNS) - 1) / REAL_(COLUMNS);
    const int64_t all = m->count * each;
    const int64_t end = all * (w->tile + 1) / w->n_tile;
    for (int64_t i = all * w->tile / w->n_tile; i < end; i++) {
        const int64_t matrix = i / each, column = i % each * REAL_(COLUMNS);
        const int64_t left = m->columns - column;
        const int n = left < REAL_(COLUMNS) ? (int)left : REAL_(COLUMNS);
        REAL *c = (REAL *)w->slot[1] + matrix * m->columns + column;
        double sum[REAL_(COLUMNS)];
        REAL_(column_sums)
        ((const REAL *)w->g + matrix * m->rows * m->columns + column, m->rows, m->columns, n, f,
         sum);
        for (int k = 0; k < n; k++)
            c[k] = f->kept * c[k] + f->fresh * (REAL)(sum[k] / (double)m->rows);
    }
}

/* ---- pass 1 ---------------------------------------------------------------------------------- */

/* v = row c if there is c, else the next v of the mean square; and the squares of u. */
KEEL_ONE_PASS
static double REAL_(spread)(int64_t n, const REAL *restrict g, REAL *restrict v,
                            const REAL *restrict c, REAL row, const REAL_(factor_t) * of)
{
    const REAL_(factor_t) f = *of;
    double sum = 0;
    REAL step[REAL_(AT_ONCE)];
    for (int64_t at = 0; at < n; at += REAL_(AT_ONCE)) {
        const int64_t end = n - at < REAL_(AT_ONCE) ? n - at : REAL_(AT_ONCE);
        for (int64_t k = 0, i = at; k < end; k++, i++) {
            const REAL gi = KEEL_CLAMP(g[i] * f.scale, f.clip);
            const REAL vi = c ? row * c[i] : f.kept * v[i] + f.fresh * (gi * gi + f.epsilon_1);
            v[i] = vi;
            step[k] = gi / REAL_SQRT(vi);
        }
        sum += REAL_(keel_sum_squares)(step, end);
    }
    return sum;
}

/* The mean of r over the rows of a matrix. */
static REAL REAL_(mean_row)(const keel_update_whole *w, const matrices *m, int64_t matrix)
{
    const REAL *r = (const REAL *)w->slot[0] + matrix * m->rows;
    double sum = 0;
    if (m->count == 1) return (REAL)(w->sum[0][1] / (double)m->rows);
    for (int64_t i = 0; i < m->rows; i++) sum += (double)r[i];
    return (REAL)(sum / (double)m->rows);
}

static void REAL_(spread_rows)(const keel_update *u, const REAL_(factor_t) * f)
{
    const keel_update_whole *w = u->whole;
    const matrices m = matrices_of(w);
    const int64_t first = u->first / m.columns, end = first + u->count / m.columns;
    int64_t matrix = -1;
    REAL mean = 1;
    for (int64_t i = first; i < end; i++) {
        const int64_t at = (i - first) * m.columns;
        if (i / m.rows != matrix) mean = REAL_(mean_row)(w, &m, matrix = i / m.rows);
        u->sum[0] += REAL_(spread)(m.columns, (const REAL *)u->g + at, (REAL *)u->slot[2] + at,
                                   (const REAL *)w->slot[1] + matrix * m.columns,
                                   ((const REAL *)w->slot[0])[i] / mean, f);
    }
}

/* ---- pass 2 ---------------------------------------------------------------------------------- */

KEEL_ONE_PASS
static void REAL_(move)(int64_t n, REAL *restrict w, const REAL *restrict g, const REAL *restrict v,
                        REAL alpha, REAL over, const REAL_(factor_t) * of)
{
    const REAL_(factor_t) f = *of;
    for (int64_t i = 0; i < n; i++) {
        const REAL gi = KEEL_CLAMP(g[i] * f.scale, f.clip);
        w[i] = w[i] - alpha * (gi / REAL_SQRT(v[i]) / over);
    }
}

static REAL REAL_(rms)(double sum, int64_t count)
{
    return REAL_SQRT((REAL)(sum / (double)count));
}

static void REAL_(apply)(const keel_update *u)
{
    const args_t *a = u->args;
    const keel_update_whole *whole = u->whole;
    const bool matrix = whole->shape->rank >= 2;
    const REAL step = (REAL)u->iteration, rate = (REAL)u->learning_rate;
    const REAL kept = 1 - REAL_POW(step, (REAL)a->beta_2_decay);
    const REAL_(factor_t) f = { .scale = (REAL)u->scale,
                                .clip = (REAL)u->clip,
                                .epsilon_1 = (REAL)a->epsilon_1,
                                .kept = kept,
                                .fresh = 1 - kept };
    if (u->pass == 0) {
        u->sum[0] = REAL_(decay)(u->count, u->w, (REAL)keel_decay(&a->common), rate);
        u->sum[1] = 0;
        if (!matrix) return;
        const matrices m = matrices_of(whole);
        REAL_(rows)(u, &m, &f);
        REAL_(columns)(u, &m, &f);
    } else if (u->pass == 1) {
        u->sum[0] = u->sum[1] = 0;
        if (matrix)
            REAL_(spread_rows)(u, &f);
        else
            u->sum[0] = REAL_(spread)(u->count, u->g, u->slot[2], NULL, 0, &f);
    } else {
        /* relative_step sets the same bound again; as in Keras, it changes nothing */
        const REAL slow = 1 / REAL_SQRT(step), rho = rate < slow ? rate : slow;
        const REAL size = REAL_(rms)(whole->sum[0][0], whole->count);
        const REAL least = (REAL)a->epsilon_2, alpha = (size > least ? size : least) * rho;
        const REAL ratio = REAL_(rms)(whole->sum[1][0], whole->count) / (REAL)a->clip_threshold;
        REAL_(move)(u->count, u->w, u->g, u->slot[2], alpha, ratio > 1 ? ratio : 1, &f);
    }
}
#endif
