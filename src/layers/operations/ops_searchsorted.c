/* The place at which each number would be put into an ascending list. */
#include "layers/operations/_against.h"

typedef struct args_t {
    int side;
} args_t;

static const keel_field fields[] = {
    KEEL_CHOICE(args_t, side, "\"left\"", "left|right", "of the equal ones in the list"),
    { 0 },
};

static keel_status emit(keel_emit *e)
{
    const keel_comparison is = ((const args_t *)e->args)->side ? KEEL_GREATER_EQUAL : KEEL_GREATER;
    return emit_against(e, 0, "sorted_sequence", is, KEEL_REDUCE_SUM, NULL, e->out);
}

KEEL_ARGS_OPERATION(ops_searchsorted, "SearchSorted", "numpy", 1,
                    "The place of each number in an ascending list.", .places = true,
                    .whole = KEEL_WHOLE_ALWAYS)
