/* The range in which a number lies, computed when rows are read: range i begins at boundary i - 1,
 * which belongs to it. Boundaries are compared as float32, as in TensorFlow. */
#include "base/python_json.h"
#include "layers/preprocessing/_categories.h"
#include <math.h>

typedef struct args_t {
    keel_category_args mode;
    json_t *bin_boundaries; /* as many as the data gave adapt() */
    int64_t num_bins;
    double epsilon;
} args_t;

static const keel_field fields[] = {
    KEEL_LIST(args_t, bin_boundaries, "null", "where ranges begin, ascending"),
    KEEL_INT(args_t, num_bins, "null", 1, 1e9, "how many ranges Keras's adapt() looks for"),
    KEEL_FLOAT(args_t, epsilon, "0.01", 0, 1, "how exact adapt() is"),
    KEEL_CATEGORY_FIELDS("int|one_hot|multi_hot|count",
                         "what comes out: indices, or a number for each range"),
    { 0 },
};

static float bound(const args_t *a, size_t i)
{
    double x = NAN;
    keel_json_number(json_array_get(a->bin_boundaries, i), &x);
    return (float)x;
}

/* How many boundaries are at or below x; all of them where x is no number. */
static int64_t index_of(const void *args, const keel_tensor *in, int64_t i)
{
    const args_t *a = args;
    const float x = (float)keel_number_at(in, i);
    size_t low = 0, high = json_array_size(a->bin_boundaries);
    while (low < high) {
        const size_t middle = low + (high - low) / 2;
        if (x < bound(a, middle))
            high = middle;
        else
            low = middle + 1;
    }
    return (int64_t)low;
}

static keel_status ready(void *args)
{
    args_t *a = args;
    const size_t n = json_array_size(a->bin_boundaries);
    if (!a->bin_boundaries)
        return keel_fail(KEEL_EARG, "Discretization: it has no bin_boundaries; give them, or adapt "
                                    "it in Keras");
    for (size_t i = 0; i < n; i++)
        if (isnan(bound(a, i)) || (i > 0 && !(bound(a, i) >= bound(a, i - 1))))
            return keel_fail(KEEL_EARG, "Discretization: bin_boundaries must be ascending numbers");
    a->mode.depth = (int64_t)n + 1;
    a->mode.index = index_of;
    return KEEL_OK;
}

static keel_status emit(keel_emit *e)
{
    if (keel_emit_in(e, 0)->dtype != KEEL_STRING) return keel_category_emit(e);
    return keel_fail(KEEL_EARG, "it takes numbers, and its input is of texts");
}

const keel_layer keel_layer_discretization = {
    .type = { KEEL_LAYER_HEAD("Discretization", "The index of the range that a number is in."),
              .args_size = sizeof(args_t), .fields = fields, .ready = ready },
    .min_inputs = 1,
    .max_inputs = 1,
    .reads_rows = true,
    .uncast = true,
    .emit = emit,
    .untrained = true,
};
