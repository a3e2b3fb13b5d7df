/* One of `num_bins` for the combination of several inputs, by their hashes, computed when rows are
 * read. As TensorFlow's sparse.cross_hashed, it takes the fingerprints of texts, and numbers as
 * they are. */
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

static int64_t index_of(const void *args, const keel_tensor *in, int64_t row)
{
    (void)row;
    uint64_t hash = UINT64_C(0xDECAFCAFFE); /* TensorFlow's key, where none is given */
    for (int i = 0; i < 2; i++) {
        const keel_string *s = in[i].data;
        hash = join(hash, in[i].dtype == KEEL_STRING ? keel_text_hash(NULL, s)
                                                     : (uint64_t)keel_whole_number_at(&in[i], 0));
    }
    return (int64_t)(hash % (uint64_t)((const args_t *)args)->num_bins);
}

static keel_status ready(void *args)
{
    args_t *a = args;
    a->mode.depth = a->num_bins;
    a->mode.index = index_of;
    return KEEL_OK;
}

static keel_status emit(keel_emit *e)
{
    const keel_shape *first = &keel_emit_in(e, 0)->shape;
    for (int i = 0; i < e->n_in; i++) {
        const keel_spec *in = keel_emit_in(e, i);
        if (keel_shape_count(&in->shape) != 1 || !keel_shape_equal(&in->shape, first))
            return keel_fail(KEEL_ESHAPE, "its inputs must all be of (1,), or all of ()");
    }
    return keel_category_emit(e);
}

const keel_layer keel_layer_hashed_crossing = {
    .type = { KEEL_LAYER_HEAD("HashedCrossing",
                              "One of a number of bins for what several inputs are together."),
              .args_size = sizeof(args_t), .fields = fields, .ready = ready },
    .min_inputs = 2,
    .max_inputs = 2,
    .takes_list = true,
    .reads_rows = true,
    .uncast = true,
    .emit = emit,
    .to_config = keel_category_config,
};
