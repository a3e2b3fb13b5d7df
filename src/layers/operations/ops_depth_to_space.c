/* Channels as blocks of a larger image. */
#include "layers/operations/_depth.h"

static keel_status emit(keel_emit *e)
{
    const args_t *a = e->args;
    const bool first = a->data_format > 0; /* channels_first */
    const int64_t b = a->block_size;
    const keel_spec *in;
    KEEL_TRY(keel_emit_image(e, &in));
    const int64_t *dim = in->shape.dim;
    const int64_t h = dim[first], w = dim[first + 1], of = dim[first ? 0 : 2], c = of / (b * b);
    if (of % (b * b))
        return keel_fail(KEEL_ESHAPE, "%lld channels are no blocks of %lld by %lld", (long long)of,
                         (long long)b, (long long)b);
    if (first)
        return emit_blocks(e, KEEL_SHAPE(b, b, c, h, w), (const int64_t[]){ 2, 3, 0, 4, 1 },
                           KEEL_SHAPE(c, h * b, w * b));
    return emit_blocks(e, KEEL_SHAPE(h, w, b, b, c), (const int64_t[]){ 0, 2, 1, 3, 4 },
                       KEEL_SHAPE(h * b, w * b, c));
}

KEEL_ARGS_OPERATION(ops_depth_to_space, "DepthToSpace", "nn", 1,
                    "Channels as blocks of a larger image.", .whole = KEEL_WHOLE_KEPT)
