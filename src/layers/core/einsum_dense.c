/* y = activation(einsum(equation, x, kernel) + bias). The equation names the dims of x, of the
 * kernel and of y by letters: "abc,cde->abde". Dims that x and the kernel share and y does not have
 * are summed over. So it is a product of matrices: x as [places, sums], the kernel as [sums,
 * units]. */
#include "base/memory.h"
#include "layers/_kernel.h"
#include "layers/core/low_rank.h"
#include "layers/operations/_einsum.h"
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
} product;

static keel_status refuse(const char *letters, const char *where)
{
    return keel_fail(KEEL_EUNSUP, "dim '%c' of %s is not supported", *letters, where);
}

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
    keel_letters_choose(rest, x, w, false, y, false);
    if (*rest) return refuse(rest, "the input alone");
    keel_letters_choose(rest, x, w, true, y, true);
    if (*rest) return refuse(rest, "all terms");
    keel_letters_choose(rest, w, x, false, y, false);
    if (*rest)
        return keel_fail(KEEL_EARG, "dim '%c' of the kernel is in neither other term", *rest);
    keel_letters_choose(p->places, x, w, false, y, true);
    keel_letters_choose(p->sums, w, x, true, y, false);
    keel_letters_choose(p->units, w, x, false, y, true);
    if (!*p->sums || !*p->units)
        return keel_fail(KEEL_EUNSUP, "a kernel must have dims to sum over and others");
    return !strncmp(w, p->sums, strlen(p->sums))
               ? KEEL_OK
               : keel_fail(KEEL_EUNSUP, "a kernel whose sums do not come first is not supported");
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

/* A bias is supported for all units, if they are the last dims of the output. */
static keel_status check_bias(const args_t *a, const product *p)
{
    const char *y = p->out.letter;
    const size_t units = strlen(p->units), n = strlen(y);
    bool fits = n >= units && !strcmp(y + n - units, p->units);
    for (const char *c = a->bias_axes; *c; c++)
        if (!keel_letters_have(y, *c) || keel_letters_have(p->dots, *c))
            return keel_fail(KEEL_EARG, "bias_axes '%.20s': not letters of the output's rows",
                             a->bias_axes);
    for (const char *c = y; *c; c++)
        fits = fits && keel_letters_have(a->bias_axes, *c) == keel_letters_have(p->units, *c);
    return fits ? KEEL_OK
                : keel_fail(KEEL_EUNSUP,
                            "bias_axes '%.20s': only one of all dims of the kernel that are not "
                            "summed over, the last of the output, is supported",
                            a->bias_axes);
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

static keel_status emit(keel_emit *e)
{
    const args_t *a = e->args;
    product p = { .in = { { .value = e->in[0] }, { .value = -1, .array = true } } };
    keel_term *x = &p.in[0];
    keel_shape kernel = { 0 }, flat = { 0 }, bias = { 0 }, matrix = { 0 }, row = { 0 };
    keel_weights w = { 0 }, pair[2] = { { 0 }, { 0 } };
    char order[KEEL_LETTERS] = "";
    const bool narrow = keel_low_rank_given(&a->low_rank);
    keel_value y;
    const keel_status s = read_equation(e, a->equation, &p);
    if (s < 0) return keel_fail_within(s, "equation '%.60s'", a->equation);
    if (narrow && a->weights.kernel_constraint.type)
        return keel_fail(KEEL_EUNSUP, "lora_rank with a kernel_constraint: Keras refuses it, too");
    KEEL_TRY(read_sizes(a, &keel_emit_in(e, 0)->shape, &p));
    KEEL_TRY(append(&p, p.in[1].letter, false, &kernel));
    KEEL_TRY(append(&p, p.units, false, &bias));
    KEEL_TRY(append(&p, p.places, false, &matrix));
    KEEL_TRY(append(&p, p.sums, true, &matrix));
    KEEL_TRY(append(&p, p.sums, true, &flat));
    KEEL_TRY(append(&p, p.units, true, &flat));
    keel_weight_decl decl = keel_kernel_decl(&a->weights, &kernel, (int)strlen(p.sums));
    decl.state = narrow;
    KEEL_TRY(keel_emit_weight(e, &decl, &w));
    w.spec[0].shape = flat;
    if (a->bias_axes) KEEL_TRY(check_bias(a, &p));
    KEEL_TRY(keel_emit_bias(e, &a->weights, a->bias_axes != NULL, &bias, &w));
    w.spec[1].shape = KEEL_SHAPE(flat.dim[1]);
    KEEL_TRY(keel_term_reorder(e, x, strcat(strcpy(order, p.places), p.sums)));
    KEEL_TRY(keel_emit_view(e, &matrix, x->value, &x->value));
    KEEL_TRY(keel_emit_weighted(e, &keel_op_dense, NULL, x->value, &w, &y));
    if (narrow) {
        KEEL_TRY(keel_low_rank_declare(e, &a->low_rank, &decl, (int)strlen(p.sums), pair));
        KEEL_TRY(keel_low_rank_add(e, &a->low_rank, &keel_op_dense, pair, x->value, &y));
    }
    x->value = y;
    strcat(strcpy(x->letter, p.places), p.units);
    KEEL_TRY(append(&p, x->letter, false, &row));
    KEEL_TRY(keel_emit_view(e, &row, x->value, &x->value));
    KEEL_TRY(keel_term_reorder(e, x, p.out.letter));
    return keel_emit_activation(e, &a->activation, x->value, e->out);
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
