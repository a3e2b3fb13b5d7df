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

keel_status keel_low_rank_weights(keel_emit *e, const keel_low_rank *l, const char *name,
                                  int64_t rows, int64_t columns, const keel_object *regularizer,
                                  keel_variable w[2], keel_spec spec[2])
{
    static const char *const begin[2] = { "he_uniform", "zeros" };
    const keel_shape shape[2] = { KEEL_SHAPE(rows, l->rank), KEEL_SHAPE(l->rank, columns) };
    for (int k = 0; k < 2; k++) {
        char own[64];
        keel_object initializer = { 0 };
        snprintf(own, sizeof own, "lora_%s_%c", name, 'a' + k);
        KEEL_TRY(keel_object_default(&initializer, keel_initializer_find(begin[k])));
        const keel_weight_decl decl = { .name = own,
                                        .shape = shape[k],
                                        .initializer = &initializer,
                                        .regularizer = regularizer,
                                        .besides = true };
        const keel_status s = e->weight(e, &decl, &w[k], &spec[k]);
        keel_object_free(&initializer);
        KEEL_TRY(s);
    }
    return KEEL_OK;
}

keel_status keel_low_rank_add(keel_emit *e, const keel_low_rank *l, keel_value x, keel_variable b,
                              const keel_spec *spec, keel_value y, keel_value *out)
{
    const keel_rescaling_args times = { .scale = keel_low_rank_scale(l) };
    const keel_node_parts product = {
        .op = &keel_op_dense, .n_in = 1, .in = &x, .n_weight = 1, .weight = &b, .weight_spec = spec
    };
    keel_value sum[2] = { y };
    KEEL_TRY(keel_emit_op(e, &product, &sum[1]));
    if (times.scale != 1)
        KEEL_TRY(keel_emit_on(e, &keel_op_rescaling, &times, &sum[1], 1, &sum[1]));
    return keel_emit_on(e, &keel_op_add, NULL, sum, 2, out);
}

keel_status keel_low_rank_config(const keel_low_rank *l, json_t *config)
{
    if (keel_low_rank_given(l)) return KEEL_OK;
    json_object_del(config, "lora_rank");
    json_object_del(config, "lora_alpha");
    return KEEL_OK;
}
