/* The contrast of images [H, W, C] is equalized tile by tile, in inference, too. */
#include "layers/preprocessing/_random.h"
#include "ops/clahe.h"

typedef struct args_t {
    keel_reals value_range;
    keel_range values;
    double clip_limit;
    keel_ints tile_grid_size;
    int data_format;
} args_t;

static const keel_field fields[] = {
    KEEL_VALUE_RANGE(args_t, value_range),
    KEEL_FLOAT(args_t, clip_limit, "4.0", 0, 0,
               "how often a value may be there, of the mean of its tile; up to 0: any"),
    KEEL_INTS(args_t, tile_grid_size, 2, "[8, 8]", 1, 1 << 15, "tiles down and across"),
    KEEL_DATA_FORMAT(args_t),
    { 0 },
};

static keel_status ready(void *args)
{
    args_t *a = args;
    return keel_value_range(&a->values, &a->value_range);
}

static keel_status emit(keel_emit *e)
{
    const args_t *a = e->args;
    const keel_spec *in;
    const keel_clahe_args op = { .grid = { a->tile_grid_size.at[0], a->tile_grid_size.at[1] },
                                 .clip_limit = a->clip_limit,
                                 .values = a->values };
    KEEL_TRY(keel_emit_image(e, &in));
    return keel_emit_one(e, &keel_op_clahe, &op);
}

const keel_layer keel_layer_contrast_limited_adaptive_histogram_equalization = {
    .type = { KEEL_LAYER_HEAD("ContrastLimitedAdaptiveHistogramEqualization",
                              "Equalizes the contrast of images tile by tile."),
              .args_size = sizeof(args_t), .fields = fields, .ready = ready },
    .min_inputs = 1,
    .max_inputs = 1,
    .emit = emit,
};
