/* The range in which a number lies, computed when rows are read: range i begins at boundary i - 1,
 * which belongs to it. Boundaries are compared as float32, as in TensorFlow. */
#include "layers/preprocessing/_categories.h"
#include "base/memory.h"
#include "tensor/shape.h"

typedef struct args_t {
    json_t *bin_boundaries; /* as many as the data gave adapt() */
    int64_t num_bins, n;
    double epsilon;
    int output_mode;
    float *bound; /* [n], ascending */
} args_t;

static const keel_field fields[] = {
    KEEL_LIST(args_t, bin_boundaries, "null", "where ranges begin, ascending"),
    KEEL_INT(args_t, num_bins, "null", 1, 1e9, "how many ranges Keras's adapt() looks for"),
    KEEL_FLOAT(args_t, epsilon, "0.01", 0, 1, "how exact adapt() is"),
    KEEL_CHOICE(args_t, output_mode, "\"int\"", "int|one_hot|multi_hot|count",
                "what comes out: indices, or a number for each range"),
    KEEL_REFUSE("sparse", "false", "sparse output"),
    { 0 },
};

static keel_status take(args_t *a)
{
    a->n = (int64_t)json_array_size(a->bin_boundaries);
    if (!a->bin_boundaries)
        return keel_fail(KEEL_EARG, "it has no bin_boundaries; give them, or adapt it in Keras");
    if (!(a->bound = keel_calloc((size_t)a->n + 1, sizeof *a->bound))) return KEEL_ENOMEM;
    for (int64_t i = 0; i < a->n; i++) {
        const json_t *v = json_array_get(a->bin_boundaries, (size_t)i);
        a->bound[i] = (float)json_number_value(v);
        if (!json_is_number(v) || (i > 0 && !(a->bound[i] >= a->bound[i - 1])))
            return keel_fail(KEEL_EARG, "bin_boundaries must be ascending numbers");
    }
    return KEEL_OK;
}

static keel_status ready(void *args)
{
    const keel_status s = take(args);
    return s < 0 && s != KEEL_ENOMEM ? keel_fail_within(s, "Discretization") : s;
}

static void release(void *args)
{
    args_t *a = args;
    keel_free(a->bound);
    a->bound = NULL;
}

/* How many boundaries are at or below x; all of them where x is no number. */
static int64_t range_of(const args_t *a, float x)
{
    int64_t low = 0, high = a->n;
    while (low < high) {
        const int64_t middle = low + (high - low) / 2;
        if (x < a->bound[middle])
            high = middle;
        else
            low = middle + 1;
    }
    return low;
}

static keel_status run(const void *args, const keel_tensor *in, int n_in, const keel_tensor *out,
                       keel_scratch *scratch)
{
    (void)n_in;
    (void)scratch;
    const args_t *a = args;
    keel_categories_begin(out);
    for (int64_t i = 0, n = keel_shape_count(&in->shape); i < n; i++)
        keel_categories_put(a->output_mode, a->n + 1, range_of(a, (float)keel_number_at(in, i)), i,
                            out);
    return KEEL_OK;
}

static keel_status emit(keel_emit *e)
{
    const args_t *a = e->args;
    const keel_spec *in = keel_emit_in(e, 0);
    keel_spec out;
    if (in->dtype == KEEL_STRING)
        return keel_fail(KEEL_EARG, "it takes numbers, and its input is of texts");
    KEEL_TRY(keel_categories_spec(a->output_mode, a->n + 1, &in->shape, e->graph->real, &out));
    return keel_emit_host(e, run, &out, e->out);
}

static keel_status to_config(const void *args, json_t *config)
{
    (void)args;
    json_object_del(config, "trainable"); /* which Keras's class does not take */
    return KEEL_OK;
}

const keel_layer keel_layer_discretization = {
    .type = { .name = "Discretization",
              .module = "keras.layers",
              .help = "The index of the range that a number is in.",
              .args_size = sizeof(args_t),
              .fields = fields,
              .ready = ready,
              .release = release },
    .min_inputs = 1,
    .max_inputs = 1,
    .reads_rows = true,
    .uncast = true,
    .emit = emit,
    .to_config = to_config,
};
