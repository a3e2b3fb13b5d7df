/* Attention, softmax(scale query key^T) value, without its matrix of scores in memory (Dao et al.
 * 2022). Keras: ops.dot_product_attention.
 *
 * Query is [.., T, heads, D], key [.., S, shared, D], value [.., S, shared, V], the output [.., T,
 * heads, V]. Head h uses head h / (heads / shared) of key and value. Behind these inputs there may
 * be masks, as those of masked_softmax over the scores [.., heads, T, S]. Which weights are dropped
 * is that of an op dropout on these scores.
 *
 * A line is the scores of one query in one head. Saved for each line are its largest score and 1 /
 * sum exp(score - largest), which is 0 if the line sees nothing; with them backward works out the
 * weights p again, after dropout p f, for the gradient g of the output y:
 *
 *     dvalue = (p f)^T g;  dscore = p (f g value^T - sum(y g));  dquery = scale dscore key
 *
 * sum(y g) is sum(p f g value^T): where all of a line is at hand, it is that sum, since y is
 * rounded to its type.
 *
 * The two are kept apart, since their sum as one logarithm has no digits for a score of -1e9. */
#ifndef REAL
#include "ops/dot_product_attention.h"
#include "ops/cases.h"
#include "ops/infer.h"
#include <math.h>

enum { QUERY, KEY, VALUE, MASKS };

static keel_attention_dims dims_of(const keel_node *n)
{
    return keel_attention_dims_of(&n->in[QUERY].shape, &n->in[KEY].shape, &n->in[VALUE].shape);
}

static keel_status infer(keel_node *n)
{
    const keel_dot_product_attention_args *a = n->args;
    char text[3][96];
    KEEL_TRY(keel_infer_check(n, n->n_in < MASKS ? MASKS : -1, 0, 0));
    const keel_shape *q = &n->in[QUERY].shape, *k = &n->in[KEY].shape, *v = &n->in[VALUE].shape;
    const int r = q->rank;
    bool fits = r >= 3 && k->rank == r && v->rank == r && q->dim[r - 1] == k->dim[r - 1] &&
                k->dim[r - 2] == v->dim[r - 2] && k->dim[r - 3] == v->dim[r - 3] &&
                q->dim[r - 2] % k->dim[r - 2] == 0;
    for (int i = 0; fits && i < r - 3; i++) fits = q->dim[i] == k->dim[i] && k->dim[i] == v->dim[i];
    for (int i = 0; i < MASKS; i++) keel_shape_text(text[i], &n->in[i].shape);
    if (!fits)
        return keel_fail(KEEL_ESHAPE,
                         "dot_product_attention: query %s, key %s and value %s do not fit", text[0],
                         text[1], text[2]);
    const keel_attention_dims d = dims_of(n);
    for (int i = MASKS; i < n->n_in; i++) {
        keel_shape over = d.scores;
        if (keel_spread_over(&over, &n->in[i].shape) && keel_shape_equal(&over, &d.scores))
            continue;
        keel_shape_text(text[0], &n->in[i].shape);
        keel_shape_text(text[1], &d.scores);
        return keel_fail(KEEL_ESHAPE,
                         "dot_product_attention: a mask of %s does not fit scores of %s", text[0],
                         text[1]);
    }
    if (!(a->rate >= 0 && a->rate <= 1))
        return keel_fail(KEEL_EARG, "dot_product_attention: rate %g is not from 0 to 1", a->rate);
    if (a->rate > 0 && a->seen.uniform)
        return keel_fail(KEEL_EUNSUP, "dot_product_attention: uniform weights are not dropped");
    if (a->rate > 0 && (double)d.lines * (double)d.s > UINT32_MAX)
        return keel_fail(KEEL_EUNSUP, "dot_product_attention: dropout of more than 2^32 - 1 scores "
                                      "in a row");
    n->scratch = 3 * d.s * (int64_t)sizeof(double);
    if (n->backward) {
        const keel_spec line = { n->real, KEEL_SHAPE(d.lines, 2) };
        KEEL_TRY(keel_node_add_saved(n, &line));
    }
    keel_shape out = *q;
    out.dim[r - 1] = d.v;
    return keel_infer_out(n, &out);
}

/* Scores of a row that count: those that the arguments let a query see. */
static double seen_scores(const keel_node *n)
{
    const keel_attention_dims d = dims_of(n);
    double seen = 0;
    for (int64_t t = 0; t < d.t; t++) {
        int64_t first, end;
        keel_seen_range(&((const keel_dot_product_attention_args *)n->args)->seen, t, d.s, &first,
                        &end);
        seen += (double)(end - first);
    }
    return seen * (double)(d.lines / d.t);
}

static double flops(const keel_node *n)
{
    const keel_attention_dims d = dims_of(n);
    return 2.0 * seen_scores(n) * (double)(d.d + d.v);
}

/* Five products, as it works out the scores again. */
static double backward_flops(const keel_node *n)
{
    const keel_attention_dims d = dims_of(n);
    return 2.0 * seen_scores(n) * (double)(3 * d.d + 2 * d.v);
}

/* What dropout multiplies the weights of a line by. */
static void factors(const keel_call *c, const keel_attention_dims *d, int64_t row, int64_t line,
                    double *f)
{
    const double rate = ((const keel_dot_product_attention_args *)c->node->args)->rate;
    const keel_chance chance = { c->step->seed, c->step->epoch, c->node->stream };
    const uint64_t position = c->step->first_row + (uint64_t)(c->row + row);
    const bool drops = c->node->training && rate > 0;
    uint32_t word[4];
    for (int64_t j = 0; j < d->s; j++) {
        const uint32_t draw = (uint32_t)(line * d->s + j);
        if (drops && (j == 0 || draw % 4 == 0)) keel_philox(word, &chance, position, draw / 4);
        f[j] = !drops ? 1 : keel_uniform(word[draw % 4]) >= rate ? 1 / (1 - rate) : 0;
    }
}

/* The elements of one line in each value. */
typedef struct places {
    int64_t query, out; /* of the line's query */
    int64_t key, value; /* of its first key */
    int64_t key_step, value_step;
    int64_t t;
} places;

static places places_of(const keel_attention_dims *d, int64_t row, int64_t line)
{
    const int64_t t = line % d->t, h = line / d->t % d->heads,
                  o = row * d->outer + line / d->t / d->heads;
    const int64_t query = (o * d->t + t) * d->heads + h;
    const int64_t key = o * d->s * d->shared + h / (d->heads / d->shared);
    return (places){ query * d->d,     query * d->v,     key * d->d, key * d->v,
                     d->shared * d->d, d->shared * d->v, t };
}

#define REAL_FILE "ops/dot_product_attention.c"
#include "ops/real.h"

static void args_for_case(void *args, const char *text)
{
    keel_dot_product_attention_args *a = args;
    double window = 0;
    a->scale = 0.5;
    keel_case_number(text, "scale", &a->scale);
    keel_case_number(text, "rate", &a->rate);
    keel_case_number(text, "less", &a->less);
    keel_case_number(text, "window", &window);
    a->seen.window = (int64_t)window;
    a->seen.causal = keel_case_has(text, "causal");
    a->seen.uniform = keel_case_has(text, "uniform");
}

const keel_op keel_op_dot_product_attention = {
    .name = "dot_product_attention",
    .costly = true,
    .args_size = sizeof(keel_dot_product_attention_args),
    .infer = infer,
    .forward = REALS(forward),
    .backward = REALS(backward),
    .backward_reads = KEEL_READS_IN | KEEL_READS_OUT | KEEL_READS_SAVED,
    .flops = flops,
    .backward_flops = backward_flops,
    .cases = (const keel_case[]){ { "4,2,3|5,2,3|5,2,2", NULL, NULL },
                                  { "2,3,4,2|2,5,2,2|2,5,2,3", NULL, NULL },
                                  { "5,2,3|5,1,3|5,1,3", NULL, "causal rate 0.4" },
                                  { "4,2,3|5,2,3|5,2,2|1,4,1|2,1,5", NULL, NULL },
                                  { "4,1,3|6,1,3|6,1,2|1,4,6", NULL, "uniform causal" },
                                  { "6,1,3|4,1,3|4,1,2", NULL, "window 2 uniform" },
                                  { "38,1,66|34,1,66|34,1,65", NULL, "window 2 uniform" },
                                  { "3,1,66|34,1,66|34,1,65", NULL, "rate 0.3" },
                                  { "4,2,3|5,2,3|5,2,2|1,1,5", NULL, "causal less 3 rate 0.25" },
                                  { NULL, NULL, NULL } },
    .args_for_case = args_for_case,
};
#else
/* The scores of a line; -infinity where nothing is seen. Whether it has any. */
static bool REAL_(scores)(const keel_call *c, const keel_attention_dims *d, int64_t row,
                          int64_t line, double *x)
{
    const keel_node *n = c->node;
    const keel_dot_product_attention_args *a = n->args;
    const places at = places_of(d, row, line);
    const REAL *q = (const REAL *)c->in[QUERY] + at.query;
    int64_t first, end;
    bool any = false;
    keel_seen_range(&a->seen, at.t, d->s, &first, &end);
    for (int64_t j = 0; j < d->s; j++) {
        const REAL *k = (const REAL *)c->in[KEY] + at.key + j * at.key_step;
        bool seen = j >= first && j < end;
        for (int i = MASKS; i < n->n_in && seen; i++) {
            const REAL *mask = (const REAL *)c->in[i] + row * keel_row_count(&n->in[i]);
            seen =
                mask[keel_spread_index(&d->scores, &n->in[i].shape, line * d->s + j)] > (REAL)0.5;
        }
        double sum = 0;
        for (int64_t e = 0; e < d->d; e++) sum += (double)q[e] * k[e];
        const REAL score = (REAL)(sum * a->scale);
        const REAL less = score - (REAL)a->less; /* as many digits as REAL has */
        x[j] = seen ? (double)score : a->less > 0 ? (double)less : -INFINITY;
        any = any || seen || a->less > 0;
    }
    return any;
}

static void REAL_(forward)(const keel_call *c)
{
    const keel_node *n = c->node;
    const keel_dot_product_attention_args *a = n->args;
    const keel_attention_dims d = dims_of(n);
    double *w = c->scratch, *f = w + d.s;
    for (int64_t row = 0; row < c->rows; row++)
        for (int64_t line = 0; line < d.lines; line++) {
            const places at = places_of(&d, row, line);
            const REAL *v = (const REAL *)c->in[VALUE] + at.value;
            REAL *y = (REAL *)c->out[0] + at.out;
            const bool any = REAL_(scores)(c, &d, row, line, w);
            double most = w[0], sum = 0;
            factors(c, &d, row, line, f);
            for (int64_t j = 1; j < d.s; j++)
                if (w[j] > most) most = w[j];
            for (int64_t j = 0; any && j < d.s; j++) sum += w[j] = exp(w[j] - most);
            const double blind = a->seen.uniform ? 1 / (double)d.s : 0;
            for (int64_t j = 0; j < d.s; j++) w[j] = any ? w[j] / sum * f[j] : blind;
            for (int64_t e = 0; e < d.v; e++) {
                double out = 0;
                for (int64_t j = 0; j < d.s; j++) out += w[j] * (double)v[j * at.value_step + e];
                y[e] = (REAL)out;
            }
            if (!n->n_saved) continue;
            REAL *saved = (REAL *)c->saved[0] + (row * d.lines + line) * 2;
            saved[0] = (REAL)(any ? most : 0);
            saved[1] = (REAL)(any ? 1 / sum : 0);
        }
}

/* The gradients of one line, added. w has its scores. */
static void REAL_(line_backward)(const keel_call *c, const keel_attention_dims *d, int64_t row,
                                 int64_t line, double *w)
{
    const keel_dot_product_attention_args *a = c->node->args;
    const places at = places_of(d, row, line);
    const REAL *q = (const REAL *)c->in[QUERY] + at.query, *k = (const REAL *)c->in[KEY] + at.key;
    const REAL *v = (const REAL *)c->in[VALUE] + at.value;
    const REAL *g = (const REAL *)c->out_grad[0] + at.out;
    const REAL *saved = (const REAL *)c->saved[0] + (row * d->lines + line) * 2;
    REAL *dq = c->in_grad[QUERY] ? (REAL *)c->in_grad[QUERY] + at.query : NULL;
    REAL *dk = c->in_grad[KEY] ? (REAL *)c->in_grad[KEY] + at.key : NULL;
    REAL *dv = c->in_grad[VALUE] ? (REAL *)c->in_grad[VALUE] + at.value : NULL;
    double *f = w + d->s, *dw = f + d->s, mean = 0;
    const bool blind = saved[1] == 0;
    factors(c, d, row, line, f);
    for (int64_t j = 0; j < d->s; j++) {
        double sum = 0;
        for (int64_t e = 0; e < d->v; e++) sum += (double)g[e] * v[j * at.value_step + e];
        w[j] = blind ? 0 : exp(w[j] - saved[0]) * saved[1];
        dw[j] = f[j] * sum;
        mean += w[j] * dw[j];
    }
    for (int64_t j = 0; j < d->s; j++) {
        dw[j] = w[j] * (dw[j] - mean) * a->scale;
        w[j] = blind && a->seen.uniform ? 1 / (double)d->s : w[j] * f[j];
    }
    for (int64_t j = 0; j < d->s; j++) {
        for (int64_t e = 0; dv && e < d->v; e++)
            dv[j * at.value_step + e] = (REAL)(dv[j * at.value_step + e] + w[j] * g[e]);
        for (int64_t e = 0; dk && e < d->d; e++)
            dk[j * at.key_step + e] = (REAL)(dk[j * at.key_step + e] + dw[j] * q[e]);
    }
    for (int64_t e = 0; dq && e < d->d; e++) {
        double sum = 0;
        for (int64_t j = 0; j < d->s; j++) sum += dw[j] * (double)k[j * at.key_step + e];
        dq[e] = (REAL)(dq[e] + sum);
    }
}

static void REAL_(backward)(const keel_call *c)
{
    const keel_attention_dims d = dims_of(c->node);
    double *w = c->scratch;
    for (int i = 0; i < c->node->n_in; i++) {
        REAL *dx = c->in_grad[i];
        const int64_t count = c->rows * keel_row_count(&c->node->in[i]);
        for (int64_t j = 0; dx && !c->in_adds[i] && j < count; j++) dx[j] = 0;
    }
    for (int64_t row = 0; row < c->rows; row++)
        for (int64_t line = 0; line < d.lines; line++) {
            REAL_(scores)(c, &d, row, line, w);
            REAL_(line_backward)(c, &d, row, line, w);
        }
}
#endif
