/* Streams of a stage that makes each of its elements from one of its parent's, by keel_stage.make:
 * several are made ahead, by any thread. */
#ifndef KEEL_DATA_EACH_H
#define KEEL_DATA_EACH_H
#include "data/stage.h"

enum { KEEL_EACH_ITER_SIZE = sizeof(void *) };

keel_status keel_each_begin(keel_iter *it);
keel_status keel_each_next(keel_iter *it, keel_element **out);
void keel_each_pass(keel_iter *it);
void keel_each_end(keel_iter *it);

/* All members of a stage that are for this. */
#define KEEL_EACH_STAGE                                                                            \
    .iter_size = KEEL_EACH_ITER_SIZE, .begin = keel_each_begin, .next = keel_each_next,            \
    .end = keel_each_end, .pass = keel_each_pass

#endif
