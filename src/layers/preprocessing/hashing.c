/* One of `num_bins` for a text or an integer, by its hash, computed when rows are read. The hashes
 * are those of TensorFlow: FarmHash's fingerprint, or SipHash with a key (salt). */
#include "base/hash.h"
#include "layers/preprocessing/_categories.h"
#include "tensor/shape.h"
#include <string.h>

typedef struct args_t {
    int64_t num_bins;
    json_t *mask_value; /* a text or a number; NULL: none */
    json_t *salt;       /* two whole numbers, or one for both; NULL: none */
    int output_mode;
} args_t;

static const keel_field fields[] = {
    KEEL_INT(args_t, num_bins, NULL, 1, 1e15, "how many there are, that of the mask among them"),
    KEEL_EITHER(args_t, mask_value, "null", "what gives 0, which nothing else does then"),
    KEEL_EITHER(args_t, salt, "null", "two whole numbers, or one: the key of another hash"),
    KEEL_CHOICE(args_t, output_mode, "\"int\"", "int|one_hot|multi_hot|count",
                "what comes out: indices, or a number for each of num_bins"),
    KEEL_REFUSE("sparse", "false", "sparse output"),
    { 0 },
};

static keel_status ready(void *args)
{
    const args_t *a = args;
    bool good = !a->salt || json_is_integer(a->salt) || json_array_size(a->salt) == 2;
    for (size_t i = 0; i < json_array_size(a->salt); i++)
        good = good && json_is_integer(json_array_get(a->salt, i));
    if (!good) return keel_fail(KEEL_EARG, "Hashing: salt: expected one or two whole numbers");
    if (json_is_array(a->mask_value))
        return keel_fail(KEEL_EARG, "Hashing: mask_value: expected a text or a number");
    if (a->output_mode != KEEL_CATEGORY_INT && a->num_bins > 1000000000)
        return keel_fail(KEEL_EARG, "Hashing: num_bins: more than 1e9 numbers for a row");
    return KEEL_OK;
}

static bool is_mask(const args_t *a, const keel_tensor *in, int64_t i, const keel_string *s)
{
    if (!a->mask_value || a->num_bins == 1) return false;
    if (in->dtype != KEEL_STRING) return keel_number_at(in, i) == json_number_value(a->mask_value);
    return (size_t)s->n_bytes == json_string_length(a->mask_value) &&
           !memcmp(s->data, json_string_value(a->mask_value), (size_t)s->n_bytes);
}

static uint64_t hash_of(const args_t *a, const keel_string *s)
{
    if (!a->salt) return keel_fingerprint(s->data, (size_t)s->n_bytes);
    const bool two = json_is_array(a->salt);
    const json_t *first = two ? json_array_get(a->salt, 0) : a->salt;
    const json_t *second = two ? json_array_get(a->salt, 1) : a->salt;
    const uint64_t key[2] = { (uint64_t)json_integer_value(first),
                              (uint64_t)json_integer_value(second) };
    return keel_siphash(key, s->data, (size_t)s->n_bytes);
}

static keel_status run(const void *args, const keel_tensor *in, int n_in, const keel_tensor *out,
                       keel_scratch *scratch)
{
    (void)n_in;
    (void)scratch;
    const args_t *a = args;
    const int64_t masked = a->mask_value && a->num_bins > 1;
    const uint64_t bins = (uint64_t)(a->num_bins - masked);
    keel_categories_begin(out);
    for (int64_t i = 0, n = keel_shape_count(&in->shape); i < n; i++) {
        char digits[32];
        keel_string s = { digits, 0 };
        if (in->dtype == KEEL_STRING)
            s = ((const keel_string *)in->data)[i];
        else
            s.n_bytes =
                snprintf(digits, sizeof digits, "%lld", (long long)keel_whole_number_at(in, i));
        if (!s.data) s.data = ""; /* padding after a row that is shorter than others */
        const int64_t index = is_mask(a, in, i, &s) ? 0 : (int64_t)(hash_of(a, &s) % bins) + masked;
        keel_categories_put(a->output_mode, a->num_bins, index, i, out);
    }
    return KEEL_OK;
}

static keel_status emit(keel_emit *e)
{
    const args_t *a = e->args;
    const keel_spec *in = keel_emit_in(e, 0);
    keel_spec out;
    if (a->mask_value && json_is_string(a->mask_value) != (in->dtype == KEEL_STRING))
        return keel_fail(KEEL_EARG, "mask_value must be a %s, as its input has",
                         in->dtype == KEEL_STRING ? "text" : "number");
    if (a->output_mode == KEEL_CATEGORY_ONE_HOT && keel_shape_count(&in->shape) != 1)
        return keel_fail(KEEL_EUNSUP, "output_mode 'one_hot' is there for rows of one element");
    KEEL_TRY(keel_categories_spec(a->output_mode, a->num_bins, &in->shape, e->graph->real, &out));
    return keel_emit_host(e, run, &out, e->out);
}

static keel_status to_config(const void *args, json_t *config)
{
    return keel_categories_dtype(((const args_t *)args)->output_mode, config);
}

const keel_layer keel_layer_hashing = {
    .type = { .name = "Hashing",
              .module = "keras.layers",
              .help = "One of a number of bins for a text or a whole number, by its hash.",
              .args_size = sizeof(args_t),
              .fields = fields,
              .ready = ready },
    .min_inputs = 1,
    .max_inputs = 1,
    .reads_rows = true,
    .uncast = true,
    .emit = emit,
    .to_config = to_config,
};
