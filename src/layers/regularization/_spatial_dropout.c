/* See _spatial_dropout.h. */
#include "layers/regularization/_spatial_dropout.h"
#include "layers/regularization/dropout.h"
#include "ops/args.h"

keel_status keel_emit_spatial_dropout(keel_emit *e, int dims)
{
    const keel_spatial_dropout *a = e->args;
    const keel_shape *in = &keel_emit_in(e, 0)->shape;
    keel_dropout_args op = { .rate = a->rate, .noise = *in };
    char shape[96];
    KEEL_TRY(keel_emit_drawn(e, a->rate));
    keel_shape_text(shape, in);
    if (in->rank != dims + 1)
        return keel_fail(KEEL_ESHAPE, "expected rows of %d dims, got %s", dims + 1, shape);
    for (int d = 0; d < dims; d++) op.noise.dim[d] = 1;
    return keel_emit_one(e, &keel_op_dropout, &op);
}

keel_status keel_spatial_dropout_config(const void *args, json_t *config)
{
    (void)args;
    json_t *policy = json_object_get(json_object_get(config, "dtype"), "config");
    return json_object_set(config, "dtype", json_object_get(policy, "name"))
               ? keel_fail(KEEL_ENOMEM, "out of memory writing a layer")
               : KEEL_OK;
}
