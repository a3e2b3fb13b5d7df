/* Normalised numbers times a scale and plus an offset: what the normalisations of keras.ops share.
 */
#ifndef KEEL_LAYERS_OPERATIONS_CENTRED_H
#define KEEL_LAYERS_OPERATIONS_CENTRED_H
#include "layers/operations/_values.h"

typedef struct keel_centred {
    keel_ints axis;
    double epsilon;
} keel_centred;

#define KEEL_CENTRED_FIELDS                                                                        \
    KEEL_INTS(keel_centred, axis, -1, "-1", -7, 7, "over which dims, the batch is 0"),             \
        KEEL_FLOAT(keel_centred, epsilon, "null", 0, 0, "null: 1e-7")

/* Input 0 normalised over the dims of the args. */
keel_status keel_emit_centred(keel_emit *e, bool rms, keel_value *out);
/* The argument of the call, if it is given, as a value beside input 0; *out -1: it is not. An array
 * with one dim for each of `over`, in their order, is spread along them; NULL: along the last. */
keel_status keel_factor_at(keel_emit *e, size_t place, const char *name,
                           const bool over[KEEL_RANK_MAX], keel_value *out);

#endif
