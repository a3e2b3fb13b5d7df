/* Whether, or how often, a row names each of `num_tokens` categories; computed when rows are read.
 */
#include "layers/preprocessing/_categories.h"
#include "tensor/shape.h"

enum { MULTI_HOT, ONE_HOT, COUNT };

typedef struct args_t {
    int64_t num_tokens;
    int output_mode;
    bool sparse;
} args_t;

static const keel_field fields[] = {
    KEEL_INT(args_t, num_tokens, NULL, 1, 1e9, "categories: a row names 0 to num_tokens - 1"),
    KEEL_CHOICE(args_t, output_mode, "\"multi_hot\"", "multi_hot|one_hot|count",
                "one number for each category, of a row or of each of its places"),
    KEEL_BOOL(args_t, sparse, "false", KEEL_SPARSE_HELP),
    { 0 },
};

static int mode_of(const args_t *a)
{
    return a->output_mode == ONE_HOT ? KEEL_CATEGORY_ONE_HOT
           : a->output_mode == COUNT ? KEEL_CATEGORY_COUNT
                                     : KEEL_CATEGORY_MULTI_HOT;
}

/* in: the categories, and maybe how much each place counts */
static keel_status run(const void *args, const keel_tensor *in, int n_in, const keel_tensor *out,
                       keel_scratch *scratch)
{
    (void)scratch;
    const args_t *a = args;
    keel_categories_begin(out);
    for (int64_t i = 0, n = keel_shape_count(&in->shape); i < n; i++) {
        const int64_t index = keel_whole_number_at(in, i);
        if (index < 0 || index >= a->num_tokens)
            return keel_fail(KEEL_EDATA, "%lld is no category: num_tokens is %lld",
                             (long long)index, (long long)a->num_tokens);
        if (n_in == 1)
            keel_categories_put(mode_of(a), a->num_tokens, index, i, out);
        else
            keel_categories_add(index, keel_number_at(&in[1], i), out);
    }
    return KEEL_OK;
}

static keel_status emit(keel_emit *e)
{
    const args_t *a = e->args;
    const keel_spec *in = keel_emit_in(e, 0);
    keel_spec out;
    if (in->dtype == KEEL_STRING)
        return keel_fail(KEEL_EARG, "it takes whole numbers, and its input is of texts");
    KEEL_TRY(keel_category_weights(e, a->output_mode == COUNT));
    KEEL_TRY(keel_categories_spec(mode_of(a), a->num_tokens, &in->shape, e->graph->real, &out));
    return keel_emit_host(e, run, &out, e->out);
}

const keel_layer keel_layer_category_encoding = {
    .type = { KEEL_LAYER_HEAD("CategoryEncoding",
                              "A number for each category: whether, or how often, a row names it."),
              .args_size = sizeof(args_t), .fields = fields },
    .min_inputs = 1,
    .max_inputs = 2,
    .by_arguments = true,
    .reads_rows = true,
    .uncast = true,
    .emit = emit,
};
