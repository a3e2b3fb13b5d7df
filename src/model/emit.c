/* Emitting: every call lets its layer add ops to a graph; the weights are there already, so what a
 * layer declares now must be what it declared when it was first called. */
#include "base/memory.h"
#include "model/parts.h"

typedef struct context {
    const keel_model *m;
    keel_model *maker; /* m where weights are made; NULL: they are there */
    int layer;
    int next; /* weight of the layer */
} context;

static keel_status use_weight(const context *c, const keel_weight_decl *d, int *index)
{
    const keel_model_layer *l = &c->m->layer[c->layer];
    char had[96], wants[96];
    if (c->next >= l->n_weight)
        return keel_fail(KEEL_ESHAPE, "asks for a weight '%s' that it did not have", d->name);
    const keel_model_weight *w = &c->m->weight[l->weight[c->next]];
    if (!keel_shape_equal(&w->info.spec.shape, &d->shape)) {
        keel_shape_text(had, &w->info.spec.shape);
        keel_shape_text(wants, &d->shape);
        return keel_fail(KEEL_ESHAPE, "%s has the shape %s, but these inputs want %s", d->name, had,
                         wants);
    }
    *index = l->weight[c->next];
    return KEEL_OK;
}

static keel_status weight(keel_emit *e, const keel_weight_decl *d, keel_variable *out,
                          keel_spec *spec)
{
    context *c = e->context;
    int index = -1;
    if (c->maker)
        KEEL_TRY(keel_model_new_weight(c->maker, c->layer, d, &index));
    else
        KEEL_TRY(use_weight(c, d, &index));
    c->next++;
    *out = index;
    *spec = (keel_spec){ .dtype = e->graph->real, .shape = d->shape };
    return KEEL_OK;
}

keel_status keel_model_emit_layer(const keel_model *m, keel_model *maker, int layer, keel_graph *g,
                                  const keel_value *in, int n_in, keel_value *out)
{
    const keel_model_layer *l = &m->layer[layer];
    context c = { .m = m, .maker = maker, .layer = layer };
    keel_status s = KEEL_OK;
    keel_value *held = keel_calloc((size_t)n_in, sizeof *held);
    if (!held) return KEEL_ENOMEM;
    g->layer = l->name;
    g->stream = (uint16_t)layer;
    g->held = l->mixed && g->real == KEEL_FLOAT32 ? KEEL_BFLOAT16 : g->real;
    for (int i = 0; i < n_in && s >= 0; i++) s = keel_graph_cast(g, in[i], g->held, &held[i]);
    keel_emit e = { .graph = g,
                    .args = l->args,
                    .name = l->name,
                    .training = g->training,
                    .trainable = l->trainable,
                    .n_in = n_in,
                    .in = held,
                    .out = -1,
                    .weight = weight,
                    .context = &c };
    if (s >= 0) s = l->kind->emit(&e);
    keel_free(held);
    g->layer = NULL;
    g->held = g->real;
    if (s < 0) return s == KEEL_ENOMEM ? s : keel_fail_within(s, "layer '%s'", l->name);
    *out = e.out;
    return s;
}

static keel_status emit_node(const keel_model *m, int k, keel_graph *g, keel_value *values)
{
    const keel_model_node *n = &m->node[k];
    keel_value *in = keel_calloc((size_t)n->n_in, sizeof *in);
    if (!in) return KEEL_ENOMEM;
    for (int i = 0; i < n->n_in; i++) in[i] = values[n->in[i]];
    const keel_status s = keel_model_emit_layer(m, NULL, n->layer, g, in, n->n_in, &values[k]);
    keel_free(in);
    return s;
}

keel_status keel_model_emit(const keel_model *m, keel_dtype real, bool training, keel_graph **graph,
                            keel_value *inputs, keel_value *outputs)
{
    keel_status s = KEEL_OK;
    keel_graph *g = NULL;
    keel_value *values = NULL;
    if (!m->finished || !m->n_output)
        return keel_fail(KEEL_EARG, "the model '%s' is not finished: %s", m->name,
                         m->sequential ? "add a layer" : "say its outputs (keel_model_outputs)");
    if ((s = keel_graph_create(&g, real, training)) < 0) goto out;
    values = keel_calloc((size_t)m->n_node, sizeof *values);
    if (!values) {
        s = KEEL_ENOMEM;
        goto out;
    }
    for (int k = 0; k < m->n_node; k++) values[k] = -1;
    for (int i = 0; i < m->n_input; i++) {
        keel_spec spec = m->node[m->input[i]].out;
        spec.dtype = real;
        if ((s = keel_graph_input(g, &spec, &values[m->input[i]])) < 0) goto out;
    }
    for (int k = 0; k < m->n_node; k++)
        if (m->layer[m->node[k].layer].kind->emit && (s = emit_node(m, k, g, values)) < 0) goto out;
    for (int i = 0; i < m->n_input; i++) inputs[i] = values[m->input[i]];
    for (int i = 0; i < m->n_output; i++) { /* whoever scores or reads them wants real numbers */
        g->layer = m->layer[m->node[m->output[i]].layer].name;
        s = keel_graph_cast(g, values[m->output[i]], real, &outputs[i]);
        g->layer = NULL;
        if (s < 0) goto out;
    }
    *graph = g;
    g = NULL;
out:
    keel_free(values);
    keel_graph_destroy(g);
    return s;
}
