/* What operations of keras.ops.image share. */
#ifndef KEEL_LAYERS_OPERATIONS_IMAGE_H
#define KEEL_LAYERS_OPERATIONS_IMAGE_H
#include "layers/operations/_operation.h"

/* The order of the dims: null is Keras's default. */
#define KEEL_IMAGE_FORMAT(args)                                                                    \
    KEEL_CHOICE(args, data_format, "null", "channels_last|channels_first",                         \
                "order of the dims; null is channels_last, which is the only one supported")

/* Input 0 is an image in that order. */
static inline keel_status keel_image_in(const keel_emit *e, int data_format, keel_shape *out)
{
    const keel_spec *in;
    KEEL_TRY(keel_channels_last(data_format < 0 ? 0 : data_format));
    KEEL_TRY(keel_emit_image(e, &in));
    *out = in->shape;
    return KEEL_OK;
}

#define KEEL_IMAGE_OPERATION(stem, class_, args_, help_, ...)                                      \
    KEEL_ONE_INPUT_OPERATION(stem, class_, "image", args_, help_, __VA_ARGS__)

#endif
