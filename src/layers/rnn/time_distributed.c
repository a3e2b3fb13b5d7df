/* Calls a layer on each step of [T, ...] separately, with the same weights, and joins the steps
 * again. A layer that uses the last dim only is called once. */
#include "base/memory.h"
#include "layers/layer.h"
#include "layers/operations/_values.h"
#include "ops/args.h"

enum { STEPS_MAX = 1024, NODES_MAX = 1 << 18 }; /* each step is a call; those inside multiply */

static const keel_field fields[] = {
    KEEL_IGNORE("layer", "the layer that is called on each step"),
    { 0 },
};

/* The output of step t, with a dim of 1 for it. What joins the steps is then held in its type: that
 * of an Embedding of whole numbers is another than theirs. */
static keel_status one_step(keel_emit *e, int64_t t, keel_dtype held, keel_value *out)
{
    keel_value x, y, mask = KEEL_MASK_NONE;
    e->graph->held = held;
    KEEL_TRY(keel_emit_place(e, e->in[0], t, &x));
    if (e->mask[0] >= 0) KEEL_TRY(keel_emit_place(e, e->mask[0], t, &mask));
    KEEL_TRY(e->sub(e, "layer", &x, &mask, 1, &y));
    const keel_shape *made = &keel_graph_spec(e->graph, y)->shape;
    if (made->rank >= KEEL_RANK_MAX)
        return keel_fail(KEEL_EUNSUP, "rows of more than %d dims", KEEL_RANK_MAX);
    const keel_shape as = keel_shape_with_one(*made, 0);
    e->graph->held = keel_graph_spec(e->graph, y)->dtype;
    return keel_emit_view(e, &as, y, out);
}

static keel_status emit(keel_emit *e)
{
    const keel_shape in = keel_emit_in(e, 0)->shape;
    const keel_layer *kind = e->sub_kind(e, "layer");
    const keel_axis_args along = { .axis = 0 };
    const keel_value none = KEEL_MASK_NONE;
    const keel_dtype held = e->graph->held;
    keel_status s = KEEL_OK;
    if (in.rank < 2)
        return keel_fail(KEEL_ESHAPE, "expected rows of (time, ...), at least two dims");
    if (e->mask[0] >= 0) {
        const keel_shape *mask = &keel_graph_spec(e->graph, e->mask[0])->shape;
        if (mask->rank < 1 || mask->dim[0] != in.dim[0])
            return keel_fail(KEEL_ESHAPE, "the mask must have the %lld steps of the rows",
                             (long long)in.dim[0]);
    }
    if (kind && kind->last_dim) return e->sub(e, "layer", e->in, &none, 1, e->out);
    if (e->graph->outline) {
        KEEL_TRY(one_step(e, 0, held, e->out));
        return keel_emit_repeated(e, e->out[0], 0, in.dim[0], e->out);
    }
    if (in.dim[0] > STEPS_MAX)
        return keel_fail(KEEL_EUNSUP, "%lld steps, more than the %d that can be called one by one",
                         (long long)in.dim[0], STEPS_MAX);
    keel_value *parts = keel_calloc((size_t)in.dim[0], sizeof *parts);
    if (!parts) return KEEL_ENOMEM;
    for (int64_t t = 0; t < in.dim[0] && s >= 0; t++) {
        s = one_step(e, t, held, &parts[t]);
        if (s >= 0 && e->graph->n_node > NODES_MAX)
            s = keel_fail(KEEL_EUNSUP, "more than %d ops in one model", NODES_MAX);
    }
    if (s >= 0) s = keel_emit_on(e, &keel_op_concatenate, &along, parts, (int)in.dim[0], e->out);
    keel_free(parts);
    return s;
}

const keel_layer keel_layer_time_distributed = {
    .type = { KEEL_LAYER_HEAD("TimeDistributed", "Calls a layer on each step of (time, ...)."),
              .fields = fields },
    .min_inputs = 1,
    .max_inputs = 1,
    .supports_masking = true,
    .mask_argument = true,
    .held = (const char *const[]){ "layer", NULL },
    .whole = KEEL_WHOLE_KEPT, /* until the layer says what it gives */
    .emit = emit,
};
