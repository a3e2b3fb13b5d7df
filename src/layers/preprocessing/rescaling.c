/* y = x scale + offset, each one number, or as many as some dims of a row, to which they are
 * broadcast: Keras's EfficientNet with its ImageNet weights has a scale for each color. */
#include "layers/operations/_operation.h"

typedef struct args_t {
    json_t *scale, *offset; /* numbers, or lists of numbers inside lists */
} args_t;

static const keel_field fields[] = {
    KEEL_EITHER(args_t, scale, NULL, "multiplies: a number, or one for each channel"),
    KEEL_EITHER(args_t, offset, "0.0", "is added: a number, or one for each channel"),
    { 0 },
};

static keel_status ready(void *args)
{
    const args_t *a = args;
    keel_numbers_args op = { 0 };
    KEEL_TRY(keel_list_read(a->scale, "scale", &op));
    return keel_list_read(a->offset, "offset", &op);
}

/* The numbers as a value that fits the rows without making them larger. */
static keel_status spread(keel_emit *e, const json_t *numbers, const char *name, keel_value *out)
{
    const keel_shape row = keel_emit_in(e, 0)->shape;
    char text[96];
    KEEL_TRY(keel_emit_array(e, numbers, name, row.rank, out));
    const keel_shape *s = &keel_graph_spec(e->graph, *out)->shape;
    for (int d = 0; d < row.rank; d++) {
        if (s->dim[d] == 1 || s->dim[d] == row.dim[d]) continue;
        keel_shape_text(text, &row);
        return keel_fail(KEEL_ESHAPE, "%s: its numbers do not fit rows of %s", name, text);
    }
    return KEEL_OK;
}

static keel_status emit(keel_emit *e)
{
    const args_t *a = e->args;
    keel_value scale, offset, y;
    if (json_is_number(a->scale) && json_is_number(a->offset))
        return keel_emit_scaled(e, e->in[0], json_number_value(a->scale),
                                json_number_value(a->offset), e->out);
    KEEL_TRY(spread(e, a->scale, "scale", &scale));
    KEEL_TRY(keel_emit_pair(e, &keel_op_multiply, e->in[0], scale, &y));
    if (json_is_number(a->offset))
        return keel_emit_scaled(e, y, 1, json_number_value(a->offset), e->out);
    KEEL_TRY(spread(e, a->offset, "offset", &offset));
    return keel_emit_pair(e, &keel_op_plus, y, offset, e->out);
}

const keel_layer keel_layer_rescaling = {
    .type = { KEEL_LAYER_HEAD("Rescaling", "Multiplies by a scale and adds an offset."),
              .args_size = sizeof(args_t), .fields = fields, .ready = ready },
    .min_inputs = 1,
    .max_inputs = 1,
    .supports_masking = true,
    .emit = emit,
};
