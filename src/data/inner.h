/* A dataset that is made while another is gone through, for one of its elements: what flat_map,
 * interleave and group_by_window share. */
#ifndef KEEL_DATA_INNER_H
#define KEEL_DATA_INNER_H
#include "data/iter.h"
#include "data/stage.h"

typedef struct keel_inner {
    keel_dataset *dataset;
    keel_iter *it; /* NULL: closed */
} keel_inner;

/* Replace *spec of an `infer` by that of the elements of such datasets, as `like` has them. */
keel_status keel_inner_spec(keel_data_spec *spec, const keel_dataset *like);

/* Begin to read `d`, which is taken, on failure too. Its random stages draw by the place `at` of
 * the element of `outer` that it was made for. KEEL_ESHAPE: it does not have the fields of outer;
 * KEEL_ECALLBACK: it is NULL. */
keel_status keel_inner_open(keel_inner *in, keel_iter *outer, keel_dataset *d,
                            const keel_position *at);
/* The next element, which does not depend on the inner dataset any more; KEEL_END. */
keel_status keel_inner_next(keel_inner *in, keel_iter *outer, keel_element **out);
void keel_inner_close(keel_inner *in); /* a closed one is allowed */

#endif
