/* y = activation(einsum(equation, x, kernel) + bias). The equation names the dims of x, of the
 * kernel and of y by letters: "abc,cde->abde". Dims that x and the kernel share and y does not have
 * are summed over. So it mostly is a product of matrices: x as [places, sums], the kernel as [sums,
 * units]. Where it is not, each row gets the kernel as a value, and it is an einsum of two values:
 * that takes the memory of a kernel for each row, and such equations are rare. */
#include "base/memory.h"
#include "layers/_kernel.h"
#include "layers/core/low_rank.h"
#include "layers/operations/_einsum.h"
#include "ops/numbers.h"
#include <string.h>

typedef struct args_t {
    keel_kernel_args weights;
    char *equation, *bias_axes;
    keel_ints output_shape;
    keel_object activation;
    keel_low_rank low_rank;
} args_t;

static const keel_field fields[] = {
    KEEL_STRING(args_t, equation, NULL, "letters for the dims: \"abc,cd->abd\""),
    KEEL_INTS(args_t, output_shape, -3, NULL, -1, 1e15,
              "dims of the output without the batch; null (or -1): as the input's"),
    KEEL_OBJECT(args_t, activation, "\"linear\"", keel_activation_find, "applied to the outputs"),
    KEEL_STRING(args_t, bias_axes, "null", "letters of the dims that have a bias; null: no bias"),
    KEEL_KERNEL_FIELDS,
    KEEL_LOW_RANK_FIELDS(args_t, low_rank),
    KEEL_IGNORE("gptq_unpacked_column_size", "for quantize(), which has not been called"),
    KEEL_IGNORE("quantization_config", "for quantize(), which has not been called"),
    { 0 },
};

typedef struct product {
    keel_term in[2], out; /* x and the kernel */
    char dots[KEEL_LETTERS];
    char places[KEEL_LETTERS], sums[KEEL_LETTERS], units[KEEL_LETTERS]; /* as the kernel has them */
    int64_t size[128];                                                  /* by letter; 0: unknown */
    bool of_matrices;
} product;

/* Reads the equation, and says what the kernel does with each letter. */
static keel_status read_equation(const keel_emit *e, const char *text, product *p)
{
    const char *x = p->in[0].letter, *w = p->in[1].letter, *y = p->out.letter;
    const char *dots = strstr(text, "..."), *end = strchr(text, 0) - 3;
    char rest[KEEL_LETTERS];
    if (strchr(text, ' ') || !strchr(text, ',') || !strstr(text, "->"))
        return keel_fail(KEEL_EARG, "expected letters in the form \"x,kernel->y\"");
    if (dots && !(dots == text && strstr(text, "->...")) &&
        !(strstr(text, "...,") && end > text && !strcmp(end, "...")))
        return keel_fail(KEEL_EARG, "\"...\" may open or close the input and the output");
    KEEL_TRY(keel_terms_read(e, text, p->in, 2, &p->out, p->dots));
    if ((int)strlen(x) != keel_emit_in(e, 0)->shape.rank)
        return keel_fail(KEEL_ESHAPE, "the input has %d dims with the batch",
                         keel_emit_in(e, 0)->shape.rank + 1);
    for (int i = 0; i < 2; i++)
        for (const char *c = p->in[i].letter; *c; c++)
            if (keel_letters_have(c + 1, *c))
                return keel_fail(KEEL_EUNSUP, "'%c' twice in a term is not supported", *c);
    keel_letters_choose(rest, w, x, false, y, false);
    if (*rest)
        return keel_fail(KEEL_EARG, "dim '%c' of the kernel is in neither other term", *rest);
    keel_letters_choose(p->places, x, w, false, y, true);
    keel_letters_choose(p->sums, w, x, true, y, false);
    keel_letters_choose(p->units, w, x, false, y, true);
    keel_letters_choose(rest, x, w, true, y, true);
    p->of_matrices = strlen(p->places) + strlen(p->sums) == strlen(x) && !*rest && *p->sums &&
                     *p->units && !strncmp(w, p->sums, strlen(p->sums));
    return KEEL_OK;
}

/* The sizes of all letters: those of the input, and those of y by output_shape. */
static keel_status read_sizes(const args_t *a, const keel_shape *in, product *p)
{
    int given = 0, want = 0;
    for (int d = 0; d < in->rank; d++) p->size[(int)p->in[0].letter[d]] = in->dim[d];
    for (const char *c = p->out.letter; *c; c++) want += !keel_letters_have(p->dots, *c);
    if (want != a->output_shape.count)
        return keel_fail(KEEL_EARG, "output_shape: %d dims, %s than those of '%.60s'",
                         a->output_shape.count, a->output_shape.count < want ? "fewer" : "more",
                         a->equation);
    for (const char *c = p->out.letter; *c; c++) {
        if (keel_letters_have(p->dots, *c)) continue;
        const int64_t dim = a->output_shape.at[given++];
        int64_t *size = &p->size[(int)*c];
        if (dim > 0 && *size && *size != dim)
            return keel_fail(KEEL_ESHAPE, "output_shape: dim '%c' is %lld, in the input %lld", *c,
                             (long long)dim, (long long)*size);
        if (dim > 0) *size = dim;
        if (dim == 0 || !*size)
            return keel_fail(KEEL_EARG, "output_shape: dim '%c' needs a number", *c);
    }
    return KEEL_OK;
}

/* Its shape begins at its first letter in the output, with 1 for letters that it does not have.
 * *of_units: it is for all units of a product of matrices, which come last, so that the product can
 * add it. */
static keel_status bias_shape(const args_t *a, const product *p, keel_shape *shape, bool *of_units)
{
    const char *y = p->out.letter;
    const size_t units = strlen(p->units), n = strlen(y);
    *of_units = p->of_matrices && n >= units && !strcmp(y + n - units, p->units);
    for (const char *c = a->bias_axes; *c; c++)
        if (!keel_letters_have(y, *c) || keel_letters_have(p->dots, *c))
            return keel_fail(KEEL_EARG, "bias_axes '%.20s': not letters of the output's rows",
                             a->bias_axes);
    for (const char *c = y; *c; c++) {
        const bool has = keel_letters_have(a->bias_axes, *c);
        *of_units = *of_units && has == keel_letters_have(p->units, *c);
        if (has || shape->rank) shape->dim[shape->rank++] = has ? p->size[(int)*c] : 1;
    }
    return KEEL_OK;
}

/* Appends the dims of the letters, or their product as one. */
static keel_status append(const product *p, const char *letters, bool joined, keel_shape *s)
{
    int64_t n = 1;
    for (const char *c = letters; *c; c++)
        if (!keel_mul_i64(n, p->size[(int)*c], &n))
            return keel_fail(KEEL_ESHAPE, "dims of '%s' are too large", letters);
    if (s->rank + (joined ? 1 : (int)strlen(letters)) > KEEL_RANK_MAX)
        return keel_fail(KEEL_EUNSUP, "more than %d dims of a row", KEEL_RANK_MAX);
    for (const char *c = letters; *c && !joined; c++) s->dim[s->rank++] = p->size[(int)*c];
    if (joined) s->dim[s->rank++] = n;
    return KEEL_OK;
}

/* Weight k as a value of `shape`, the same in each row: a product with 1. */
static keel_status as_value(keel_emit *e, const keel_weights *w, int k, const keel_shape *shape,
                            keel_value *out)
{
    const keel_numbers_args one = { .shape = KEEL_SHAPE(1), .at = { 1 } };
    keel_weights line = { .n = 1, .of = { w->of[k] }, .spec = { w->spec[k] } };
    line.spec[0].shape = KEEL_SHAPE(1, keel_shape_count(shape));
    KEEL_TRY(keel_emit_on(e, &keel_op_numbers, &one, e->in, 1, out));
    KEEL_TRY(keel_emit_weighted(e, &keel_op_dense, NULL, *out, &line, out));
    return keel_emit_view(e, shape, *out, out);
}

/* y + bias, whose missing first dims are 1. */
static keel_status add_bias(keel_emit *e, const keel_weights *w, const keel_shape *bias, int rank,
                            keel_value *y)
{
    keel_value in[2] = { *y };
    keel_shape whole = { .rank = rank };
    for (int d = 0; d < rank; d++)
        whole.dim[d] = d < rank - bias->rank ? 1 : bias->dim[d - (rank - bias->rank)];
    KEEL_TRY(as_value(e, w, 1, &whole, &in[1]));
    return keel_emit_on(e, &keel_op_plus, NULL, in, 2, y);
}

/* The product of matrices, with the bias if `w` has one for it. */
static keel_status multiply(keel_emit *e, const args_t *a, product *p, const keel_weight_decl *decl,
                            const keel_weights *w)
{
    keel_term *x = &p->in[0];
    keel_shape matrix = { 0 }, row = { 0 };
    keel_weights pair[2] = { { 0 }, { 0 } };
    char order[KEEL_LETTERS] = "";
    keel_value y;
    KEEL_TRY(append(p, p->places, false, &matrix));
    KEEL_TRY(append(p, p->sums, true, &matrix));
    KEEL_TRY(keel_term_reorder(e, x, strcat(strcpy(order, p->places), p->sums)));
    KEEL_TRY(keel_emit_view(e, &matrix, x->value, &x->value));
    KEEL_TRY(keel_emit_weighted(e, &keel_op_dense, NULL, x->value, w, &y));
    if (decl->state) {
        KEEL_TRY(keel_low_rank_declare(e, &a->low_rank, decl, (int)strlen(p->sums), pair));
        KEEL_TRY(keel_low_rank_add(e, &a->low_rank, &keel_op_dense, pair, x->value, &y));
    }
    x->value = y;
    strcat(strcpy(x->letter, p->places), p->units);
    KEEL_TRY(append(p, x->letter, false, &row));
    KEEL_TRY(keel_emit_view(e, &row, x->value, &x->value));
    KEEL_TRY(keel_term_reorder(e, x, p->out.letter));
    e->out[0] = x->value;
    return KEEL_OK;
}

/* The same by an einsum with the kernel as a value of its shape. */
static keel_status sum_products(keel_emit *e, const args_t *a, const keel_shape *kernel,
                                const keel_weights *w)
{
    keel_term in[2] = { { .value = e->in[0] }, { .array = true } };
    KEEL_TRY(as_value(e, w, 0, kernel, &in[1].value));
    return keel_emit_einsum(e, a->equation, in, 2);
}

static keel_status read_all(const keel_emit *e, const args_t *a, product *p)
{
    const bool narrow = keel_low_rank_given(&a->low_rank);
    const keel_status s = read_equation(e, a->equation, p);
    if (s < 0) return keel_fail_within(s, "equation '%.60s'", a->equation);
    if (narrow && a->weights.kernel_constraint.type)
        return keel_fail(KEEL_EUNSUP, "lora_rank with a kernel_constraint: Keras refuses it, too");
    if (narrow && !p->of_matrices)
        return keel_fail(KEEL_EUNSUP,
                         "equation '%.60s' with a lora_rank: only products of matrices, with the "
                         "dims that are summed over first in the kernel, are supported",
                         a->equation);
    return read_sizes(a, &keel_emit_in(e, 0)->shape, p);
}

static keel_status emit(keel_emit *e)
{
    const args_t *a = e->args;
    product p = { .in = { { .value = e->in[0] }, { .value = -1, .array = true } } };
    keel_shape kernel = { 0 }, flat = { 0 }, bias = { 0 };
    keel_weights w = { 0 };
    bool of_units = true;
    KEEL_TRY(read_all(e, a, &p));
    KEEL_TRY(append(&p, p.in[1].letter, false, &kernel));
    keel_weight_decl decl =
        keel_kernel_decl(&a->weights, &kernel, p.of_matrices ? (int)strlen(p.sums) : 0);
    decl.state = keel_low_rank_given(&a->low_rank);
    KEEL_TRY(keel_emit_weight(e, &decl, &w));
    if (a->bias_axes) KEEL_TRY(bias_shape(a, &p, &bias, &of_units));
    KEEL_TRY(keel_emit_bias(e, &a->weights, a->bias_axes != NULL, &bias, &w));
    keel_weights with = w;
    if (p.of_matrices) {
        KEEL_TRY(append(&p, p.sums, true, &flat));
        KEEL_TRY(append(&p, p.units, true, &flat));
        with.spec[0].shape = flat;
        with.spec[1].shape = KEEL_SHAPE(flat.dim[1]);
        if (!of_units) with.n = 1;
        KEEL_TRY(multiply(e, a, &p, &decl, &with));
    } else
        KEEL_TRY(sum_products(e, a, &kernel, &w));
    const bool adds = a->bias_axes && !(p.of_matrices && of_units);
    if (adds) KEEL_TRY(add_bias(e, &w, &bias, (int)strlen(p.out.letter), e->out));
    return keel_emit_activation(e, &a->activation, e->out[0], e->out);
}

static double low_rank(const void *args)
{
    return keel_low_rank_scale(&((const args_t *)args)->low_rank);
}

static keel_status to_config(const void *args, json_t *config)
{
    return keel_low_rank_config(&((const args_t *)args)->low_rank, config);
}

const keel_layer keel_layer_einsum_dense = {
    .type = { KEEL_LAYER_HEAD("EinsumDense",
                              "A product with a kernel, along the dims that an equation names."),
              .args_size = sizeof(args_t), .fields = fields },
    .min_inputs = 1,
    .max_inputs = 1,
    .emit = emit,
    .to_config = to_config,
    .low_rank = low_rank,
};
