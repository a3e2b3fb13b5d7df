/* See _centred.h. */
#include "layers/operations/_centred.h"
#include <math.h>

keel_status keel_emit_centred(keel_emit *e, bool rms, keel_value *out)
{
    const keel_centred *a = e->args;
    const keel_shape in = keel_emit_in(e, 0)->shape;
    keel_layer_norm_args op = { .epsilon = isnan(a->epsilon) ? 1e-7 : a->epsilon, .rms = rms };
    keel_reduce_args over = { 0 };
    int64_t from[KEEL_RANK_MAX], back[KEEL_RANK_MAX];
    keel_value x;
    int n = 0;
    KEEL_TRY(keel_emit_not_whole(e, "Keras makes whole numbers of the result"));
    KEEL_TRY(keel_reduce_axes(e, &a->axis, &over));
    for (int pass = 0; pass < 2; pass++)
        for (int d = 0; d < in.rank; d++)
            if (over.over[d] == (pass == 1)) {
                op.dims += pass;
                back[d] = n;
                from[n++] = d;
            }
    KEEL_TRY(keel_emit_permuted(e, from, e->in[0], &x));
    KEEL_TRY(keel_emit_on(e, &keel_op_layer_norm, &op, &x, 1, &x));
    return keel_emit_permuted(e, back, x, out);
}

keel_status keel_factor_at(keel_emit *e, size_t place, const char *name,
                           const bool over[KEEL_RANK_MAX], keel_value *out)
{
    const keel_shape in = keel_emit_in(e, 0)->shape;
    const json_t *v = keel_argument(e, place, name);
    keel_shape as = { .rank = in.rank };
    keel_value x;
    int n = 0, k = 0;
    *out = -1;
    if (!v || json_is_null(v)) return KEEL_OK;
    for (int d = 0; over && d < in.rank; d++) n += over[d];
    if (!over || !json_is_array(v)) return keel_value_at(e, place, name, in.rank, out);
    KEEL_TRY(keel_emit_numbers(e, v, name, &x));
    const keel_shape s = *keel_value_shape(e, x);
    if (s.rank != n) return keel_value_at(e, place, name, in.rank, out);
    for (int d = 0; d < in.rank; d++) as.dim[d] = over[d] ? s.dim[k++] : 1;
    return keel_emit_view(e, &as, x, out);
}
