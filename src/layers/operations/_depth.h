/* Blocks of an image as channels, and back. */
#ifndef KEEL_LAYERS_OPERATIONS_DEPTH_H
#define KEEL_LAYERS_OPERATIONS_DEPTH_H
#include "layers/operations/_values.h"

typedef struct args_t {
    int64_t block_size;
    int data_format;
} args_t;

static const keel_field fields[] = {
    KEEL_INT(args_t, block_size, NULL, 1, 1e6, "places of a block, in each dim"),
    KEEL_DATA_FORMAT(args_t),
    { 0 },
};

/* [.., a, b, c, d, e] with its dims in another order, as another shape. */
static inline keel_status emit_blocks(keel_emit *e, keel_shape parts, const int64_t from[5],
                                      keel_shape out)
{
    keel_value x;
    KEEL_TRY(keel_emit_view(e, &parts, e->in[0], &x));
    KEEL_TRY(keel_emit_permuted(e, from, x, &x));
    return keel_emit_view(e, &out, x, e->out);
}

#endif
