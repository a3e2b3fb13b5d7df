/* A row set beside itself along its dims. */
#include "layers/operations/_operation.h"

#include "base/memory.h"

typedef struct args_t {
    keel_ints repeats;
} args_t;

static const keel_field fields[] = {
    KEEL_INTS(args_t, repeats, 0, NULL, 1, 1e6,
              "of each dim, the batch (1) first; of fewer, those of the last dims"),
    { 0 },
};

static keel_status emit(keel_emit *e)
{
    const args_t *a = e->args;
    const int rank = keel_emit_in(e, 0)->shape.rank;
    keel_value x = e->in[0];
    const int missing = rank + 1 - a->repeats.count; /* 1 for each of the first dims */
    if (missing < 0 || (missing == 0 && a->repeats.at[0] != 1))
        return keel_fail(KEEL_EUNSUP, "repeats: one for each of %d dims, 1 for the batch",
                         rank + 1);
    for (int d = 0; d < rank; d++) {
        const keel_axis_args along = { .axis = d };
        const int64_t n = d + 1 < missing ? 1 : a->repeats.at[d + 1 - missing];
        if (n == 1) continue;
        keel_value *parts = keel_calloc((size_t)n, sizeof *parts);
        if (!parts) return KEEL_ENOMEM;
        for (int64_t i = 0; i < n; i++) parts[i] = x;
        const keel_status s = keel_emit_on(e, &keel_op_concatenate, &along, parts, (int)n, &x);
        keel_free(parts);
        KEEL_TRY(s);
    }
    e->out[0] = x;
    return KEEL_OK;
}

KEEL_ARGS_OPERATION(ops_tile, "Tile", "numpy", 1, "A row set beside itself along its dims.",
                    .whole = KEEL_WHOLE_KEPT)
