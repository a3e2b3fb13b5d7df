/* Muon (Jordan et al. 2024), in the order of operations of Keras's update_step. A matrix moves by
 * its momentum made nearly orthogonal: X = g / |g|, then ns_steps times
 * A = X X', B = b A + c A A, X = a X + B X. All other weights, embeddings and those of the layers
 * that are excluded move by Adam. X is held with its transpose, so that every product adds rows:
 *
 *     pass 0        decay; m += g + m (mu - 1); X = m, or with nesterov g + mu m; its squares added
 *     pass 1        X and its transpose, of length 1
 *     pass 2 + 3 s  A, then B, then the next X: each worker has a share of their rows
 *     the last      w -= lr X sqrt(max(rows, columns)) rms_rate */
#ifndef REAL
#include "optimizers/adam_impl.h"
#include "optimizers/move.h"
#include "optimizers/one_pass.h"
#include "optimizers/pattern.h"
#include <ctype.h>
#include <string.h>

typedef struct args_t {
    keel_optimizer_common common;
    double adam_beta_1, adam_beta_2, adam_weight_decay, epsilon, adam_lr_ratio;
    keel_texts exclude_layers;
    bool exclude_embeddings, nesterov;
    double muon_a, muon_b, muon_c, momentum, rms_rate;
    int64_t ns_steps;
} args_t;

static const keel_field fields[] = {
    KEEL_OPTIMIZER_FIELDS(args_t, "0.001", "0.004"),
    KEEL_FLOAT(args_t, adam_beta_1, "0.9", 0, 1, "of Adam: how much of the mean gradient is kept"),
    KEEL_FLOAT(args_t, adam_beta_2, "0.999", 0, 1, "of Adam: how much of the mean square is kept"),
    { .key = "adam_weight_decay",
      .kind = KEEL_FIELD_FLOAT,
      .dflt = "0.004",
      .nullable = true,
      .min = 0,
      .max = 1e30,
      .offset = offsetof(args_t, adam_weight_decay),
      .help = "decay of the weights that Adam moves" },
    KEEL_FLOAT(args_t, epsilon, "1e-7", 0, 1e30, "of Adam: added to the root of the mean square"),
    KEEL_TEXTS(args_t, exclude_layers, "null",
               "regular expressions: weights with a part of their "
               "name like this move by Adam"),
    KEEL_BOOL(args_t, exclude_embeddings, "true", "embeddings move by Adam"),
    KEEL_FLOAT(args_t, muon_a, "3.4445", -1e30, 1e30, "of the iteration: times X"),
    KEEL_FLOAT(args_t, muon_b, "-4.775", -1e30, 1e30, "of the iteration: times X X' X"),
    KEEL_FLOAT(args_t, muon_c, "2.0315", -1e30, 1e30, "of the iteration: times X X' X X' X"),
    KEEL_FLOAT(args_t, adam_lr_ratio, "1", 0, 1e30, "Adam's learning rate over that of Muon"),
    KEEL_FLOAT(args_t, momentum, "0.95", 0, 1, "how much of the last gradients is kept"),
    KEEL_INT(args_t, ns_steps, "5", 0, 100, "iterations"),
    KEEL_BOOL(args_t, nesterov, "true", "look ahead by the momentum"),
    { .key = "rms_rate",
      .kind = KEEL_FIELD_FLOAT,
      .dflt = "0.2",
      .nullable = true,
      .min = 0,
      .max = 1e30,
      .offset = offsetof(args_t, rms_rate),
      .help = "root mean square of a step at rate 1; null: steps are left as they are" },
    { 0 },
};

/* ---- which weights --------------------------------------------------------------------------- */

static bool is_embedding(const char *name)
{
    static const char word[] = "embedding";
    for (; *name; name++) {
        size_t n = 0;
        while (word[n] && tolower((unsigned char)name[n]) == word[n]) n++;
        if (!word[n]) return true;
    }
    return false;
}

static keel_status slots(const void *args, const keel_weight_info *w, keel_slots *out)
{
    const args_t *a = args;
    const keel_shape *s = &w->spec.shape;
    bool adam = s->rank != 2 || (a->exclude_embeddings && is_embedding(w->name));
    for (int i = 0; i < a->exclude_layers.count && !adam; i++)
        KEEL_TRY(keel_pattern_finds("Muon: exclude_layers", a->exclude_layers.at[i], w->name, false,
                                    &adam));
    *out = (keel_slots){
        .count = 2,
        .at = { { .name = "momentum", .kind = KEEL_SLOT_ALIKE },
                { .name = "velocity", .kind = adam ? KEEL_SLOT_ALIKE : KEEL_SLOT_NONE } },
    };
    if (adam) return KEEL_OK;
    const int64_t count = s->dim[0] * s->dim[1],
                  few = s->dim[0] < s->dim[1] ? s->dim[0] : s->dim[1];
    if (count > INT64_MAX / 64) return keel_fail(KEEL_EUNSUP, "Muon: '%s' is too large", w->name);
    out->scratch = 4 * count + 2 * few * few;
    return KEEL_OK;
}

static int passes(const void *args)
{
    return 3 + 3 * (int)((const args_t *)args)->ns_steps;
}

static bool by_rows(const void *args, int pass)
{
    return pass >= 2 && pass < passes(args) - 1;
}

static void orthogonal(const void *args, keel_device_orthogonal *out)
{
    const args_t *a = args;
    out->steps = a->ns_steps;
    out->a = a->muon_a;
    out->b = a->muon_b;
    out->c = a->muon_c;
}

/* ---- moving ---------------------------------------------------------------------------------- */

typedef struct share { /* of the rows that a pass makes */
    int64_t begin, end;
} share;

static share share_of(const keel_update_whole *w, int64_t rows)
{
    return (share){ rows * w->tile / w->n_tile, rows * (w->tile + 1) / w->n_tile };
}

/* Of a symmetric matrix, of which a row is made up to its diagonal: as much work for each share. */
static share share_of_half(const keel_update_whole *w, int64_t rows)
{
    const double n = w->n_tile;
    return (share){ (int64_t)((double)rows * sqrt(w->tile / n)),
                    (int64_t)((double)rows * sqrt((w->tile + 1) / n)) };
}

#define REAL_FILE "optimizers/muon.c"
#include "ops/real.h"

const keel_optimizer keel_optimizer_muon = {
    .type = {
        .name = "Muon",
        .alias = "muon",
        .module = "keras.optimizers",
        .help = "matrices move by their momentum made orthogonal, all else by Adam",
        .args_size = sizeof(args_t),
        .fields = fields,
    },
    .slots = slots,
    .passes = passes,
    .by_rows = by_rows,
    .apply = REALS(apply),
    .move = REALS(move),
    .orthogonal = orthogonal,
};

#else
typedef struct REAL_(matrix) { /* a weight of rows x columns; `few` is the smaller */
    int64_t rows, columns, few, many;
    bool tall;     /* rows > columns: X is the transpose */
    REAL *x[2][2]; /* [which of two][0: few x many, 1: many x few] */
    REAL *a, *b;   /* few x few */
} REAL_(matrix);

static REAL_(matrix) REAL_(matrix_of)(const keel_update_whole *w)
{
    REAL_(matrix) m = { .rows = w->shape->dim[0], .columns = w->shape->dim[1] };
    REAL *at = w->scratch;
    m.tall = m.rows > m.columns;
    m.few = m.tall ? m.columns : m.rows;
    m.many = m.tall ? m.rows : m.columns;
    for (int i = 0; i < 4; i++) m.x[i / 2][i % 2] = at + i * w->count;
    m.a = at + 4 * w->count;
    m.b = m.a + m.few * m.few;
    return m;
}

#include "optimizers/product_impl.h"

/* ---- products -------------------------------------------------------------------------------- */

/* Writes the rows of `from`, rows x columns, as columns of `to`. */
static void REAL_(transpose)(REAL *to, const REAL *from, int64_t rows, int64_t columns, share s)
{
    enum { SIDE = 16 };
    for (int64_t i = s.begin; i < s.end; i += SIDE)
        for (int64_t j = 0; j < columns; j += SIDE)
            for (int64_t y = i; y < s.end && y < i + SIDE; y++)
                for (int64_t x = j; x < columns && x < j + SIDE; x++)
                    to[x * rows + y] = from[y * columns + x];
}

/* A product that is symmetric, bit by bit: what is on the left of a panel's rows is also what is
 * above its columns, and so nobody makes it twice. */
KEEL_ONE_PASS
static void REAL_(half)(const REAL_(product_t) * p, share s)
{
    REAL_(panel) x;
    for (x.column = 0; x.column < s.end; x.column += REAL_(WIDE)) {
        const int64_t right = x.column + REAL_(WIDE);
        REAL_(columns)(p, &x, s.begin > x.column ? s.begin : x.column, s.end);
        for (int64_t i = s.begin > right ? s.begin : right; i < s.end; i++)
            for (int64_t j = x.column; j < right; j++)
                p->out[j * p->columns + i] = p->out[i * p->columns + j];
    }
}

/* ---- passes ---------------------------------------------------------------------------------- */

KEEL_ONE_PASS
static void REAL_(divide)(int64_t n, REAL *x, REAL by)
{
    for (int64_t i = 0; i < n; i++) x[i] = x[i] / by;
}

/* Computes a share of the rows of one of the three products of iteration s. */
static void REAL_(iterate)(const args_t *a, const keel_update_whole *w, int64_t s, int which)
{
    const REAL_(matrix) m = REAL_(matrix_of)(w);
    REAL *const *from = m.x[s % 2], *const *to = m.x[(s + 1) % 2];
    const REAL_(product_t) products[] = {
        { m.a, from[0], from[1], m.a, 0, 1, m.many, m.few },
        { m.b, m.a, m.a, m.a, (REAL)a->muon_b, (REAL)a->muon_c, m.few, m.few },
        { to[0], m.b, from[0], from[0], (REAL)a->muon_a, 1, m.few, m.many },
    };
    if (which < 2) {
        REAL_(half)(&products[which], share_of_half(w, m.few));
        return;
    }
    const share rows = share_of(w, m.few);
    REAL_(product)(&products[which], rows.begin, rows.end);
    REAL_(transpose)(to[1], to[0], m.few, m.many, rows);
}

static void REAL_(by_adam)(const keel_update *u, keel_device_move *out)
{
    const args_t *a = u->args;
    const keel_adam adam = { .common = { .weight_decay = a->adam_weight_decay },
                             .beta_1 = a->adam_beta_1,
                             .beta_2 = a->adam_beta_2,
                             .epsilon = a->epsilon };
    keel_update v = *u;
    v.args = &adam;
    v.learning_rate = (double)((REAL)u->learning_rate * (REAL)a->adam_lr_ratio);
    REAL_(keel_adam_move)(&v, out);
    out->number.rate = u->learning_rate; /* by which weights decay */
}

static void REAL_(move)(const keel_update *u, keel_device_move *out)
{
    const args_t *a = u->args;
    if (!u->whole->scratch) {
        REAL_(by_adam)(u, out);
        return;
    }
    keel_move_begin(u, &a->common, REAL_IS_DOUBLE, out);
    if (u->pass == KEEL_MOVE_LAST) {
        const int64_t *dim = u->whole->shape->dim, many = dim[0] > dim[1] ? dim[0] : dim[1];
        const REAL rate = (REAL)u->learning_rate;
        out->rule = KEEL_RULE_PLAIN;
        out->number = (keel_rule_numbers){
            .rate = isnan(a->rms_rate) ? rate : rate * REAL_SQRT((REAL)many) * (REAL)a->rms_rate,
            .scale = 1,
            .clip = INFINITY
        };
        return;
    }
    out->rule = u->pass == KEEL_MOVE_STEP ? KEEL_RULE_MUON_STEP : KEEL_RULE_MUON;
    out->number.one_less_beta_1 = 1 - a->momentum;
    out->number.of_m = a->nesterov ? a->momentum : 1;
    out->number.of_g = a->nesterov ? 1 : 0;
}

/* Moves all but w, and leaves the step in x; returns the sum of its squares. */
static double REAL_(gather)(const keel_update *u, REAL *x)
{
    keel_device_move m;
    keel_update v = *u;
    REAL_(move)(&v, &m);
    keel_move(&m);
    v.pass = KEEL_MOVE_STEP;
    memcpy(x, u->g, (size_t)u->count * sizeof *x);
    REAL_(move)(&v, &m);
    m.w = x;
    keel_move(&m);
    return keel_squares(m.real, x, u->count);
}

/* By x, which is orthogonal. */
static void REAL_(move_last)(const keel_update *u, const REAL *x)
{
    keel_device_move m;
    keel_update v = *u;
    v.pass = KEEL_MOVE_LAST;
    REAL_(move)(&v, &m);
    m.g = x;
    keel_move(&m);
}

static void REAL_(apply)(const keel_update *u)
{
    const args_t *a = u->args;
    const keel_update_whole *whole = u->whole;
    if (!whole->scratch) {
        keel_device_move m;
        REAL_(by_adam)(u, &m);
        if (u->pass == 0) keel_move(&m);
        return;
    }
    const REAL_(matrix) m = REAL_(matrix_of)(whole);
    const int64_t at = u->pass - 2;
    const share rows = { u->first / m.columns, (u->first + u->count) / m.columns };
    if (u->pass == 0) {
        u->sum[0] = REAL_(gather)(u, m.x[0][m.tall] + u->first);
        u->sum[1] = 0;
    } else if (u->pass == 1) {
        const REAL norm = (REAL)sqrt(whole->sum[0][0]) + (REAL)1e-7;
        u->sum[0] = u->sum[1] = 0;
        REAL_(divide)(u->count, m.x[0][m.tall] + u->first, norm);
        REAL_(transpose)(m.x[0][!m.tall], m.x[0][m.tall], m.rows, m.columns, rows);
    } else if (at < 3 * a->ns_steps) {
        REAL_(iterate)(a, whole, at / 3, (int)(at % 3));
    } else {
        REAL_(move_last)(u, m.x[a->ns_steps % 2][m.tall] + u->first);
    }
}
#endif
