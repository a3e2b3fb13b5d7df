/* Layers whose channels are not the last dim of a row: the same layers with channels last, between
 * two permutations. Ops and their kernels know channels last only. */
#ifndef KEEL_LAYERS_TURNED_H
#define KEEL_LAYERS_TURNED_H
#include "layers/layer.h"

/* x with its dim `from` at `to`; the dims between them move by one. */
keel_status keel_emit_moved(keel_emit *e, int64_t from, int64_t to, keel_value x, keel_value *out);
/* Emits by `emit` with dim `axis` of the input's rows as the last one, and puts the last dim of the
 * output there, if it has as many dims. For a layer with one input and one output. */
keel_status keel_emit_turned(keel_emit *e, int64_t axis, keel_status (*emit)(keel_emit *e));
/* Emits the layer, turned if its data_format is channels_first. A layer with states turns its
 * inputs and outputs itself. */
keel_status keel_layer_emit(const keel_layer *l, keel_emit *e);

#endif
