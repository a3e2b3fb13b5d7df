/* What merging layers share: the masks of their inputs. */
#ifndef KEEL_LAYERS_MERGING_MERGE_H
#define KEEL_LAYERS_MERGING_MERGE_H
#include "layers/layer.h"

/* Set the output's mask: a place counts where it does in any input; none where an input has none.
 */
keel_status keel_emit_any_mask(keel_emit *e);

#endif
