/* What a call of a layer makes: shapes and masks of its outputs, found by emitting the call alone.
 *
 * Layers know nothing of open dims (None): such a call is emitted twice, with two numbers in their
 * place. If several inputs do not fit then, an open dim may still be equal to that of another
 * input; the rows will show whether it is. */
#include "base/memory.h"
#include "model/parts.h"

/* With which numbers a call with open dims is tried. */
typedef struct trial {
    bool open;   /* there is an open dim */
    int64_t dim; /* the number that stands for an open dim */
    bool meets;  /* if another input has a number in that dim, use it instead */
} trial;

/* The mask of input i: the one that the caller gave, or else the one of the input itself. */
static bool mask_of(const keel_model *m, int layer, const keel_model_call_of *call, int i,
                    keel_spec *mask)
{
    const bool at_run = keel_model_mask_at_run(&m->layer[layer]);
    const keel_model_symbol *from = &m->symbol[call->in[i]];
    const bool given = i < call->n_mask && call->in[call->n_in + i] >= 0;
    *mask = given ? m->symbol[call->in[call->n_in + i]].spec : from->mask;
    return given || (from->masked && !(from->taken && at_run));
}

/* The number that another input has in the dim opposite to dim d of rows of rank `rank`, counted
 * from the last; 0: none has one. */
static int64_t beside(const keel_model *m, const keel_model_call_of *call, int rank, int d)
{
    for (int i = 0; i < call->n_in; i++) {
        const keel_shape *s = &m->symbol[call->in[i]].spec.shape;
        const int at = s->rank - rank + d;
        if (at >= 0 && s->dim[at] > 1) return s->dim[at];
    }
    return 0;
}

/* Numbers for the open dims of an input or mask: `dim` or, if inputs meet, the number of the other
 * input. */
static keel_shape closed_for(const keel_model *m, const keel_model_call_of *call,
                             const keel_shape *s, trial t)
{
    keel_shape out = keel_shape_closed(s, t.dim);
    for (int d = 0; t.meets && d < s->rank; d++)
        if (s->dim[d] == KEEL_DIM_OPEN && beside(m, call, s->rank, d))
            out.dim[d] = beside(m, call, s->rank, d);
    return out;
}

/* Emits the call alone, on inputs and masks of its inputs' shapes, with numbers for open dims.
 * *out: its outputs, which the caller frees. maker (m itself): makes the weights; NULL: they exist.
 */
static keel_status try_call(keel_model *m, keel_model *maker, int layer,
                            const keel_model_call_of *call, trial t, keel_model_symbol **out,
                            int *n_out)
{
    const keel_symbol *in = call->in;
    const int n_in = call->n_in;
    keel_status s = KEEL_OK;
    keel_graph *g = NULL;
    keel_value *values = NULL;
    keel_model_symbol *made = NULL;
    keel_emit e = { .n_in = n_in };
    if ((s = keel_graph_create(&g, m->dtype, false)) < 0) goto out;
    g->batch = keel_model_batch(m);
    g->outline = t.open;
    values = keel_calloc(2 * (size_t)n_in, sizeof *values);
    if (!values) {
        s = KEEL_ENOMEM;
        goto out;
    }
    for (int i = 0; i < n_in; i++) {
        keel_spec mask, spec = m->symbol[in[i]].spec;
        if (spec.dtype != KEEL_STRING)
            spec.dtype = m->dtype; /* in the type that is fed if nothing else is asked for */
        spec.shape = closed_for(m, call, &spec.shape, t);
        values[n_in + i] = KEEL_MASK_NONE;
        if ((s = keel_graph_input(g, &spec, &values[i])) < 0) goto out;
        if (!mask_of(m, layer, call, i, &mask)) continue;
        mask.shape = closed_for(m, call, &mask.shape, t);
        if ((s = keel_graph_input(g, &mask, &values[n_in + i])) < 0) goto out;
    }
    e.graph = g;
    e.in = values;
    e.mask = values + n_in;
    e.call = call->call;
    if ((s = keel_model_emit_layer(m, maker, layer, &e, NULL)) < 0) goto out;
    if (!(made = keel_calloc((size_t)e.n_out, sizeof *made))) {
        s = KEEL_ENOMEM;
        goto out;
    }
    for (int i = 0; i < e.n_out; i++) {
        made[i].spec = *keel_graph_spec(g, e.out[i]);
        made[i].masked = e.out_mask[i] >= 0;
        if (made[i].masked) made[i].mask = *keel_graph_spec(g, e.out_mask[i]);
        made[i].mask.dtype = m->dtype;
        if (made[i].spec.dtype != KEEL_STRING)
            made[i].spec.dtype = m->dtype; /* the policy decides the type they are stored in */
    }
    *out = made;
    *n_out = e.n_out;
out:
    keel_free(values);
    keel_free(e.out);
    keel_free(e.out_mask);
    keel_graph_destroy(g);
    return s;
}

/* The numbers for open dims when a call is tried: numbers with many divisors, for layers that split
 * dims, and larger than any window. */
static const int64_t tried[2] = { 40320, 80640 };

static bool is_open(const keel_model *m, const keel_model_call_of *call)
{
    bool open = false;
    for (int i = 0; i < call->n_in + call->n_mask; i++) {
        if (call->in[i] < 0) continue; /* no mask */
        const keel_model_symbol *from = &m->symbol[call->in[i]];
        open = open || keel_shape_is_open(&from->spec.shape) ||
               (from->masked && keel_shape_is_open(&from->mask.shape));
    }
    return open;
}

/* A dim is open if it differs between the two trials. */
static bool open_differing(keel_shape *a, const keel_shape *b)
{
    if (a->rank != b->rank) return false;
    for (int i = 0; i < a->rank; i++)
        if (a->dim[i] != b->dim[i]) a->dim[i] = KEEL_DIM_OPEN;
    return true;
}

/* The error for a layer whose call succeeds with one number for the open dims and fails with
 * another, mostly because its weights would depend on them. */
static keel_status needs_fixed(const keel_model *m, int layer, const keel_model_call_of *call)
{
    const keel_model_layer *l = &m->layer[layer];
    char shape[96];
    keel_shape_text(shape, &m->symbol[call->in[0]].spec.shape);
    return keel_fail(KEEL_ESHAPE,
                     "layer '%s': %s would depend on a dim that is open (None) in its input, rows "
                     "of %s: give that dim of the Input a number, or pool over it before",
                     l->name, l->n_weight ? "the shape of its weights" : "what it does", shape);
}

/* Where an open dim meets a number, Keras's layers have None in the output, and its operations the
 * number. */
static void open_where_met(const keel_model *m, const keel_model_call_of *call, keel_shape *out)
{
    for (int i = 0; i < call->n_in; i++) {
        const keel_shape *s = &m->symbol[call->in[i]].spec.shape;
        for (int d = 0; d < s->rank; d++)
            if (s->dim[d] == KEEL_DIM_OPEN && out->rank - s->rank + d >= 0)
                out->dim[out->rank - s->rank + d] = KEEL_DIM_OPEN;
    }
}

keel_status keel_model_infer_call(keel_model *m, int layer, const keel_model_call_of *call,
                                  keel_model_symbol **out, int *n_out)
{
    keel_status s = KEEL_OK;
    keel_model *maker = m->layer[layer].n_node == 0 ? m : NULL;
    keel_model_symbol *made = NULL, *second = NULL;
    int n = 0, n_second = 0;
    const bool open = is_open(m, call);
    trial t = { .open = open, .dim = tried[0] };
    s = try_call(m, maker, layer, call, t, &made, &n);
    if (s == KEEL_ESHAPE && open && call->n_in > 1 && m->layer[layer].n_weight == 0) {
        t.meets = true;
        s = try_call(m, maker, layer, call, t, &made, &n);
    }
    if (s < 0) {
        if (open && s == KEEL_ESHAPE)
            s = keel_fail_within(s, "with %lld for open dims (None)", (long long)tried[0]);
        goto out;
    }
    t.dim = tried[1];
    if (open && (s = try_call(m, NULL, layer, call, t, &second, &n_second)) < 0) {
        if (s == KEEL_ESHAPE) s = needs_fixed(m, layer, call);
        goto out;
    }
    for (int i = 0; open && i < n; i++)
        if (n != n_second || made[i].masked != second[i].masked ||
            !open_differing(&made[i].spec.shape, &second[i].spec.shape) ||
            !open_differing(&made[i].mask.shape, &second[i].mask.shape)) {
            s = needs_fixed(m, layer, call);
            goto out;
        }
    for (int i = 0; t.meets && !m->layer[layer].kind->operation && i < n; i++)
        open_where_met(m, call, &made[i].spec.shape);
    *out = made;
    *n_out = n;
    made = NULL;
out:
    keel_free(made);
    keel_free(second);
    return s;
}
