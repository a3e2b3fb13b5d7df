/* What RandAugment and AugMix share: eleven changes of images of one strength, one of which is
 * drawn for each row. Keras draws it once for a batch. */
#ifndef KEEL_LAYERS_PREPROCESSING_POLICY_H
#define KEEL_LAYERS_PREPROCESSING_POLICY_H
#include "layers/preprocessing/_random.h"
#include "ops/one_of.h"

typedef struct keel_policy_args { /* first in the arguments of both */
    keel_reals factor, value_range;
    keel_range strength, values;
    int interpolation, data_format;
} keel_policy_args;

#define KEEL_POLICY_FIELDS(dflt_factor)                                                            \
    KEEL_FACTOR(keel_policy_args, factor, dflt_factor, "strength: f for [0, f], or a pair"),       \
        KEEL_VALUE_RANGE(keel_policy_args, value_range),                                           \
        KEEL_CHOICE(keel_policy_args, interpolation, "\"bilinear\"", "bilinear|nearest",           \
                    "between pixels"),                                                             \
        KEEL_IGNORE("seed", "the seed of the run decides"), KEEL_DATA_FORMAT(keel_policy_args)

/* Their keel_type.ready. */
keel_status keel_policy_ready(void *args);

/* The draws of a choice are numbers `which`, and `first` to before first + KEEL_POLICY_DRAWS. */
enum { KEEL_POLICY_DRAWS = 48 };
typedef struct keel_policy_draws {
    uint32_t which, first;
} keel_policy_draws;

/* Sends images through one of the changes, in training. all: also through those of brightness,
 * colour, contrast and sharpness; may_stay: or through none. */
keel_status keel_emit_policy(keel_emit *e, const keel_policy_args *a, keel_policy_draws draws,
                             bool all, bool may_stay, keel_value in, keel_value *out);
/* Whether input 0 has images that it can take. */
keel_status keel_policy_check(const keel_emit *e, bool all);

#endif
