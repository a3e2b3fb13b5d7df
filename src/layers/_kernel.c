/* See _kernel.h. */
#include "layers/_kernel.h"

keel_weight_decl keel_kernel_decl(const keel_kernel_args *a, const keel_shape *shape, int lead)
{
    return (keel_weight_decl){ .name = "kernel",
                               .shape = *shape,
                               .initializer = &a->kernel_initializer,
                               .regularizer = &a->kernel_regularizer,
                               .constraint = &a->kernel_constraint,
                               .lead = lead };
}

keel_status keel_emit_kernel(keel_emit *e, const keel_kernel_args *a, const keel_shape *shape,
                             int lead, keel_weights *w)
{
    const keel_weight_decl kernel = keel_kernel_decl(a, shape, lead);
    return keel_emit_weight(e, &kernel, w);
}

keel_status keel_emit_bias(keel_emit *e, const keel_kernel_args *a, bool use,
                           const keel_shape *shape, keel_weights *w)
{
    const keel_weight_decl bias = { .name = "bias",
                                    .shape = *shape,
                                    .initializer = &a->bias_initializer,
                                    .regularizer = &a->bias_regularizer,
                                    .constraint = &a->bias_constraint };
    return use ? keel_emit_weight(e, &bias, w) : KEEL_OK;
}
