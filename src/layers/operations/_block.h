/* Where a block of places begins in a value: start_indices of keras.ops.slice and slice_update. */
#ifndef KEEL_LAYERS_OPERATIONS_BLOCK_H
#define KEEL_LAYERS_OPERATIONS_BLOCK_H
#include "layers/operations/_values.h"

/* For a block with `size` places of each dim of a row. */
static inline keel_status block_begin(const keel_emit *e, const keel_shape *size,
                                      int64_t begin[KEEL_RANK_MAX])
{
    const keel_shape *in = &keel_emit_in(e, 0)->shape;
    const json_t *list = keel_argument(e, 1, "start_indices");
    if (json_array_size(list) != (size_t)in->rank + 1 || size->rank != in->rank)
        return keel_fail(KEEL_EUNSUP,
                         "start_indices: %d whole numbers are supported, one for each "
                         "dim with the batch",
                         in->rank + 1);
    for (int d = -1; d < in->rank; d++) {
        const json_t *v = json_array_get(list, (size_t)(d + 1));
        const int64_t at = json_is_number(v) ? (int64_t)json_number_value(v) : -1;
        if (d < 0 && at != 0)
            return keel_fail(KEEL_EUNSUP, "start_indices: the batch must be taken from 0");
        if (d < 0) continue;
        if (at < 0 || size->dim[d] < 1 || at > in->dim[d] - size->dim[d])
            return keel_fail(KEEL_ESHAPE, "dim %d: %lld places from %lld on are not in %lld", d + 1,
                             (long long)size->dim[d], (long long)at, (long long)in->dim[d]);
        begin[d] = at;
    }
    return KEEL_OK;
}

#endif
