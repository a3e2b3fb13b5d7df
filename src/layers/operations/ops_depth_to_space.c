/* Channels as blocks of a larger image. */
#include "layers/operations/_depth.h"

static keel_status emit(keel_emit *e)
{
    const args_t *a = e->args;
    const int64_t b = a->block_size;
    const keel_spec *in;
    KEEL_TRY(keel_channels_last(a->data_format));
    KEEL_TRY(keel_emit_image(e, &in));
    const int64_t h = in->shape.dim[0], w = in->shape.dim[1], c = in->shape.dim[2] / (b * b);
    if (in->shape.dim[2] % (b * b))
        return keel_fail(KEEL_ESHAPE, "%lld channels are no blocks of %lld by %lld",
                         (long long)in->shape.dim[2], (long long)b, (long long)b);
    return emit_blocks(e, KEEL_SHAPE(h, w, b, b, c), (const int64_t[]){ 0, 2, 1, 3, 4 },
                       KEEL_SHAPE(h * b, w * b, c));
}

KEEL_ARGS_OPERATION(ops_depth_to_space, "DepthToSpace", "nn", 1,
                    "Channels as blocks of a larger image.")
