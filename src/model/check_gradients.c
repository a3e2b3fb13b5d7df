/* Checks a registered layer against itself (keel_check_gradients). The sum of its outputs, each
 * times a drawn factor, is a function of every input and weight; its slope by central differences
 * must be what backward adds.
 *
 * Differences are taken over two distances, h and h / 2, and combined (Richardson), which leaves an
 * error of h^4. Where they do not fit backward, the function may have a kink: the slopes on both
 * sides of the point still differ with half the distance, or the two differences do. Such elements
 * are left out and counted. */
#include "base/memory.h"
#include "layers/custom.h"
#include "model/parts.h"
#include <math.h>
#include <stdio.h>
#include <string.h>

enum { ROWS = 3, ELEMENTS = 200, NUMBERS_MAX = 1 << 26 };
enum { WHERE = sizeof((keel_gradient_report *)0)->where };
_Static_assert((int)KEEL_CUSTOM_WEIGHTS_MAX == (int)KEEL_LAYER_WEIGHTS_MAX,
               "a layer of a model has room for them");
static const double DISTANCE = 1.0 / 128, TOLERANCE = 1e-3;
/* What the draws are for: the row of their key. */
enum { OF_FACTORS, OF_FILLING, OF_INPUTS = 16, OF_WEIGHTS = 32 };

typedef struct checker {
    keel_gradient_options options;
    keel_gradient_report report;
    const keel_layer *kind;
    void *args;
    const char *name;
    int n_in;
    const keel_shape *in_shape;
    keel_custom_built built;
    keel_shape weight_shape[KEEL_CUSTOM_WEIGHTS_MAX];
    int64_t rows, outs;
    float *in[KEEL_CUSTOM_INPUTS_MAX], *weight[KEEL_CUSTOM_WEIGHTS_MAX];
    float *in_grad[KEEL_CUSTOM_INPUTS_MAX], *weight_grad[KEEL_CUSTOM_WEIGHTS_MAX];
    float *out, *saved, *out_grad;
    double middle; /* the sum without any change */
    float *again;  /* room for a second result: as large as the largest array */
} checker;

static keel_status array(float **out, int64_t rows, int64_t numbers)
{
    int64_t n;
    if (!keel_mul_i64(rows, numbers, &n) || n > NUMBERS_MAX)
        return keel_fail(KEEL_ESHAPE, "%lld rows of %lld numbers are too many to check",
                         (long long)rows, (long long)numbers);
    *out = keel_calloc((size_t)n, sizeof **out);
    return *out ? KEEL_OK : KEEL_ENOMEM;
}

static double drawn(const checker *c, uint64_t row, int64_t i)
{
    const keel_chance chance = { .seed = c->options.seed, .stream = KEEL_STREAM_WEIGHTS };
    return keel_uniform_at(&chance, row, (uint64_t)i);
}

/* ---- making it ------------------------------------------------------------------------------- */

static keel_status check_options(checker *c, const keel_gradient_options *given)
{
    const keel_gradient_options none = { KEEL_GRADIENT_OPTIONS };
    keel_gradient_options *o = &c->options;
    *o = given ? *given : none;
    if (o->size != sizeof *o)
        return keel_fail(KEEL_EARG, "size is %zu, not %zu: begin with KEEL_GRADIENT_OPTIONS",
                         o->size, sizeof *o);
    if (o->rows == 0) o->rows = ROWS;
    if (o->elements == 0) o->elements = ELEMENTS;
    if (o->tolerance == 0) o->tolerance = TOLERANCE;
    if (o->low == 0 && o->high == 0) {
        o->low = -1;
        o->high = 1;
    }
    if (o->rows < 0 || o->elements < 0 || !(o->tolerance > 0) || !(o->low < o->high) ||
        !isfinite(o->high - o->low))
        return keel_fail(KEEL_EARG, "rows, elements and tolerance must be above 0, and low below "
                                    "high");
    c->rows = o->rows;
    return KEEL_OK;
}

static keel_status read_layer(checker *c, const char *layer, const keel_arg *args)
{
    keel_layer_common common = { 0 };
    json_t *config = NULL;
    c->kind = keel_layer_registered(layer);
    if (!c->kind) return keel_fail(KEEL_EARG, "no layer '%.120s' is registered", layer);
    c->name = c->kind->type.registered->name;
    if (!((const keel_custom_layer *)c->kind->type.registered->of)->backward)
        return keel_fail(KEEL_EUNSUP, "%s was registered without `backward`", c->name);
    KEEL_TRY(keel_args_json(args, &config));
    void *own = keel_calloc(1, c->kind->type.args_size);
    keel_status s = own ? keel_layer_read(c->kind, config, own, &common) : KEEL_ENOMEM;
    json_decref(config);
    if (s < 0) {
        keel_free(own);
        return s;
    }
    c->args = own;
    keel_object_free(&common.activity);
    return keel_custom_build(c->args, c->in_shape, c->n_in, &c->built);
}

/* First values, moved a little where they are trained, since at 0 much is 0. */
static keel_status fill_weight(checker *c, int k)
{
    const keel_layer_weight *w = &c->built.weight[k];
    const keel_chance chance = { .seed = c->options.seed, .stream = KEEL_STREAM_WEIGHTS };
    const int64_t n = keel_shape_count(&w->shape);
    keel_object initializer = { 0 };
    KEEL_TRY(array(&c->weight[k], 1, n));
    KEEL_TRY(array(&c->weight_grad[k], 1, n));
    KEEL_TRY(keel_custom_initializer(w, &initializer));
    double *values = keel_calloc((size_t)n, sizeof *values);
    keel_status s = KEEL_ENOMEM;
    if (values)
        s = ((const keel_initializer *)initializer.type)
                ->fill(initializer.args, &w->shape, &chance, (uint64_t)k, values);
    for (int64_t i = 0; s >= 0 && i < n; i++) {
        const double move = w->state ? 0 : 0.5 * (drawn(c, OF_WEIGHTS + (uint64_t)k, i) - 0.5);
        c->weight[k][i] = (float)(values[i] + move);
    }
    keel_free(values);
    keel_object_free(&initializer);
    c->weight_shape[k] = w->shape;
    return s;
}

static keel_status make(checker *c)
{
    const keel_gradient_options *o = &c->options;
    int64_t most = c->outs = keel_shape_count(&c->built.out);
    KEEL_TRY(array(&c->out, c->rows, c->outs));
    KEEL_TRY(array(&c->out_grad, c->rows, c->outs));
    KEEL_TRY(array(&c->saved, c->rows, c->built.saved));
    for (int64_t i = 0; i < c->rows * c->outs; i++)
        c->out_grad[i] = (float)(0.5 + drawn(c, OF_FACTORS, i));
    most *= c->rows;
    for (int k = 0; k < c->n_in; k++) {
        const int64_t n = keel_shape_count(&c->in_shape[k]);
        KEEL_TRY(array(&c->in[k], c->rows, n));
        KEEL_TRY(array(&c->in_grad[k], c->rows, n));
        for (int64_t i = 0; i < c->rows * n; i++)
            c->in[k][i] =
                (float)(o->low + (o->high - o->low) * drawn(c, OF_INPUTS + (uint64_t)k, i));
        if (c->rows * n > most) most = c->rows * n;
    }
    for (int k = 0; k < c->built.n_weight; k++) {
        KEEL_TRY(fill_weight(c, k));
        const int64_t n = keel_shape_count(&c->weight_shape[k]);
        if (n > most) most = n;
    }
    return array(&c->again, 1, most);
}

static void free_all(checker *c)
{
    for (int k = 0; k < KEEL_CUSTOM_INPUTS_MAX; k++) {
        keel_free(c->in[k]);
        keel_free(c->in_grad[k]);
    }
    for (int k = 0; k < KEEL_CUSTOM_WEIGHTS_MAX; k++) {
        keel_free(c->weight[k]);
        keel_free(c->weight_grad[k]);
    }
    keel_free(c->out);
    keel_free(c->saved);
    keel_free(c->out_grad);
    keel_free(c->again);
    if (c->args) keel_fields_free(&c->kind->type, c->args);
    keel_free(c->args);
}

/* ---- calls ----------------------------------------------------------------------------------- */

/* What a call is asked for: forward, the gradients of all inputs or of all weights, or (0 and
 * above) that of one array alone: inputs first, then weights. */
enum { FORWARD = -3, ALL_INPUTS, ALL_WEIGHTS };

static keel_status call(checker *c, int64_t first, int64_t rows, int asked)
{
    const float *in[KEEL_CUSTOM_INPUTS_MAX], *weight[KEEL_CUSTOM_WEIGHTS_MAX];
    float *in_grad[KEEL_CUSTOM_INPUTS_MAX] = { 0 }, *weight_grad[KEEL_CUSTOM_WEIGHTS_MAX] = { 0 };
    for (int k = 0; k < c->n_in; k++) {
        const int64_t at = first * keel_shape_count(&c->in_shape[k]);
        in[k] = c->in[k] + at;
        if (asked == ALL_INPUTS || asked == k) in_grad[k] = c->in_grad[k] + at;
    }
    for (int k = 0; k < c->built.n_weight; k++) {
        const bool all = asked == ALL_WEIGHTS && !c->built.weight[k].state;
        weight[k] = c->weight[k];
        if (all || asked == c->n_in + k) weight_grad[k] = c->weight_grad[k];
    }
    keel_layer_rows r = { .training = !c->options.inference,
                          .rows = rows,
                          .n_in = c->n_in,
                          .in_shape = c->in_shape,
                          .in = in,
                          .out_shape = &c->built.out,
                          .saved_size = c->built.saved,
                          .saved = c->saved + first * c->built.saved,
                          .n_weight = c->built.n_weight,
                          .weight_shape = c->weight_shape,
                          .weight = weight };
    if (asked == FORWARD) {
        r.out = c->out + first * c->outs;
    } else {
        r.out_grad = c->out_grad + first * c->outs;
        r.in_grad = in_grad;
        r.weight_grad = weight_grad;
    }
    return keel_custom_call(c->args, &r, asked != FORWARD);
}

static keel_status forward_all(checker *c)
{
    for (int64_t i = 0; i < c->rows * c->outs; i++) c->out[i] = NAN; /* it must write all */
    return call(c, 0, c->rows, FORWARD);
}

/* The sum whose slopes are compared. */
static keel_status value(checker *c, double *out)
{
    double sum = 0;
    KEEL_TRY(forward_all(c));
    for (int64_t i = 0; i < c->rows * c->outs; i++)
        sum += (double)c->out_grad[i] * (double)c->out[i];
    if (!isfinite(sum))
        return keel_fail(KEEL_ENUMERIC,
                         "%s: an output is not finite beside the drawn inputs; draw them from "
                         "elsewhere (low, high)",
                         c->name);
    *out = sum;
    return KEEL_OK;
}

/* ---- an input or a weight -------------------------------------------------------------------- */

typedef struct place {
    char what[64];
    float *x, *grad;
    int64_t count, row; /* numbers; of one row, 0: it has no rows */
} place;

static place place_of(const checker *c, int k)
{
    place p = { 0 };
    if (k < c->n_in) {
        snprintf(p.what, sizeof p.what, "input %d", k);
        p.x = c->in[k];
        p.grad = c->in_grad[k];
        p.row = keel_shape_count(&c->in_shape[k]);
        p.count = c->rows * p.row;
        return p;
    }
    k -= c->n_in;
    snprintf(p.what, sizeof p.what, "weight '%.40s'", c->built.weight[k].name);
    p.x = c->weight[k];
    p.grad = c->weight_grad[k];
    p.count = c->built.weight[k].state ? 0 : keel_shape_count(&c->weight_shape[k]);
    return p;
}

static void where(char out[WHERE], const place *p, int64_t i)
{
    if (p->row)
        snprintf(out, WHERE, "%.20s, row %lld, element %lld", p->what, (long long)(i / p->row),
                 (long long)(i % p->row));
    else
        snprintf(out, WHERE, "%.60s, element %lld", p->what, (long long)i);
}

/* The slopes of the sum around a number: on both sides, and across. */
typedef struct slopes {
    double before, after, across;
} slopes;

static keel_status slopes_at(checker *c, float *x, double h, slopes *out)
{
    const float at = *x, up = (float)((double)at + h), down = (float)((double)at - h);
    double high = 0, low = 0;
    *x = up;
    keel_status s = value(c, &high);
    *x = down;
    if (s >= 0) s = value(c, &low);
    *x = at;
    *out = (slopes){ .before = (c->middle - low) / ((double)at - (double)down),
                     .after = (high - c->middle) / ((double)up - (double)at),
                     .across = (high - low) / ((double)up - (double)down) };
    return s;
}

static bool is_kink(const slopes *wide, const slopes *narrow, double size)
{
    const double limit = 0.02 * (fabs(wide->before) + fabs(wide->after)) + 1e-3 * size;
    const double gap = fabs(wide->after - wide->before);
    const double near = fabs(narrow->after - narrow->before);
    return (gap > limit && near > 0.75 * gap) || fabs(wide->across - narrow->across) > limit;
}

/* What differences say of an element. */
typedef struct difference {
    double slope;
    slopes wide, narrow;
} difference;

/* Compares elements of one array. d [options.elements]: room for them. */
static keel_status compare(checker *c, const place *p, difference *d)
{
    const int64_t most = c->options.elements;
    const int64_t step = p->count > most ? p->count / most : 1;
    keel_gradient_report *r = &c->report;
    double size = 1e-3;
    for (int64_t n = 0; n < most && n * step < p->count; n++) {
        float *x = &p->x[n * step];
        const double h = DISTANCE * fmax(1, fabs((double)*x));
        KEEL_TRY(slopes_at(c, x, h, &d[n].wide));
        KEEL_TRY(slopes_at(c, x, h / 2, &d[n].narrow));
        d[n].slope = (4 * d[n].narrow.across - d[n].wide.across) / 3;
        size = fmax(size, fmax(fabs(d[n].slope), fabs((double)p->grad[n * step])));
    }
    for (int64_t n = 0; n < most && n * step < p->count; n++) {
        const double g = (double)p->grad[n * step], off = fabs(g - d[n].slope) / size;
        if (off > c->options.tolerance && is_kink(&d[n].wide, &d[n].narrow, size)) {
            r->kinks++;
            continue;
        }
        if (r->compared++ > 0 && off <= r->worst) continue;
        r->worst = off;
        r->backward = g;
        r->differences = d[n].slope;
        where(r->where, p, n * step);
    }
    return KEEL_OK;
}

static keel_status compare_all(checker *c)
{
    const keel_gradient_report *r = &c->report;
    difference *d = keel_calloc((size_t)c->options.elements, sizeof *d);
    keel_status s = d ? value(c, &c->middle) : KEEL_ENOMEM;
    for (int k = 0; k < c->n_in + c->built.n_weight && s >= 0; k++) {
        const place p = place_of(c, k);
        s = compare(c, &p, d);
    }
    keel_free(d);
    if (s < 0) return s;
    if (r->worst > c->options.tolerance)
        return keel_fail(KEEL_ENUMERIC,
                         "%s: %s: backward gives %.7g, differences of forward %.7g; they differ by "
                         "%.2g of the largest gradient",
                         c->name, r->where, r->backward, r->differences, r->worst);
    if (r->kinks * 10 > r->compared + r->kinks)
        return keel_fail(KEEL_ENUMERIC,
                         "%s: %lld of %lld elements are at kinks of forward, where gradients "
                         "cannot be compared; draw other inputs (low, high, seed)",
                         c->name, (long long)r->kinks, (long long)(r->compared + r->kinks));
    return KEEL_OK;
}

/* ---- what the engine relies on --------------------------------------------------------------- */

static keel_status check_finite(const checker *c, const char *what, const float *x, int64_t n)
{
    for (int64_t i = 0; i < n; i++)
        if (!isfinite(x[i]))
            return keel_fail(KEEL_ENUMERIC, "%s: %s, element %lld is %g", c->name, what,
                             (long long)i, (double)x[i]);
    return KEEL_OK;
}

static keel_status check_same(const checker *c, const char *what, const char *when, const float *a,
                              const float *b, int64_t n)
{
    for (int64_t i = 0; i < n; i++)
        if (memcmp(&a[i], &b[i], sizeof *a) != 0)
            return keel_fail(KEEL_ENUMERIC, "%s: %s, element %lld: %.9g and %.9g, %s", c->name,
                             what, (long long)i, (double)a[i], (double)b[i], when);
    return KEEL_OK;
}

/* Twice the same, and row by row the same. */
static keel_status check_forward(checker *c)
{
    static const char *const when[] = { "from the same call twice",
                                        "in a call of all rows and in one of that row alone" };
    const int64_t n = c->rows * c->outs;
    KEEL_TRY(forward_all(c));
    KEEL_TRY(check_finite(c, "output", c->out, n));
    memcpy(c->again, c->out, (size_t)n * sizeof *c->out);
    for (int alone = 0; alone < 2; alone++) {
        if (!alone)
            KEEL_TRY(forward_all(c));
        else
            for (int64_t i = 0; i < c->rows; i++) KEEL_TRY(call(c, i, 1, FORWARD));
        KEEL_TRY(check_same(c, "output", when[alone], c->again, c->out, n));
    }
    return KEEL_OK;
}

/* A gradient asked for alone, and for inputs row by row, is the same; it is added to what is there.
 */
static keel_status check_alone(checker *c, int k)
{
    const place p = place_of(c, k);
    if (p.count == 0) return KEEL_OK;
    const size_t bytes = (size_t)p.count * sizeof *p.grad;
    KEEL_TRY(check_finite(c, p.what, p.grad, p.count));
    memcpy(c->again, p.grad, bytes);
    memset(p.grad, 0, bytes);
    if (p.row)
        for (int64_t i = 0; i < c->rows; i++) KEEL_TRY(call(c, i, 1, k));
    else
        KEEL_TRY(call(c, 0, c->rows, k));
    KEEL_TRY(check_same(c, p.what,
                        p.row ? "in a call of all rows and in one of that row alone"
                              : "asked for with others and alone",
                        c->again, p.grad, p.count));
    for (int64_t i = 0; i < p.count; i++) p.grad[i] = (float)(1 + drawn(c, OF_FILLING, i));
    KEEL_TRY(call(c, 0, c->rows, k));
    for (int64_t i = 0; i < p.count; i++) {
        const double was = 1 + drawn(c, OF_FILLING, i), g = (double)c->again[i];
        char at[WHERE];
        where(at, &p, i);
        if (!(fabs((double)p.grad[i] - was - g) <= 1e-4 * fmax(2, fabs(g))))
            return keel_fail(KEEL_ENUMERIC,
                             "%s: %s: backward must add to the gradient that is there: %.7g became "
                             "%.7g, not %.7g",
                             c->name, at, was, (double)p.grad[i], was + g);
    }
    memcpy(p.grad, c->again, bytes);
    return KEEL_OK;
}

static keel_status check_backward(checker *c)
{
    KEEL_TRY(call(c, 0, c->rows, ALL_INPUTS));
    KEEL_TRY(call(c, 0, c->rows, ALL_WEIGHTS));
    for (int k = 0; k < c->n_in + c->built.n_weight; k++) KEEL_TRY(check_alone(c, k));
    return KEEL_OK;
}

keel_status keel_check_gradients(const char *layer, const keel_arg *args, const keel_shape *in,
                                 int n_in, const keel_gradient_options *options,
                                 keel_gradient_report *report)
{
    checker c = { .n_in = n_in, .in_shape = in };
    keel_status s = KEEL_OK;
    if (n_in < 1 || n_in > KEEL_CUSTOM_INPUTS_MAX)
        return keel_fail(KEEL_EARG, "%d inputs; possible are 1 to %d", n_in,
                         KEEL_CUSTOM_INPUTS_MAX);
    for (int k = 0; k < n_in; k++) {
        KEEL_TRY(keel_shape_check(&in[k], sizeof(double)));
        for (int d = 0; d < in[k].rank; d++)
            if (in[k].dim[d] < 1)
                return keel_fail(KEEL_ESHAPE, "input %d: dim %d is below 1", k, d);
    }
    if ((s = check_options(&c, options)) < 0) goto out;
    if ((s = read_layer(&c, layer, args)) < 0) goto out;
    if ((s = make(&c)) < 0) goto out;
    if ((s = check_forward(&c)) < 0) goto out;
    if ((s = check_backward(&c)) < 0) goto out;
    s = compare_all(&c);
    if (report) *report = c.report;
out:
    free_all(&c);
    return s;
}
