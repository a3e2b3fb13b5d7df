/* What keras.ops.one_hot and multi_hot share. */
#ifndef KEEL_LAYERS_OPERATIONS_ONE_HOT_H
#define KEEL_LAYERS_OPERATIONS_ONE_HOT_H
#include "layers/operations/_operation.h"
#include "ops/one_hot.h"
#include <string.h>

typedef struct args_t {
    int64_t num_classes;
    int64_t axis;
    char *dtype;
    bool sparse;
} args_t;

static const keel_field fields[] = {
    KEEL_INT(args_t, num_classes, NULL, 1, 1e9, "how many places"),
    KEEL_INT(args_t, axis, "-1", -7, 7, "the new dim"),
    KEEL_STRING(args_t, dtype, "null", "float32 or null"),
    KEEL_BOOL(args_t, sparse, "false", "as a sparse tensor, of the same numbers"),
    { 0 },
};

/* A new dim of num_classes, which is the last before it is moved. */
static keel_status emit_one_hot(keel_emit *e, keel_value *out)
{
    const args_t *a = e->args;
    const keel_one_hot_args op = { .n = a->num_classes };
    const int last = keel_emit_in(e, 0)->shape.rank;
    int64_t place, from[KEEL_RANK_MAX];
    keel_value x;
    KEEL_TRY(keel_new_axis(e, a->axis, &place));
    if (a->dtype && strcmp(a->dtype, "float32"))
        return keel_fail(KEEL_EUNSUP, "dtype '%.40s' is not supported: float32 is", a->dtype);
    e->graph->held = e->graph->real; /* Keras makes float32, whatever type the places have */
    KEEL_TRY(keel_graph_cast(e->graph, e->in[0], e->graph->held, &x));
    KEEL_TRY(keel_emit_on(e, &keel_op_one_hot, &op, &x, 1, out));
    for (int d = 0; d <= last; d++) from[d] = d < place ? d : d == place ? last : d - 1;
    return place == last ? KEEL_OK : keel_emit_permuted(e, from, *out, out);
}

#endif
