/* Blocks of an image as channels of a smaller one. */
#include "layers/operations/_depth.h"

static keel_status emit(keel_emit *e)
{
    const args_t *a = e->args;
    const int64_t b = a->block_size;
    const keel_spec *in;
    KEEL_TRY(keel_channels_last(a->data_format));
    KEEL_TRY(keel_emit_image(e, &in));
    const int64_t h = in->shape.dim[0] / b, w = in->shape.dim[1] / b, c = in->shape.dim[2];
    if (in->shape.dim[0] % b || in->shape.dim[1] % b)
        return keel_fail(KEEL_ESHAPE, "an image of %lld by %lld is not made of blocks of %lld",
                         (long long)in->shape.dim[0], (long long)in->shape.dim[1], (long long)b);
    return emit_blocks(e, KEEL_SHAPE(h, b, w, b, c), (const int64_t[]){ 0, 2, 1, 3, 4 },
                       KEEL_SHAPE(h, w, b * b * c));
}

KEEL_ARGS_OPERATION(ops_space_to_depth, "SpaceToDepth", "nn", 1,
                    "Blocks of an image as channels of a smaller one.")
