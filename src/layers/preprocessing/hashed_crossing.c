/* One of `num_bins` for the combination of several inputs, by their hashes, computed when rows are
 * read. As TensorFlow's sparse.cross_hashed, it takes the fingerprints of texts, and numbers as
 * they are. */
#include "base/hash.h"
#include "layers/preprocessing/_categories.h"
#include "tensor/shape.h"

typedef struct args_t {
    keel_category_args mode;
    int64_t num_bins;
} args_t;

static const keel_field fields[] = {
    KEEL_INT(args_t, num_bins, NULL, 1, 1e15, "how many there are"),
    KEEL_CATEGORY_FIELDS("int|one_hot",
                         "what comes out: indices, or a number for each of num_bins"),
    { 0 },
};

static uint64_t mixed(uint64_t v)
{
    return v ^ (v >> 47);
}

/* Two fingerprints as one: MurmurHash's step of 64 bits. */
static uint64_t join(uint64_t a, uint64_t b)
{
    const uint64_t multiplier = UINT64_C(0xc6a4a7935bd1e995);
    uint64_t joined = a ^ multiplier;
    joined ^= mixed(b * multiplier) * multiplier;
    joined *= multiplier;
    return mixed(mixed(joined) * multiplier);
}

static keel_status run(const void *args, const keel_tensor *in, int n_in, const keel_tensor *out,
                       keel_scratch *scratch)
{
    (void)scratch;
    const args_t *a = args;
    uint64_t hash = UINT64_C(0xDECAFCAFFE); /* TensorFlow's key, where none is given */
    for (int i = 0; i < n_in; i++) {
        const keel_string *s = in[i].data;
        hash = join(hash, in[i].dtype == KEEL_STRING
                              ? keel_fingerprint(s->data ? s->data : "", (size_t)s->n_bytes)
                              : (uint64_t)keel_whole_number_at(&in[i], 0));
    }
    keel_categories_begin(out);
    keel_categories_put(a->mode.output_mode, a->num_bins, (int64_t)(hash % (uint64_t)a->num_bins),
                        0, out);
    return KEEL_OK;
}

static keel_status emit(keel_emit *e)
{
    const args_t *a = e->args;
    const keel_shape *first = &keel_emit_in(e, 0)->shape;
    for (int i = 0; i < e->n_in; i++) {
        const keel_spec *in = keel_emit_in(e, i);
        if (keel_shape_count(&in->shape) != 1 || !keel_shape_equal(&in->shape, first))
            return keel_fail(KEEL_ESHAPE, "its inputs must all be of (1,), or all of ()");
    }
    return keel_categories_emit(e, a->mode.output_mode, a->num_bins, run);
}

const keel_layer keel_layer_hashed_crossing = {
    .type = { .name = "HashedCrossing",
              .module = "keras.layers",
              .help = "One of a number of bins for what several inputs are together.",
              .args_size = sizeof(args_t),
              .fields = fields },
    .min_inputs = 2,
    .max_inputs = 2,
    .takes_list = true,
    .reads_rows = true,
    .uncast = true,
    .emit = emit,
    .to_config = keel_category_config,
};
