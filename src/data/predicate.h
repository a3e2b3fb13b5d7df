/* A keel_filter asked of an element: what filter and take_while share. */
#ifndef KEEL_DATA_PREDICATE_H
#define KEEL_DATA_PREDICATE_H
#include "data/iter.h"
#include "data/stage.h"
#include "keel/pipeline.h"

/* The dataset of a stage whose args begin with a keel_filter. A caller's struct may be that of an
 * older header, which ends before `random`. */
keel_status keel_predicate_apply(keel_dataset **out, const keel_stage *stage, keel_dataset *d,
                                 const keel_filter *filter);

/* A window's `make`: *out is the element if it is to stay, or NULL. */
keel_status keel_predicate_make(keel_iter *it, keel_position at, keel_element *e,
                                keel_element **out, keel_scratch *scratch);

/* Of such a stage. */
bool keel_predicate_is_random(const keel_applied *s);
bool keel_predicate_is_sequential(const keel_applied *s);
void keel_predicate_release(void *args);

#endif
