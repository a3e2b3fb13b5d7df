/* tf.train.Example, the record that TensorFlow's data files mostly have: named features, each a
 * list of byte strings, of float32 or of int64, as a protocol buffer:
 *
 *   Example { Features = 1 }   Features { map<string, Feature> = 1 }
 *   Feature { oneof BytesList = 1, FloatList = 2, Int64List = 3 }   each list { repeated value = 1
 * }
 *
 * Numbers may be packed or not. The parser reads only this message: fields with other numbers or
 * types, and a feature, list or name that is there twice, are refused. SequenceExample is refused
 * by name. It allocates nothing, and values stay where they are in the record. Source:
 * tensorflow/core/example/feature.proto; protobuf.dev/programming-guides/encoding. */
#ifndef KEEL_IO_EXAMPLE_H
#define KEEL_IO_EXAMPLE_H
#include "base/error.h"
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef enum keel_feature_kind {
    KEEL_FEATURE_MISSING, /* not in the record, or without a list */
    KEEL_FEATURE_BYTES,
    KEEL_FEATURE_FLOAT,
    KEEL_FEATURE_INT64
} keel_feature_kind;

typedef struct keel_feature {
    keel_feature_kind kind;
    int64_t count; /* values */
    /* The list as it is stored. */
    const unsigned char *list;
    size_t n_bytes;
} keel_feature;

/* out[i]: the feature of names[i] in a record; other features are passed over. KEEL_EFORMAT: not an
 * Example; KEEL_EUNSUP: a SequenceExample. */
keel_status keel_example_find(keel_feature *out, const char *const *names, int n, const void *data,
                              size_t n_bytes);

/* Call `each` for every feature of a record, with its name, which is not zero-terminated. A failure
 * or KEEL_END ends it. */
typedef keel_status (*keel_feature_each)(void *arg, const char *name, size_t n_name,
                                         const keel_feature *f);
keel_status keel_example_each(const void *data, size_t n_bytes, keel_feature_each each, void *arg);

/* Write the `count` values of a feature of that kind. KEEL_EFORMAT: a number is longer than 10
 * bytes. */
keel_status keel_feature_int64(const keel_feature *f, int64_t *out);
void keel_feature_float(const keel_feature *f, float *out);
/* The byte strings one after another: *at begins with 0; false: there are no more. */
bool keel_feature_bytes(const keel_feature *f, size_t *at, const unsigned char **data, size_t *n);

const char *keel_feature_kind_name(keel_feature_kind kind); /* "int64_list" */

#endif
