/* See _pool2d.h. */
#include "layers/pooling/_pool2d.h"
#include "ops/args.h"

keel_status keel_emit_pool2d(keel_emit *e, const keel_op *op)
{
    const keel_pool2d *a = e->args;
    const keel_ints *strides = a->strides.count < 0 ? &a->pool_size : &a->strides;
    const keel_spec *in;
    KEEL_TRY(keel_channels_last(a->data_format));
    KEEL_TRY(keel_emit_image(e, &in));
    keel_pool2d_args args = { .pool = { a->pool_size.at[0], a->pool_size.at[1] },
                              .strides = { strides->at[0], strides->at[1] } };
    keel_same_padding(&in->shape, a->padding == 1, &a->pool_size, strides, NULL, args.pad);
    return keel_emit_one(e, op, &args);
}
