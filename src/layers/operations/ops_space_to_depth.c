/* Blocks of an image as channels of a smaller one. */
#include "layers/operations/_depth.h"

static keel_status emit(keel_emit *e)
{
    const args_t *a = e->args;
    const bool first = a->data_format > 0; /* channels_first */
    const int64_t b = a->block_size;
    const keel_spec *in;
    KEEL_TRY(keel_emit_image(e, &in));
    const int64_t *dim = in->shape.dim;
    const int64_t h = dim[first] / b, w = dim[first + 1] / b, c = dim[first ? 0 : 2];
    if (dim[first] % b || dim[first + 1] % b)
        return keel_fail(KEEL_ESHAPE, "an image of %lld by %lld is not made of blocks of %lld",
                         (long long)dim[first], (long long)dim[first + 1], (long long)b);
    if (first)
        return emit_blocks(e, KEEL_SHAPE(c, h, b, w, b), (const int64_t[]){ 2, 4, 0, 1, 3 },
                           KEEL_SHAPE(b * b * c, h, w));
    return emit_blocks(e, KEEL_SHAPE(h, b, w, b, c), (const int64_t[]){ 0, 2, 1, 3, 4 },
                       KEEL_SHAPE(h, w, b * b * c));
}

KEEL_ARGS_OPERATION(ops_space_to_depth, "SpaceToDepth", "nn", 1,
                    "Blocks of an image as channels of a smaller one.", .whole = KEEL_WHOLE_KEPT)
