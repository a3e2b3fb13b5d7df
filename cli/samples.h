/* The first rows of a dataset, kept to be shown. */
#ifndef KEEL_CLI_SAMPLES_H
#define KEEL_CLI_SAMPLES_H
#include "picture.h"

typedef struct keel_sample {
    int64_t element;
    int64_t row, rows; /* its place in its batch, and the rows of that; rows 0: no batch */
    keel_tensor
        *field; /* as the fields of the dataset, without the dim of the batch; NULL: failed */
    char *why;  /* of a failure */
} keel_sample;

typedef struct keel_samples {
    const keel_dataset *data;
    keel_sample *sample;
    int64_t n;
    size_t n_bytes; /* of all values */
    int n_field;
} keel_samples;

/* Read the first `elements`, and of a batch the first `per_batch` rows. pass_over: an element that
 * fails is kept with its error, and not an error. Rows of more than 1 GiB together are refused.
 * What was read before an error is in *out; the caller frees it in any case. */
keel_status keel_samples_read(keel_samples *out, const keel_dataset *d, int64_t elements,
                              int64_t per_batch, bool pass_over, const keel_reader_options *r);
void keel_samples_free(keel_samples *s);

/* What field i looks like in all rows, and the range of its values if it is no table. */
keel_look keel_samples_look(const keel_samples *s, int i, keel_range *range);

/* "3: cats", "0 [5]: 7": the element, the row of a batch, and the first target, if it is a class or
 * a number. Safe to print. Returns out. */
const char *keel_sample_label(char *out, size_t size, const keel_samples *s,
                              const keel_sample *one);

/* The name of the class that a target says, by its number or by a one for it; NULL: none. */
const char *keel_sample_class(const keel_dataset *d, const keel_tensor *target);

#endif
