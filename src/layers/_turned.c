/* See _turned.h. */
#include "layers/_turned.h"
#include "ops/args.h"
#include <string.h>

KEEL_USES_OP(glu);
KEEL_USES_OP(log_softmax);
KEEL_USES_OP(softmax);
KEEL_USES_OP(sparsemax);

keel_status keel_emit_moved(keel_emit *e, int64_t from, int64_t to, keel_value x, keel_value *out)
{
    const int rank = keel_graph_spec(e->graph, x)->shape.rank;
    int64_t dims[KEEL_RANK_MAX];
    for (int64_t d = 0; d < rank; d++)
        dims[d] = d == to ? from : d + (d >= from && d < to) - (d > to && d <= from);
    return keel_emit_permuted(e, dims, x, out);
}

keel_status keel_emit_turned(keel_emit *e, int64_t axis, keel_status (*emit)(keel_emit *e))
{
    const keel_value *const given = e->in;
    const int rank = keel_emit_in(e, 0)->shape.rank;
    keel_value x;
    KEEL_TRY(keel_emit_moved(e, axis, rank - 1, e->in[0], &x));
    e->in = &x;
    const keel_status s = emit(e);
    e->in = given;
    KEEL_TRY(s);
    if (keel_graph_spec(e->graph, e->out[0])->shape.rank != rank) return KEEL_OK;
    return keel_emit_moved(e, rank - 1, axis, e->out[0], e->out);
}

static const void *argument(const keel_layer *l, const keel_emit *e, const char *key,
                            keel_field_kind kind)
{
    for (const keel_field *f = l->type.fields; f && f->key; f++)
        if (f->kind == kind && !strcmp(f->key, key)) return (const char *)e->args + f->offset;
    return NULL;
}

/* Keras applies the activation to the channels first, too. */
static keel_status check_activation(const keel_layer *l, const keel_emit *e, const char *key)
{
    static const keel_op *const over_last[] = { &keel_op_glu, &keel_op_log_softmax,
                                                &keel_op_softmax, &keel_op_sparsemax };
    const keel_object *o = argument(l, e, key, KEEL_FIELD_OBJECT);
    for (size_t i = 0; o && o->type && i < sizeof over_last / sizeof *over_last; i++)
        if (((const keel_activation *)o->type)->op == over_last[i])
            return keel_fail(KEEL_EUNSUP,
                             "%s %s with data_format channels_first, which is over the "
                             "last dim of the places: make it a layer of its own",
                             key, o->type->name);
    return KEEL_OK;
}

keel_status keel_layer_emit(const keel_layer *l, keel_emit *e)
{
    const int *format = l->operation ? NULL : argument(l, e, "data_format", KEEL_FIELD_CHOICE);
    if (!format || *format != 1 || keel_emit_in(e, 0)->shape.rank < 2 ||
        (e->n_in != 1 && !l->takes_states))
        return l->emit(e);
    KEEL_TRY(check_activation(l, e, "activation"));
    KEEL_TRY(check_activation(l, e, "recurrent_activation"));
    if (l->takes_states) return l->emit(e);
    return keel_emit_turned(e, 0, l->emit);
}
