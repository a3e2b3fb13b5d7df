/* Values that are not kept for backward, but made again before it reads them.
 *
 * A step needs the most memory where forward ends: there is everything that backward will read.
 * What an op without products has made (a batch normalisation with its relu, a gelu, a dropout, a
 * concatenation) is as large as what a convolution has made, but costs no more than to read its
 * input once more. So its node runs again in front of the first call of backward that reads the
 * value, from inputs that are kept for other reasons, or behind the node that makes such an input
 * from what is kept; and with the same random numbers: to the same bits.
 *
 * Of these values only those are made again without which the step would need less memory: the
 * largest at the place where most is kept, as often as that place gets smaller. Keras: RematScope;
 * Chen and others 2016, arXiv 1604.06174. */
#ifndef KEEL_GRAPH_RECOMPUTE_H
#define KEEL_GRAPH_RECOMPUTE_H
#include "graph/lives.h"

/* Chooses values of the schedule that `l` describes, and adds the instructions. `l` no longer fits
 * it then. */
keel_status keel_recompute(keel_schedule *s, const keel_lives *l);

#endif
