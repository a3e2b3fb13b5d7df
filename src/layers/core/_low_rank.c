/* See low_rank.h. */
#include "layers/core/low_rank.h"
#include "base/memory.h"
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
    keel_shape shape = kernel->shape;
    const int64_t columns = shape.dim[shape.rank - 1];
    keel_object initializer = { 0 };
    char name[64];
    shape.dim[shape.rank - 1] = l->rank;
    snprintf(name, sizeof name, "lora_%s_%c", kernel->name, 'a' + k);
    KEEL_TRY(keel_object_default(&initializer, keel_initializer_find(k ? "zeros" : "he_uniform")));
    const keel_weight_decl decl = { .name = name,
                                    .shape = k ? KEEL_SHAPE(l->rank, columns) : shape,
                                    .initializer = &initializer,
                                    .regularizer = kernel->regularizer,
                                    .besides = true };
    const keel_status s = keel_emit_weight(e, &decl, w);
    keel_object_free(&initializer);
    return s;
}

keel_status keel_low_rank_declare(keel_emit *e, const keel_low_rank *l,
                                  const keel_weight_decl *kernel, int n_sums, keel_weights pair[2])
{
    int64_t sums = 1, width = l->rank;
    for (int d = 0; d + 1 < kernel->shape.rank; d++)
        if (!keel_mul_i64(d < n_sums ? sums : width, kernel->shape.dim[d],
                          d < n_sums ? &sums : &width))
            return keel_fail(KEEL_ESHAPE, "lora_rank %lld is too large", (long long)l->rank);
    for (int k = 0; k < 2; k++) KEEL_TRY(declare(e, l, kernel, k, &pair[k]));
    pair[0].spec[0].shape = KEEL_SHAPE(sums, width);
    return KEEL_OK;
}

/* Adds what counts of a product. */
static keel_status add(keel_emit *e, const keel_low_rank *l, keel_value product, keel_value *y)
{
    const keel_rescaling_args times = { .scale = keel_low_rank_scale(l) };
    keel_value sum[2] = { *y, product };
    if (times.scale != 1)
        KEEL_TRY(keel_emit_on(e, &keel_op_rescaling, &times, &sum[1], 1, &sum[1]));
    return keel_emit_on(e, &keel_op_add, NULL, sum, 2, y);
}

keel_status keel_low_rank_add(keel_emit *e, const keel_low_rank *l, const keel_op *op,
                              const keel_weights pair[2], keel_value x, keel_value *y)
{
    const bool more = pair[0].spec[0].shape.dim[1] > l->rank;
    KEEL_TRY(keel_emit_weighted(e, op, NULL, x, &pair[0], &x));
    keel_shape s = keel_graph_spec(e->graph, x)->shape;
    if (more && s.rank == KEEL_RANK_MAX)
        return keel_fail(KEEL_EUNSUP, "lora_rank with %d dims of a row", KEEL_RANK_MAX);
    if (more) {
        s.dim[s.rank - 1] /= l->rank;
        s.dim[s.rank++] = l->rank;
        KEEL_TRY(keel_emit_view(e, &s, x, &x));
    }
    KEEL_TRY(keel_emit_weighted(e, &keel_op_dense, NULL, x, &pair[1], &x));
    if (more) KEEL_TRY(keel_emit_view(e, &keel_graph_spec(e->graph, *y)->shape, x, &x));
    return add(e, l, x, y);
}

keel_status keel_low_rank_add_second(keel_emit *e, const keel_low_rank *l,
                                     const keel_weights pair[2], keel_value x, keel_value *y)
{
    KEEL_TRY(keel_emit_weighted(e, &keel_op_dense, NULL, x, &pair[1], &x));
    return add(e, l, x, y);
}

keel_status keel_low_rank_add_back(keel_emit *e, const keel_low_rank *l, const keel_weights pair[2],
                                   keel_value x, keel_value *y)
{
    for (int k = 1; k >= 0; k--)
        KEEL_TRY(keel_emit_weighted(e, &keel_op_dense_transposed, NULL, x, &pair[k], &x));
    return add(e, l, x, y);
}

keel_status keel_low_rank_config(const keel_low_rank *l, json_t *config)
{
    if (keel_low_rank_given(l)) return KEEL_OK;
    json_object_del(config, "lora_rank");
    json_object_del(config, "lora_alpha");
    return KEEL_OK;
}
