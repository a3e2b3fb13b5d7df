/* The mean over axes, and the mean square of what is off it. */
#include "layers/operations/_moments.h"

typedef struct args_t {
    keel_ints axes;
    bool keepdims;
} args_t;

static const keel_field fields[] = {
    KEEL_INTS(args_t, axes, 0, NULL, -7, 7, "over which dims, the batch is 0"),
    KEEL_BOOL(args_t, keepdims, "false", "keep them as dims of 1"),
    KEEL_IGNORE("synchronized", "a row's moments are its own, on any number of devices"),
    { 0 },
};

static keel_status emit(keel_emit *e)
{
    const args_t *a = e->args;
    keel_value mean, var;
    KEEL_TRY(emit_moments(e, &a->axes, a->keepdims, &mean, &var));
    KEEL_TRY(keel_emit_outputs(e, 2));
    e->out[0] = mean;
    e->out[1] = var;
    return KEEL_OK;
}

KEEL_ARGS_OPERATION(ops_moments, "Moments", "nn", 1, "The mean and the variance over axes.")
