/* What merging layers share: the masks of their inputs, and broadcasting: rows of fewer dims have
 * dims of 1 before theirs, and what is 1 is used again and again. */
#ifndef KEEL_LAYERS_MERGING_MERGE_H
#define KEEL_LAYERS_MERGING_MERGE_H
#include "layers/layer.h"

/* Set the output's mask: a place counts where it does in any input; none where an input has none.
 */
keel_status keel_emit_any_mask(keel_emit *e);
/* For what Keras computes otherwise at places that do not count: refused where an input has a mask.
 */
keel_status keel_emit_unmasked(const keel_emit *e);

/* All inputs by an op of two values, from the left. */
keel_status keel_emit_merged(keel_emit *e, const keel_op *op, keel_value *out);
keel_status keel_emit_sum(keel_emit *e, keel_value *out);

#endif
