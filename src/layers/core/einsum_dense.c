/* y = activation(einsum(equation, x, kernel) + bias). The equation names the dims of x, of the
 * kernel and of y by letters: "abc,cde->abde". Dims that x and the kernel share and y does not have
 * are summed over. So it is a product of matrices: x as [places, sums], the kernel as [sums,
 * units]. */
#include "base/memory.h"
#include "layers/layer.h"
#include "ops/args.h"
#include <ctype.h>
#include <stdio.h>
#include <string.h>

typedef struct args_t {
    char *equation, *bias_axes;
    keel_ints output_shape;
    keel_object activation;
    keel_object kernel_initializer, bias_initializer;
    keel_object kernel_regularizer, bias_regularizer, kernel_constraint, bias_constraint;
} args_t;

static const keel_field fields[] = {
    KEEL_STRING(args_t, equation, NULL, "letters for the dims: \"abc,cd->abd\""),
    KEEL_INTS(args_t, output_shape, -3, NULL, -1, 1e15,
              "dims of the output without the batch; null (or -1): as the input's"),
    KEEL_OBJECT(args_t, activation, "\"linear\"", keel_activation_find, "applied to the outputs"),
    KEEL_STRING(args_t, bias_axes, "null", "letters of the dims that have a bias; null: no bias"),
    KEEL_OBJECT(args_t, kernel_initializer, "\"glorot_uniform\"", keel_initializer_find,
                "first values of the kernel"),
    KEEL_OBJECT(args_t, bias_initializer, "\"zeros\"", keel_initializer_find,
                "first values of the bias"),
    KEEL_OBJECT(args_t, kernel_regularizer, "null", keel_regularizer_find, "of the kernel"),
    KEEL_OBJECT(args_t, bias_regularizer, "null", keel_regularizer_find, "of the bias"),
    KEEL_OBJECT(args_t, kernel_constraint, "null", keel_constraint_find, "of the kernel"),
    KEEL_OBJECT(args_t, bias_constraint, "null", keel_constraint_find, "of the bias"),
    KEEL_REFUSE("lora_rank", "null", "low-rank adaptation"),
    KEEL_REFUSE("lora_alpha", "null", "low-rank adaptation"),
    KEEL_REFUSE("gptq_unpacked_column_size", "null", "quantized weights"),
    KEEL_REFUSE("quantization_config", "null", "quantized weights"),
    { 0 },
};

/* ---- the equation ---------------------------------------------------------------------------- */

enum { LABELS_MAX = KEEL_RANK_MAX + 1 }; /* dims of a row and the batch */

typedef struct term {
    int n;
    char label[LABELS_MAX + 1];
    int elided; /* place of the "..."; -1: none */
} term;

typedef struct equation {
    term x, w, y;
    int64_t size[128]; /* by label; 0: not known */
    keel_shape kernel, bias;
    bool has_bias;
} equation;

static bool has(const term *t, char label)
{
    return memchr(t->label, label, (size_t)t->n) != NULL;
}

static keel_status wrong(const args_t *a, const char *why)
{
    return keel_fail(KEEL_EARG, "equation '%.60s': %s", a->equation, why);
}

static keel_status read_term(const args_t *a, const char *text, size_t length, term *out)
{
    *out = (term){ .elided = -1 };
    for (size_t i = 0; i < length; i++) {
        if (length - i >= 3 && !strncmp(text + i, "...", 3) && out->elided < 0) {
            out->elided = out->n;
            i += 2;
            continue;
        }
        if (!isalpha((unsigned char)text[i]))
            return wrong(a, "expected letters, as in \"abc,cd->abd\"");
        if (has(out, text[i]))
            return keel_fail(KEEL_EUNSUP, "equation '%.60s': '%c' twice in a term is not supported",
                             a->equation, text[i]);
        if (out->n == LABELS_MAX)
            return keel_fail(KEEL_EUNSUP, "equation '%.60s': more than %d dims", a->equation,
                             LABELS_MAX);
        out->label[out->n++] = text[i];
    }
    return out->n ? KEEL_OK : wrong(a, "a term without letters");
}

/* Replaces "..." by n labels that are not letters. */
static keel_status expand(const args_t *a, term *t, int n)
{
    if (t->n + n > LABELS_MAX)
        return keel_fail(KEEL_EUNSUP, "equation '%.60s': more than %d dims", a->equation,
                         LABELS_MAX);
    memmove(t->label + t->elided + n, t->label + t->elided, (size_t)(t->n - t->elided));
    for (int i = 0; i < n; i++) t->label[t->elided + i] = (char)('0' + i);
    t->n += n;
    return KEEL_OK;
}

static keel_status read_terms(const args_t *a, int rank, equation *q)
{
    const char *comma = strchr(a->equation, ','), *arrow = strstr(a->equation, "->");
    if (!comma || !arrow || arrow < comma) return wrong(a, "expected the form \"x,kernel->y\"");
    KEEL_TRY(read_term(a, a->equation, (size_t)(comma - a->equation), &q->x));
    KEEL_TRY(read_term(a, comma + 1, (size_t)(arrow - comma - 1), &q->w));
    KEEL_TRY(read_term(a, arrow + 2, strlen(arrow + 2), &q->y));
    const bool left = q->x.elided == 0 && q->y.elided == 0;
    const bool right = q->x.elided == q->x.n && q->y.elided == q->y.n;
    if (q->w.elided >= 0 || !(left || right || (q->x.elided < 0 && q->y.elided < 0)))
        return wrong(a, "\"...\" may open or close the input and the output");
    if (q->x.elided < 0 ? rank != q->x.n : rank < q->x.n)
        return keel_fail(KEEL_ESHAPE, "equation '%.60s': the input has %d dims with the batch",
                         a->equation, rank);
    if (q->x.elided < 0) return KEEL_OK;
    const int elided = rank - q->x.n;
    KEEL_TRY(expand(a, &q->x, elided));
    return expand(a, &q->y, elided);
}

/* The sizes of all labels: those of the input, and the letters of y by output_shape, which has no
 * batch. */
static keel_status read_sizes(const args_t *a, const keel_shape *in, equation *q)
{
    int given = 0;
    for (int i = 1; i < q->x.n; i++) q->size[(int)q->x.label[i]] = in->dim[i - 1];
    for (int i = 1; i < q->y.n; i++) {
        const char label = q->y.label[i];
        if (!isalpha((unsigned char)label)) continue;
        if (given == a->output_shape.count)
            return keel_fail(KEEL_EARG, "output_shape: %d dims, fewer than those of '%.60s'", given,
                             a->equation);
        const int64_t dim = a->output_shape.at[given++];
        int64_t *size = &q->size[(int)label];
        if (dim == 0) return keel_fail(KEEL_EARG, "output_shape: a dim of 0");
        if (dim > 0 && *size && *size != dim)
            return keel_fail(KEEL_ESHAPE, "output_shape: dim '%c' is %lld, in the input %lld",
                             label, (long long)dim, (long long)*size);
        if (dim > 0) *size = dim;
        if (!*size) return keel_fail(KEEL_EARG, "output_shape: dim '%c' needs a number", label);
    }
    return given == a->output_shape.count
               ? KEEL_OK
               : keel_fail(KEEL_EARG, "output_shape: %d dims, more than those of '%.60s'",
                           a->output_shape.count, a->equation);
}

/* The shape of the bias, from the first label with a bias on; 1 for labels without. */
static keel_status read_bias(const args_t *a, equation *q)
{
    const term *y = &q->y;
    int first = 0;
    q->has_bias = a->bias_axes != NULL;
    if (!a->bias_axes) return KEEL_OK;
    if (!*a->bias_axes) return keel_fail(KEEL_EARG, "bias_axes: no letters");
    for (const char *p = a->bias_axes; *p; p++)
        if (!isalpha((unsigned char)*p) || !has(y, *p))
            return keel_fail(KEEL_EARG, "bias_axes '%.20s': not letters of the output",
                             a->bias_axes);
    while (!strchr(a->bias_axes, y->label[first])) first++;
    if (first == 0)
        return keel_fail(KEEL_EUNSUP, "bias_axes '%.20s': the batch has no bias", a->bias_axes);
    for (int i = first; i < y->n; i++)
        q->bias.dim[q->bias.rank++] =
            strchr(a->bias_axes, y->label[i]) ? q->size[(int)y->label[i]] : 1;
    return KEEL_OK;
}

static keel_status read_equation(const args_t *a, const keel_shape *in, equation *q)
{
    KEEL_TRY(read_terms(a, in->rank + 1, q));
    const char batch = q->x.label[0];
    if (q->y.label[0] != batch || has(&q->w, batch))
        return keel_fail(KEEL_EUNSUP, "equation '%.60s': the batch must stay the first dim",
                         a->equation);
    KEEL_TRY(read_sizes(a, in, q));
    for (int i = 1; i < q->y.n; i++)
        if (!has(&q->x, q->y.label[i]) && !has(&q->w, q->y.label[i]))
            return wrong(a, "a dim of the output is in neither other term");
    if (q->w.n > KEEL_RANK_MAX)
        return keel_fail(KEEL_EUNSUP, "a kernel of more than %d dims", KEEL_RANK_MAX);
    for (int i = 0; i < q->w.n; i++) {
        const char label = q->w.label[i];
        if (!has(&q->x, label) && !has(&q->y, label))
            return wrong(a, "a dim of the kernel is in neither other term");
        q->kernel.dim[q->kernel.rank++] = q->size[(int)label];
    }
    return read_bias(a, q);
}

/* ---- the product ----------------------------------------------------------------------------- */

/* The dims of the product: those of x only, those that are summed over, and those of the kernel
 * only; the last two in the order of the kernel. */
typedef struct product {
    term places, sums, units;
} product;

static void put(term *t, char label)
{
    t->label[t->n++] = label;
}

static keel_status split(const args_t *a, const equation *q, product *p)
{
    *p = (product){ 0 };
    for (int i = 1; i < q->x.n; i++) {
        const char label = q->x.label[i];
        if (!has(&q->w, label) && !has(&q->y, label))
            return keel_fail(KEEL_EUNSUP,
                             "equation '%.60s': dim '%c' of the input alone is not supported",
                             a->equation, label);
        if (has(&q->w, label) && has(&q->y, label))
            return keel_fail(KEEL_EUNSUP,
                             "equation '%.60s': dim '%c' of all terms is not supported",
                             a->equation, label);
        if (has(&q->y, label)) put(&p->places, label);
    }
    for (int i = 0; i < q->w.n; i++) {
        const char label = q->w.label[i];
        if (has(&q->x, label) && p->units.n)
            return keel_fail(KEEL_EUNSUP,
                             "equation '%.60s': a kernel whose sums do not come first is not "
                             "supported",
                             a->equation);
        put(has(&q->x, label) ? &p->sums : &p->units, label);
    }
    if (!p->sums.n || !p->units.n)
        return keel_fail(KEEL_EUNSUP,
                         "equation '%.60s': a kernel must have dims to sum over and others",
                         a->equation);
    return KEEL_OK;
}

static int64_t count_of(const equation *q, const term *t)
{
    int64_t n = 1;
    for (int i = 0; i < t->n; i++) n *= q->size[(int)t->label[i]];
    return n;
}

/* The value, whose dims are those of `from`, with its dims in the order of `to`. */
static keel_status reorder(keel_emit *e, const char *from, const char *to, int n, keel_value *v)
{
    keel_permute_args op = { 0 };
    bool same = true;
    for (int d = 0; d < n; d++) {
        op.from[d] = (const char *)memchr(from, to[d], (size_t)n) - from;
        same = same && op.from[d] == d;
    }
    return same ? KEEL_OK : keel_emit_on(e, &keel_op_permute, &op, v, 1, v);
}

static keel_status reshape(keel_emit *e, const keel_shape *shape, keel_value *v)
{
    const keel_reshape_args op = { .shape = *shape };
    if (keel_shape_equal(shape, &keel_graph_spec(e->graph, *v)->shape)) return KEEL_OK;
    return keel_emit_on(e, &keel_op_reshape, &op, v, 1, v);
}

/* x as [places..., sums]. */
static keel_status gather(keel_emit *e, const equation *q, const product *p, keel_value *x)
{
    term order = p->places;
    keel_shape shape = { 0 };
    for (int i = 0; i < p->sums.n; i++) put(&order, p->sums.label[i]);
    *x = e->in[0];
    KEEL_TRY(reorder(e, q->x.label + 1, order.label, order.n, x));
    for (int i = 0; i < p->places.n; i++)
        shape.dim[shape.rank++] = q->size[(int)p->places.label[i]];
    if (shape.rank == KEEL_RANK_MAX)
        return keel_fail(KEEL_EUNSUP, "more than %d dims of a row", KEEL_RANK_MAX);
    shape.dim[shape.rank++] = count_of(q, &p->sums);
    return reshape(e, &shape, x);
}

static keel_status emit(keel_emit *e)
{
    const args_t *a = e->args;
    equation q = { 0 };
    product p;
    keel_variable w[2];
    keel_spec spec[2];
    keel_value x, y;
    keel_shape shape = { 0 };
    term order;
    int n = 1;
    KEEL_TRY(read_equation(a, &keel_emit_in(e, 0)->shape, &q));
    KEEL_TRY(split(a, &q, &p));
    order = p.places;
    for (int i = 0; i < p.units.n; i++) put(&order, p.units.label[i]);
    const keel_weight_decl kernel = { .name = "kernel",
                                      .shape = q.kernel,
                                      .initializer = &a->kernel_initializer,
                                      .regularizer = &a->kernel_regularizer,
                                      .constraint = &a->kernel_constraint,
                                      .lead = p.sums.n };
    const keel_weight_decl bias = { .name = "bias",
                                    .shape = q.bias,
                                    .initializer = &a->bias_initializer,
                                    .regularizer = &a->bias_regularizer,
                                    .constraint = &a->bias_constraint };
    KEEL_TRY(e->weight(e, &kernel, &w[0], &spec[0]));
    spec[0].shape = KEEL_SHAPE(count_of(&q, &p.sums), count_of(&q, &p.units));
    if (q.has_bias) {
        const int first = q.y.n - q.bias.rank;
        if (q.bias.rank != p.units.n || memcmp(q.y.label + first, p.units.label, (size_t)p.units.n))
            return keel_fail(KEEL_EUNSUP,
                             "bias_axes '%.20s': only one of all dims of the kernel that are not "
                             "summed over, the last of the output, is supported",
                             a->bias_axes);
        KEEL_TRY(e->weight(e, &bias, &w[n], &spec[n]));
        spec[n++].shape = KEEL_SHAPE(count_of(&q, &p.units));
    }
    KEEL_TRY(gather(e, &q, &p, &x));
    const keel_node_parts parts = {
        .op = &keel_op_dense, .n_in = 1, .in = &x, .n_weight = n, .weight = w, .weight_spec = spec
    };
    KEEL_TRY(keel_emit_op(e, &parts, &y));
    for (int i = 0; i < order.n; i++) shape.dim[shape.rank++] = q.size[(int)order.label[i]];
    KEEL_TRY(reshape(e, &shape, &y));
    KEEL_TRY(reorder(e, order.label, q.y.label + 1, order.n, &y));
    return keel_emit_activation(e, &a->activation, y, e->out);
}

const keel_layer keel_layer_einsum_dense = {
    .type = { .name = "EinsumDense",
              .module = "keras.layers",
              .help = "A product with a kernel, along the dims that an equation names.",
              .args_size = sizeof(args_t),
              .fields = fields },
    .min_inputs = 1,
    .max_inputs = 1,
    .emit = emit,
};
