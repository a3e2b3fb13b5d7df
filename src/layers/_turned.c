/* See _turned.h. */
#include "layers/_turned.h"
#include "ops/args.h"
#include <string.h>

KEEL_USES_OP(glu);
KEEL_USES_OP(log_softmax);
KEEL_USES_OP(softmax);
KEEL_USES_OP(sparsemax);

keel_status keel_emit_turned(keel_emit *e, int64_t axis, keel_status (*emit)(keel_emit *e))
{
    const keel_value *const given = e->in;
    const int rank = keel_emit_in(e, 0)->shape.rank;
    int64_t to[KEEL_RANK_MAX], back[KEEL_RANK_MAX];
    keel_value x;
    for (int d = 0; d < rank; d++) {
        to[d] = d + (d >= axis);
        back[d] = d - (d > axis);
    }
    to[rank - 1] = axis;
    back[axis] = rank - 1;
    KEEL_TRY(keel_emit_permuted(e, to, e->in[0], &x));
    e->in = &x;
    const keel_status s = emit(e);
    e->in = given;
    KEEL_TRY(s);
    if (keel_graph_spec(e->graph, e->out[0])->shape.rank != rank) return KEEL_OK;
    return keel_emit_permuted(e, back, e->out[0], e->out);
}

static const void *argument(const keel_layer *l, const keel_emit *e, const char *key,
                            keel_field_kind kind)
{
    for (const keel_field *f = l->type.fields; f && f->key; f++)
        if (f->kind == kind && !strcmp(f->key, key)) return (const char *)e->args + f->offset;
    return NULL;
}

/* Keras applies the activation to the channels first, too. */
static keel_status check_activation(const keel_layer *l, const keel_emit *e)
{
    static const keel_op *const over_last[] = { &keel_op_glu, &keel_op_log_softmax,
                                                &keel_op_softmax, &keel_op_sparsemax };
    const keel_object *o = argument(l, e, "activation", KEEL_FIELD_OBJECT);
    for (size_t i = 0; o && o->type && i < sizeof over_last / sizeof *over_last; i++)
        if (((const keel_activation *)o->type)->op == over_last[i])
            return keel_fail(KEEL_EUNSUP,
                             "activation %s with data_format channels_first, which is over the "
                             "last dim of the places: make it a layer of its own",
                             o->type->name);
    return KEEL_OK;
}

keel_status keel_layer_emit(const keel_layer *l, keel_emit *e)
{
    const int *format = l->operation ? NULL : argument(l, e, "data_format", KEEL_FIELD_CHOICE);
    if (!format || *format != 1 || e->n_in != 1 || keel_emit_in(e, 0)->shape.rank < 2)
        return l->emit(e);
    KEEL_TRY(check_activation(l, e));
    return keel_emit_turned(e, 0, l->emit);
}
