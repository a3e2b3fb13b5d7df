/* Rows that become a batch. */
#ifndef KEEL_DATA_COLLECT_H
#define KEEL_DATA_COLLECT_H
#include "data/iter.h"

typedef struct keel_collect {
    keel_element **at; /* [n] */
    int64_t n, room;
} keel_collect;

keel_status keel_collect_add(keel_collect *c, keel_element *e); /* takes e, on failure too */
/* One element of all rows, which are let go: field i has the number of rows first, then the largest
 * of each open dim; shorter rows are padded with 0 or empty texts.
 */
keel_status keel_collect_batch(keel_collect *c, keel_iter *it, keel_element **out);
/* The same where field i becomes shape[i], whose open dims are the largest, and is padded with the
 * element at value[i], of the type of the field; NULL: with 0. KEEL_ESHAPE: a row is larger. */
keel_status keel_collect_padded(keel_collect *c, keel_iter *it, const keel_shape *shape,
                                const void *const *value, keel_element **out);
void keel_collect_clear(keel_collect *c);
void keel_collect_free(keel_collect *c);

#endif
