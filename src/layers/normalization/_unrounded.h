/* Layers that Keras does not cast the input of: it is not rounded to the policy's type, only the
 * result is. */
#ifndef KEEL_LAYERS_NORMALIZATION_UNROUNDED_H
#define KEEL_LAYERS_NORMALIZATION_UNROUNDED_H
#include "layers/layer.h"

/* `emit`, with the layer's one input and output, of a table with `uncast`. */
static inline keel_status emit_unrounded(keel_emit *e, keel_status (*emit)(keel_emit *e))
{
    const keel_dtype held = e->graph->held;
    const keel_value *const in = e->in;
    keel_value x;
    if (keel_emit_is_whole(e, 0))
        return keel_fail(KEEL_EUNSUP,
                         "its input is of whole numbers, and Keras makes whole numbers "
                         "of the result: cast it to float32 before");
    if (!keel_dtype_is_narrow(keel_emit_in(e, 0)->dtype)) e->graph->held = e->graph->real;
    KEEL_TRY(keel_graph_cast(e->graph, in[0], e->graph->held, &x));
    e->in = &x;
    const keel_status s = emit(e);
    e->in = in;
    e->graph->held = held;
    return s < 0 ? s : keel_graph_cast(e->graph, e->out[0], held, e->out);
}

#endif
