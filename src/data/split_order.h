/* The order in which Keras shuffles the files of a directory before a validation split: that of
 * numpy.random.RandomState(seed).shuffle. */
#ifndef KEEL_DATA_SPLIT_ORDER_H
#define KEEL_DATA_SPLIT_ORDER_H
#include "base/error.h"
#include <stdint.h>

typedef struct keel_split_order { /* shared by both parts */
    _Atomic int references;
    uint32_t at[]; /* [n] position -> index */
} keel_split_order;

/* KEEL_EARG: numpy takes no seed above 2^32 - 1; KEEL_EDATA: more than 2^32 - 1 rows. */
keel_status keel_split_order_create(keel_split_order **out, int64_t n, uint64_t seed);
keel_split_order *keel_split_order_share(keel_split_order *o); /* NULL: NULL */
void keel_split_order_release(keel_split_order *o);

#endif
