/* One of `num_bins` for a text or an integer, by its hash, computed when rows are read. The hashes
 * are those of TensorFlow: FarmHash's fingerprint, or SipHash with a key (salt). */
#include "layers/preprocessing/_categories.h"
#include "tensor/shape.h"
#include <string.h>

typedef struct args_t {
    keel_category_args mode;
    int64_t num_bins;
    json_t *mask_value; /* a text or a number; NULL: none */
    json_t *salt;       /* two whole numbers, or one for both; NULL: none */
} args_t;

static const keel_field fields[] = {
    KEEL_INT(args_t, num_bins, NULL, 1, 1e15, "how many there are, that of the mask among them"),
    KEEL_EITHER(args_t, mask_value, "null", "what gives 0, which nothing else does then"),
    KEEL_EITHER(args_t, salt, "null", "two whole numbers, or one: the key of another hash"),
    KEEL_CATEGORY_FIELDS("int|one_hot|multi_hot|count",
                         "what comes out: indices, or a number for each of num_bins"),
    { 0 },
};

static bool is_mask(const args_t *a, const keel_tensor *in, int64_t i, const keel_string *s)
{
    if (in->dtype != KEEL_STRING) return keel_number_at(in, i) == json_number_value(a->mask_value);
    return (size_t)s->n_bytes == json_string_length(a->mask_value) &&
           !memcmp(s->data, json_string_value(a->mask_value), (size_t)s->n_bytes);
}

static int64_t index_of(const void *args, const keel_tensor *in, int64_t i)
{
    const args_t *a = args;
    char digits[32];
    const keel_string s = keel_text_at(in, i, digits);
    const bool masks = a->mask_value && a->num_bins > 1;
    if (masks && is_mask(a, in, i, &s)) return 0;
    return (int64_t)(keel_text_hash(a->salt, &s) % (uint64_t)(a->num_bins - masks)) + masks;
}

static keel_status ready(void *args)
{
    args_t *a = args;
    bool good = !a->salt || json_is_integer(a->salt) || json_array_size(a->salt) == 2;
    for (size_t i = 0; i < json_array_size(a->salt); i++)
        good = good && json_is_integer(json_array_get(a->salt, i));
    if (!good) return keel_fail(KEEL_EARG, "Hashing: salt: expected one or two whole numbers");
    if (json_is_array(a->mask_value))
        return keel_fail(KEEL_EARG, "Hashing: mask_value: expected a text or a number");
    if (a->mode.output_mode != KEEL_CATEGORY_INT && a->num_bins > 1000000000)
        return keel_fail(KEEL_EARG, "Hashing: num_bins: more than 1e9 numbers for a row");
    a->mode.depth = a->num_bins;
    a->mode.index = index_of;
    return KEEL_OK;
}

static keel_status emit(keel_emit *e)
{
    const args_t *a = e->args;
    const keel_spec *in = keel_emit_in(e, 0);
    if (a->mask_value && json_is_string(a->mask_value) != (in->dtype == KEEL_STRING))
        return keel_fail(KEEL_EARG, "mask_value must be a %s, as its input has",
                         in->dtype == KEEL_STRING ? "text" : "number");
    if (a->mode.output_mode == KEEL_CATEGORY_ONE_HOT && keel_shape_count(&in->shape) != 1)
        return keel_fail(KEEL_EUNSUP, "output_mode 'one_hot' is there for rows of one element");
    return keel_category_emit(e);
}

const keel_layer keel_layer_hashing = {
    .type = { KEEL_LAYER_HEAD("Hashing",
                              "One of a number of bins for a text or a whole number, by its hash."),
              .args_size = sizeof(args_t), .fields = fields, .ready = ready },
    .min_inputs = 1,
    .max_inputs = 1,
    .reads_rows = true,
    .uncast = true,
    .emit = emit,
    .to_config = keel_category_config,
};
