/* A field as a file or program has it: type, byte order, order of dims. Converts rows of it to what
 * the feed wants, and checks labels and weights, for sources that do not hold their rows in memory.
 */
#ifndef KEEL_DATA_STORED_H
#define KEEL_DATA_STORED_H
#include "data/source.h"
#include "io/npy.h"

typedef struct keel_stored {
    keel_npy_header type;  /* only the members about one element */
    int64_t count;         /* elements of a stored row */
    size_t n_bytes;        /* of a stored row */
    bool turned;           /* [C, H, W] is stored, [H, W, C] is given */
    keel_data_field field; /* as it is given; its strings are borrowed */
    bool is_class;         /* a whole number from 0, below `classes` */
    bool one_hot, binary;
    int64_t classes;
} keel_stored;

/* A field of stored rows of `shape`. `turn`: give [C, H, W] as [H, W, C]. Labels of one number
 * become what the options say for target `choice` (-1: of no list). KEEL_EUNSUP: texts, or classes
 * to be one-hot without their number; KEEL_ESHAPE. */
keel_status keel_stored_init(keel_stored *out, const keel_data_field *field,
                             const keel_npy_header *type, bool turn, const keel_dataset_options *o,
                             int choice, const char *what);

/* The bytes of that buffer that converting a row takes. */
int64_t keel_stored_needs(const keel_stored *f, keel_dtype want, bool aligned);

/* Convert n stored rows, which may be unaligned; the first is row `first` of `what` in messages.
 * Uses buffer 3 of the scratch. KEEL_EDATA: a label is not a class, a weight is negative, or
 * a value does not fit. */
keel_status keel_stored_write(const keel_stored *f, void *to, keel_dtype want, const void *from,
                              int64_t n, int64_t first, keel_scratch *s, const char *what);

#endif
