/* See dropout.h. */
#include "layers/regularization/dropout.h"

keel_status keel_noise_shape(const keel_emit *e, const keel_ints *given, keel_shape *out)
{
    const keel_shape *in = &keel_emit_in(e, 0)->shape;
    char shape[96];
    keel_shape_text(shape, in);
    if (given->count != in->rank + 1)
        return keel_fail(KEEL_ESHAPE, "noise_shape has %d dims, but the batch and rows of %s",
                         given->count, shape);
    if (given->at[0] != -1)
        return keel_fail(KEEL_EUNSUP,
                         "noise_shape: the batch must be null, every row draws by itself");
    out->rank = in->rank;
    for (int i = 0; i < in->rank; i++) {
        const int64_t d = given->at[i + 1];
        if (d != -1 && d != 1 && d != in->dim[i])
            return keel_fail(KEEL_ESHAPE, "noise_shape: dim %d is %lld, not 1 or that of %s", i + 1,
                             (long long)d, shape);
        out->dim[i] = d == -1 ? in->dim[i] : d;
    }
    return KEEL_OK;
}
