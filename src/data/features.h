/* Parses keel_dataset_options.features: "image=uint8(28,28,1)", "a=(None,3)", "a=string". */
#ifndef KEEL_DATA_FEATURES_H
#define KEEL_DATA_FEATURES_H
#include "keel/dataset.h"
#include <stdbool.h>

typedef struct keel_feature_type {
    bool typed, shaped;
    keel_dtype dtype;
    keel_shape shape; /* the first dim may be open */
} keel_feature_type;

/* The entry of a feature, or an empty one. KEEL_EARG: an entry cannot be understood. */
keel_status keel_feature_type_find(keel_feature_type *out, const keel_dataset_options *o,
                                   const char *feature);

/* Check all entries. KEEL_EARG: one cannot be understood, is there twice, or is of a feature that
 * `has` denies. */
keel_status keel_feature_types_check(const keel_dataset_options *o,
                                     bool (*has)(const void *arg, const char *feature),
                                     const void *arg, const char *what);

/* KEEL_EARG: there are entries, but the format of `what` has types and shapes of its own. */
keel_status keel_feature_types_refuse(const keel_dataset_options *o, const char *what);

#endif
