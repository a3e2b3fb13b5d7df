/* Elements that are being made ahead by the pool, given out in order. */
#ifndef KEEL_DATA_WINDOW_H
#define KEEL_DATA_WINDOW_H
#include "data/iter.h"

typedef struct keel_window keel_window;

/* Makes one element. Called by any thread, each with its own scratch; `in` is borrowed. */
typedef keel_status keel_make(keel_iter *it, keel_position at, keel_element *in, keel_element **out,
                              keel_scratch *scratch);
/* Gives the input of the next element; in order, by the caller's thread alone. KEEL_END: there is
 * none. *in may stay NULL. */
typedef keel_status keel_supply(keel_iter *it, keel_position *at, keel_element **in);

/* supply NULL: the elements of parent 0, numbered from 0. alone: one at a time, in order. */
keel_status keel_window_create(keel_window **out, keel_iter *it, keel_supply *supply,
                               keel_make *make, bool alone);
/* The next element. The failure of an element comes in its turn; the next call tries it again. */
keel_status keel_window_next(keel_window *w, keel_element **out);
/* Leave out the element whose failure was given last. false: it was a failure of the supply. */
bool keel_window_pass(keel_window *w);
/* Let go of what was made ahead: it is made again in its turn. */
void keel_window_let_go(keel_window *w);
void keel_window_destroy(keel_window *w); /* waits for what is being made; NULL is allowed */

#endif
