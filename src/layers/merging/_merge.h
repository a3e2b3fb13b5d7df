/* What merging layers share: the masks of their inputs, and broadcasting: rows with fewer dims get
 * dims of 1 before theirs, and dims of 1 are repeated. */
#ifndef KEEL_LAYERS_MERGING_MERGE_H
#define KEEL_LAYERS_MERGING_MERGE_H
#include "layers/layer.h"

/* Sets the output's mask: a place counts if it counts in any input. No mask if an input has none.
 */
keel_status keel_emit_any_mask(keel_emit *e);

/* Combines all inputs by an op of two values, from the left. */
keel_status keel_emit_merged(keel_emit *e, const keel_op *op, keel_value *out);
/* The same where places of inputs may be masked, which then do not take part, as in Keras: of a
 * product they are 1, or 0 where no input counts; of an op that has no such number, the values are
 * those of the other inputs. KEEL_EUNSUP: a mask has not one dim less than its input. */
keel_status keel_emit_merged_product(keel_emit *e);
keel_status keel_emit_merged_extreme(keel_emit *e, const keel_op *op);
keel_status keel_emit_sum(keel_emit *e, keel_value *out);

#endif
