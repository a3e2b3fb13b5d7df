/* Layers that Keras does not cast the input of: it is not rounded to the policy's type, only the
 * result is. */
#ifndef KEEL_LAYERS_NORMALIZATION_UNROUNDED_H
#define KEEL_LAYERS_NORMALIZATION_UNROUNDED_H
#include "layers/layer.h"

/* `emit`, with the layer's one input and output, of a table with `uncast`: in that type. */
static inline keel_status emit_held_in(keel_emit *e, keel_dtype type,
                                       keel_status (*emit)(keel_emit *e))
{
    const keel_dtype held = e->graph->held;
    const keel_value *const in = e->in;
    keel_value x;
    e->graph->held = type;
    KEEL_TRY(keel_graph_cast(e->graph, in[0], type, &x));
    e->in = &x;
    const keel_status s = emit(e);
    e->in = in;
    e->graph->held = held;
    return s < 0 ? s : keel_graph_cast(e->graph, e->out[0], held, e->out);
}

/* In the type of the input, to which Keras rounds the result also where the policy's is wider. */
static inline keel_status emit_unrounded(keel_emit *e, keel_status (*emit)(keel_emit *e))
{
    const keel_dtype own = keel_emit_in(e, 0)->dtype;
    KEEL_TRY(keel_emit_not_whole(e, "Keras makes whole numbers of the result"));
    return emit_held_in(e, keel_dtype_is_narrow(own) ? own : e->graph->real, emit);
}

#endif
