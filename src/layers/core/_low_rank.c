/* See low_rank.h. */
#include "layers/core/low_rank.h"
#include "ops/args.h"
#include <math.h>
#include <stdio.h>
#include <string.h>

double keel_low_rank_scale(const keel_low_rank *l)
{
    if (!keel_low_rank_given(l)) return 0;
    return isnan(l->alpha) ? 1 : l->alpha / (double)l->rank;
}

/* The first (0) matrix or the second (1), as the only one of an op. */
static keel_status declare(keel_emit *e, const keel_low_rank *l, const keel_weight_decl *kernel,
                           int k, keel_weights *w)
{
    const int64_t *dim = kernel->shape.dim;
    keel_object initializer = { 0 };
    char name[64];
    snprintf(name, sizeof name, "lora_%s_%c", kernel->name, 'a' + k);
    KEEL_TRY(keel_object_default(&initializer, keel_initializer_find(k ? "zeros" : "he_uniform")));
    const keel_weight_decl decl = { .name = name,
                                    .shape = k ? KEEL_SHAPE(l->rank, dim[1])
                                               : KEEL_SHAPE(dim[0], l->rank),
                                    .initializer = &initializer,
                                    .regularizer = kernel->regularizer,
                                    .besides = true };
    const keel_status s = keel_emit_weight(e, &decl, w);
    keel_object_free(&initializer);
    return s;
}

keel_status keel_low_rank_add(keel_emit *e, const keel_low_rank *l, const keel_op *op,
                              const keel_weight_decl *kernel, keel_value *y)
{
    const keel_rescaling_args times = { .scale = keel_low_rank_scale(l) };
    keel_weights first = { 0 }, second = { 0 };
    keel_value x, sum[2] = { *y };
    KEEL_TRY(declare(e, l, kernel, 0, &first));
    KEEL_TRY(declare(e, l, kernel, 1, &second));
    KEEL_TRY(keel_emit_weighted(e, op, NULL, e->in[0], &first, &x));
    KEEL_TRY(keel_emit_weighted(e, &keel_op_dense, NULL, x, &second, &sum[1]));
    if (times.scale != 1)
        KEEL_TRY(keel_emit_on(e, &keel_op_rescaling, &times, &sum[1], 1, &sum[1]));
    return keel_emit_on(e, &keel_op_add, NULL, sum, 2, y);
}

keel_status keel_low_rank_config(const keel_low_rank *l, json_t *config)
{
    if (keel_low_rank_given(l)) return KEEL_OK;
    json_object_del(config, "lora_rank");
    json_object_del(config, "lora_alpha");
    return KEEL_OK;
}
