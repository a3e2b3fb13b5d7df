/* A value in parts along an axis: what keras.ops.split and its relatives share. */
#ifndef KEEL_LAYERS_OPERATIONS_SPLIT_H
#define KEEL_LAYERS_OPERATIONS_SPLIT_H
#include "layers/operations/_operation.h"

typedef struct args_t {
    json_t *indices_or_sections;
    int64_t axis; /* the batch is 0 */
} args_t;

#define KEEL_SPLIT_SECTIONS                                                                        \
    {                                                                                              \
        .key = "indices_or_sections", .kind = KEEL_FIELD_LIST,                                     \
        .offset = offsetof(args_t, indices_or_sections), .count = 1,                               \
        .help = "how many parts, or the places where parts begin"                                  \
    }

/* In n / parts places each; `uneven`: the first parts get those that are left over. */
static inline keel_status split_evenly(keel_emit *e, int64_t axis, int64_t parts, bool uneven)
{
    const int64_t n = keel_emit_in(e, 0)->shape.dim[axis];
    if (parts < 1 || parts > n || (n % parts && !uneven))
        return keel_fail(KEEL_ESHAPE, "a dim of %lld in %lld parts", (long long)n,
                         (long long)parts);
    KEEL_TRY(keel_emit_outputs(e, (int)parts));
    for (int64_t i = 0, at = 0; i < parts; i++) {
        const int64_t count = n / parts + (i < n % parts);
        KEEL_TRY(keel_emit_part(e, e->in[0], axis, at, count, &e->out[i]));
        at += count;
    }
    return KEEL_OK;
}

static inline keel_status emit_split(keel_emit *e, int64_t keras_axis, bool uneven)
{
    const json_t *at = ((const args_t *)e->args)->indices_or_sections;
    int64_t axis, begin = 0, end;
    KEEL_TRY(keel_row_axis(e, keras_axis, &axis));
    if (json_is_integer(at)) return split_evenly(e, axis, json_integer_value(at), uneven);
    const int64_t n = keel_emit_in(e, 0)->shape.dim[axis], cuts = (int64_t)json_array_size(at);
    if (!json_is_array(at) || cuts >= n)
        return keel_fail(KEEL_EUNSUP,
                         "indices_or_sections: a whole number, or fewer places than "
                         "the %lld of the axis",
                         (long long)n);
    KEEL_TRY(keel_emit_outputs(e, (int)cuts + 1));
    for (int64_t i = 0; i <= cuts; i++, begin = end) {
        end = i < cuts ? json_integer_value(json_array_get(at, (size_t)i)) : n;
        if (end <= begin || end > n)
            return keel_fail(KEEL_ESHAPE,
                             "indices_or_sections: part %lld would be of the places "
                             "from %lld to %lld, of %lld",
                             (long long)i, (long long)begin, (long long)end, (long long)n);
        KEEL_TRY(keel_emit_part(e, e->in[0], axis, begin, end - begin, &e->out[i]));
    }
    return KEEL_OK;
}

#define KEEL_SPLIT_OPERATION(stem, class_, axis_, uneven_, help_, ...)                             \
    static keel_status emit(keel_emit *e)                                                          \
    {                                                                                              \
        return emit_split(e, axis_, uneven_);                                                      \
    }                                                                                              \
    KEEL_ONE_INPUT_OPERATION(stem, class_, "numpy", args_t, help_, __VA_ARGS__)

#endif
