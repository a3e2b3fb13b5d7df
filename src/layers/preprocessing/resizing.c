/* Images [H, W, C] in another height and width, stretched, cropped or padded to that aspect ratio.
 */
#include "layers/preprocessing/_resize.h"

typedef struct args_t {
    int64_t height, width;
    keel_aspect aspect;
} args_t;

static const keel_field fields[] = {
    KEEL_INT(args_t, height, NULL, 1, 1 << 24, "of the output"),
    KEEL_INT(args_t, width, NULL, 1, 1 << 24, "of the output"),
    KEEL_ASPECT_FIELDS(args_t, aspect),
    { .key = "data_format",
      .kind = KEEL_FIELD_CHOICE,
      .offset = offsetof(args_t, aspect.data_format),
      .dflt = "\"channels_last\"",
      .choices = "channels_last|channels_first",
      .help = "order of the dims" },
    { 0 },
};

static keel_status emit(keel_emit *e)
{
    const args_t *a = e->args;
    return keel_emit_aspect(e, &a->aspect, a->height, a->width);
}

const keel_layer keel_layer_resizing = {
    .type = { KEEL_LAYER_HEAD("Resizing", "Makes images of another height and width."),
              .args_size = sizeof(args_t), .fields = fields },
    .min_inputs = 1,
    .max_inputs = 1,
    .emit = emit,
};
