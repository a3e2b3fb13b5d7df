/* Features of tf.train.Example as fields of rows. */
#ifndef KEEL_DATA_FEATURE_ROWS_H
#define KEEL_DATA_FEATURE_ROWS_H
#include "data/records.h"
#include "io/example.h"

/* Kind, stored type and shape of a field, from its feature in the first record and from
 * options->features. KEEL_EARG, KEEL_EDATA: they do not go together, or bytes say nothing of their
 * type. */
keel_status keel_feature_learn(keel_record_field *f, const keel_feature *v,
                               const keel_dataset_options *o);

/* The feature has the kind of the first record's; *n gets the number of its values. The only byte
 * string of images and raw bytes is in *data. KEEL_EDATA. */
keel_status keel_feature_check(const keel_record_field *f, const keel_feature *v,
                               const unsigned char **data, size_t *n_bytes, int64_t *n);

/* The values of a list of numbers, in their stored type. */
keel_status keel_feature_unpack(const keel_feature *v, void *to);

/* Write a feature to a row that has room for `count`. Uses scratch buffers 1 to 3. */
keel_status keel_feature_put(const keel_record_field *f, const keel_photo *photo,
                             const keel_feature *v, void *to, keel_dtype want, int64_t count,
                             keel_scratch *scratch);

#endif
