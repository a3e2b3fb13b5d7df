/* Emitting: each call lets its layer add ops to a graph. The weights exist already, so a layer must
 * declare the same weights as when it was first called. A layer that is a model emits the calls
 * inside it; a layer that holds or makes layers calls them itself. */
#include "layers/_turned.h"
#include "base/memory.h"
#include "base/plural.h"
#include "model/parts.h"
#include <limits.h>
#include <string.h>

typedef struct context {
    const keel_model *m;
    keel_model *maker; /* m if weights are made; NULL: they exist */
    int layer;
    int next;     /* weight of the layer */
    uint64_t met; /* of the layers it holds: those called before, whose weights exist */
    keel_model_chances *chances;
} context;

static keel_status use_weight(const context *c, const keel_weight_decl *d, int *index)
{
    const keel_model_layer *l = &c->m->layer[c->layer];
    char had[96], wants[96];
    if (c->chances && c->chances->alone)
        return keel_fail(KEEL_EUNSUP, "has weights: it belongs to a model, which the step calls");
    if (c->next >= l->n_weight)
        return keel_fail(KEEL_ESHAPE, "asks for a weight '%s' that it did not have", d->name);
    const keel_model_weight *w = &keel_model_outermost(c->m)->weight[l->weight[c->next]];
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
    *out = e->graph->first_weight + index;
    *spec = (keel_spec){ .dtype = e->graph->real, .shape = d->shape };
    return KEEL_OK;
}

/* The index of the held or made layer with that key; -1: none. */
static int held_index(const context *c, const char *key)
{
    const keel_model *held = c->m->layer[c->layer].inner;
    for (int k = 0; held && k < held->n_layer; k++)
        if (!strcmp(held->layer[k].key, key)) return k;
    return -1;
}

static keel_status make(keel_emit *e, const char *key, const char *class_name, json_t *config)
{
    const context *c = e->context;
    return keel_model_make_held(c->maker, c->layer, key, class_name, config);
}

static const keel_layer *sub_kind(const keel_emit *e, const char *key)
{
    const context *c = e->context;
    const int k = held_index(c, key);
    const keel_model_layer *l = k < 0 ? NULL : &c->m->layer[c->layer].inner->layer[k];
    return l && !keel_model_layer_is_model(l) ? l->kind : NULL;
}

static void held_weight(const keel_emit *e, const char *key, const char **name, keel_variable *out,
                        keel_spec *spec)
{
    const context *c = e->context;
    const int k = held_index(c, key);
    const keel_model_layer *l = k < 0 ? NULL : &c->m->layer[c->layer].inner->layer[k];
    *name = NULL;
    if (!l || l->n_weight == 0) return;
    const keel_model_weight *w = &keel_model_outermost(c->m)->weight[l->weight[0]];
    *name = strrchr(w->info.name, '/') + 1;
    *out = e->graph->first_weight + l->weight[0];
    *spec = w->info.spec;
}

static keel_status sub_outs(keel_emit *e, const char *key, const keel_call_of *of, keel_value *out,
                            int *n_out)
{
    context *c = e->context;
    const int n_in = of->n_in;
    keel_model *held = c->m->layer[c->layer].inner;
    keel_emit call = { .graph = e->graph,
                       .n_in = n_in,
                       .in = of->in,
                       .mask = of->mask,
                       .whole = n_in == e->n_in ? e->whole : NULL,
                       .how = of->how,
                       .mask_said = true,
                       /* if the call says how, the layer is called like any other */
                       .direct = held && !held->made && !of->how };
    const int k = held_index(c, key);
    if (k < 0) return keel_fail(KEEL_EARG, "holds no '%s'", key);
    const keel_model_layer *l = &held->layer[k];
    const int least = keel_model_layer_is_model(l) ? l->inner->n_input : l->kind->min_inputs;
    const int most = keel_model_layer_is_model(l) ? l->inner->n_input : l->kind->max_inputs;
    if (n_in < least || (most >= 0 && n_in > most && !of->how))
        return keel_fail(KEEL_EUNSUP, "layer '%s' cannot be held: it takes %d input%s", l->name,
                         least, keel_s(least));
    if (!held->made && !keel_model_layer_is_model(l) && l->compute != c->m->layer[c->layer].compute)
        return keel_fail(KEEL_EUNSUP,
                         "the layer '%s' that it holds has another dtype, in which Keras computes "
                         "only a part of it: give both the same",
                         l->name);
    const bool first = !(c->met >> k & 1);
    c->met |= UINT64_C(1) << k;
    keel_status s =
        keel_model_emit_layer(held, c->maker && first ? held : NULL, k, &call, c->chances);
    if (s >= 0 && call.n_out > *n_out)
        s = keel_fail(KEEL_EUNSUP, "layer '%s' cannot be held: it has %d outputs", l->name,
                      call.n_out);
    for (int i = 0; i < call.n_out && s >= 0; i++) out[i] = call.out[i];
    *n_out = call.n_out;
    e->gives = keel_emit_gives_whole(&call, 0) ? KEEL_WHOLE_ALWAYS : KEEL_WHOLE_NEVER;
    keel_free(call.out);
    keel_free(call.out_mask);
    return s;
}

static keel_status sub(keel_emit *e, const char *key, const keel_value *in, const keel_value *mask,
                       int n_in, keel_value *out)
{
    int n_out = 1;
    return sub_outs(e, key, &(keel_call_of){ in, mask, n_in, NULL }, out, &n_out);
}

/* What happens to masks that the layer does not handle itself. */
static void default_masks(const keel_layer *kind, keel_emit *e)
{
    for (int i = 0; i < e->n_out; i++) {
        if (e->out_mask[i] != KEEL_MASK_DEFAULT) continue;
        e->out_mask[i] = kind->supports_masking && i == 0 && e->n_in ? e->mask[0] : KEEL_MASK_NONE;
    }
}

static keel_status log_stream(keel_model_draws *log, int own, int stream)
{
    void *more = keel_grow(log->of, (size_t)(log->n + 1), sizeof *log->of);
    if (!more) return KEEL_ENOMEM;
    log->of = more;
    log->of[log->n].own = own;
    log->of[log->n++].stream = stream;
    return KEEL_OK;
}

/* In a call that is made again: the stream of the layer's call there that has the same number, if
 * there was one. */
static bool repeats_stream(const keel_model_chances *c, int own, int *stream)
{
    int before = 0;
    if (!c->again) return false;
    for (int i = 0; i < c->log->n; i++) before += c->log->of[i].own == own;
    for (int i = 0; i < c->again->n; i++) {
        if (c->again->of[i].own != own || before-- > 0) continue;
        *stream = c->again->of[i].stream;
        return true;
    }
    return false;
}

/* Layers with random draws get a stream of random numbers for each call: the layer's own in its
 * first call, then free ones after those of all layers. They are given in the order of the calls,
 * so every graph of the model draws the same numbers. */
static keel_status stream_of(keel_model_chances *c, const keel_model_layer *l, uint16_t *out)
{
    int stream = l->stream + (c ? c->first : 0);
    if (c && stream >= KEEL_MODEL_LAYERS_MAX)
        return keel_fail(KEEL_EUNSUP, "more than %d layers", KEEL_MODEL_LAYERS_MAX);
    const int own = stream;
    if (c && l->kind->by_chance && !repeats_stream(c, own, &stream) && c->drew[own])
        stream = c->next++;
    if (c) c->drew[own] = true;
    if (stream >= KEEL_STREAMS_MAX)
        return keel_fail(KEEL_EUNSUP, "more than %d calls of layers that draw numbers",
                         KEEL_STREAMS_MAX - KEEL_MODEL_LAYERS_MAX);
    *out = (uint16_t)stream;
    return c && c->log && l->kind->by_chance ? log_stream(c->log, own, stream) : KEEL_OK;
}

static keel_status emit_plain(const keel_model *m, keel_model *maker, int layer, keel_emit *e,
                              keel_model_chances *chances)
{
    const keel_model_layer *l = &m->layer[layer];
    keel_graph *g = e->graph;
    context c = { .m = m, .maker = maker, .layer = layer, .chances = chances };
    const char *const layer_before = g->layer; /* of the layer that holds this one */
    const keel_dtype held_before = g->held;
    const uint16_t stream_before = g->stream;
    const keel_value *const in = e->in, *const mask = e->mask;
    keel_status s = KEEL_OK;
    keel_value *held = keel_calloc(2 * (size_t)e->n_in, sizeof *held); /* and masks behind it */
    if (!held) return KEEL_ENOMEM;
    g->layer = l->label ? l->label : l->name;
    g->held = keel_emit_held(l, e);
    s = stream_of(chances, l, &g->stream);
    for (int i = 0; i < e->n_in && s >= 0; i++) {
        held[i] = in[i];
        held[e->n_in + i] = mask[i];
        const bool texts = keel_graph_spec(g, in[i])->dtype == KEEL_STRING;
        if (!l->kind->uncast && !texts) s = keel_graph_cast(g, in[i], g->held, &held[i]);
        if (s >= 0 && !l->kind->uncast && mask[i] >= 0)
            s = keel_graph_cast(g, mask[i], g->held, &held[e->n_in + i]);
    }
    e->args = l->args;
    e->name = l->name;
    e->gives = l->kind->whole;
    e->training = g->training;
    e->trainable = l->trainable;
    e->activity = &l->activity;
    e->in = held;
    e->mask = held + e->n_in;
    e->weight = weight;
    e->sub = sub;
    e->sub_outs = sub_outs;
    e->sub_kind = sub_kind;
    e->held_weight = held_weight;
    e->context = &c;
    if (s >= 0 && maker && l->kind->make) {
        e->make = make;
        s = l->kind->make(e);
        e->make = NULL;
    }
    if (s >= 0) s = keel_layer_emit(l->kind, e);
    if (s >= 0 && !l->kind->passes_activity) s = keel_emit_regularized(e, &l->activity);
    if (s >= 0) default_masks(l->kind, e);
    e->in = in;
    e->mask = mask;
    if (s >= 0 && l->kind->places && g->real == KEEL_FLOAT32) s = keel_emit_cast_back(e);
    g->layer = layer_before;
    g->held = held_before;
    g->stream = stream_before;
    keel_free(held);
    return s;
}

typedef struct flow { /* of each symbol */
    keel_value *value, *mask;
    int *taken;  /* the first turn at which a call removes its mask; INT_MAX: none does */
    bool *gone;  /* its mask was made from one that was removed before: Keras's run has none */
    bool *whole; /* it is bool or whole in Keras, see keel_whole_outputs */
} flow;

/* Keras's attention removes the masks from the tensors that it is called on, so what reads masks at
 * run does not see them after it: of the sum in e + attention(e, e) a loss sees no mask. A layer
 * with an argument `mask` sees it, since the argument was filled in when the layer was called in
 * Python. */
static keel_status find_taken(const keel_model *m, flow *f)
{
    if (!(f->taken = keel_calloc((size_t)m->n_symbol, sizeof *f->taken))) return KEEL_ENOMEM;
    if (!(f->gone = keel_calloc((size_t)m->n_symbol, sizeof *f->gone))) return KEEL_ENOMEM;
    if (!(f->whole = keel_calloc((size_t)m->n_symbol, sizeof *f->whole))) return KEEL_ENOMEM;
    for (int s = 0; s < m->n_symbol; s++) f->taken[s] = INT_MAX;
    for (int k = 0; k < m->n_node; k++) {
        const keel_model_node *n = &m->node[k];
        for (int i = 0; i < n->n_in; i++)
            if (n->turn < f->taken[n->in[i]] && keel_model_takes_mask(m, n, i))
                f->taken[n->in[i]] = n->turn;
    }
    return KEEL_OK;
}

/* The masks of the inputs of call n, which follow the inputs in `in`. Returns whether one of them
 * was removed before Keras's run comes here. */
static bool take_masks(const keel_model *m, const keel_model_node *n, const flow *f, keel_value *in)
{
    const keel_model_layer *l = &m->layer[n->layer];
    bool any = false;
    for (int i = 0; i < n->n_in; i++) {
        const keel_symbol x = n->in[i];
        const bool given = i < n->n_mask && n->in[n->n_in + i] >= 0;
        const bool gone = !given && (f->gone[x] || f->taken[x] < n->turn);
        keel_value *mask = &in[n->n_in + i];
        *mask = given ? f->value[n->in[n->n_in + i]] : f->mask[x];
        any = any || (gone && *mask >= 0);
        if (gone && keel_model_mask_at_run(l)) *mask = KEEL_MASK_NONE;
    }
    return any && !l->kind->mask_argument;
}

static keel_status emit_node(const keel_model *m, int k, keel_graph *g, const flow *f,
                             keel_model_chances *chances)
{
    const keel_model_node *n = &m->node[k];
    const bool training = g->training;
    const int turn = g->turn;
    keel_status s = KEEL_OK;
    keel_emit e = { .graph = g, .n_in = n->n_in };
    keel_value *in = keel_calloc(2 * (size_t)n->n_in, sizeof *in);
    bool *whole = keel_calloc((size_t)n->n_in, sizeof *whole);
    if (!in || !whole) {
        s = KEEL_ENOMEM;
        goto out;
    }
    for (int i = 0; i < n->n_in; i++) {
        in[i] = f->value[n->in[i]];
        whole[i] = f->whole[n->in[i]];
    }
    const bool gone = take_masks(m, n, f, in);
    e.in = in;
    e.mask = in + n->n_in;
    e.whole = whole;
    e.mask_said = n->n_mask > 0;
    e.call = n->call;
    if (n->inference) g->training = false;
    g->turn = turn + 1 + n->turn;
    s = keel_model_emit_layer(m, NULL, n->layer, &e, chances);
    g->turn = turn;
    g->training = training;
    if (s < 0) goto out;
    /* An attention gives the mask of its query on, as it was made. */
    if (gone && m->layer[n->layer].kind->takes_masks) e.out_mask[0] = f->mask[n->in[0]];
    for (int i = 0; i < n->n_out; i++) {
        f->value[n->out + i] = e.out[i];
        f->mask[n->out + i] = e.out_mask[i];
        f->gone[n->out + i] = gone;
        f->whole[n->out + i] = keel_emit_gives_whole(&e, i);
    }
out:
    keel_free(whole);
    keel_free(in);
    keel_free(e.out);
    keel_free(e.out_mask);
    return s;
}

/* Whether a model inside is called with training=False. */
static bool has_inference(const keel_model *m)
{
    bool any = false;
    for (int k = 0; k < m->n_node && !any; k++) {
        const keel_model *inner = m->layer[m->node[k].layer].inner;
        any = m->node[k].inference || (inner && has_inference(inner));
    }
    return any;
}

/* Which symbols lead to the outputs that are wanted: *out [m->n_symbol], which the caller frees. */
static keel_status find_needed(const keel_model *m, const bool *wanted, bool **out)
{
    bool *const needed = *out = keel_calloc((size_t)m->n_symbol, sizeof *needed);
    if (!needed) return KEEL_ENOMEM;
    for (int i = 0; i < m->n_output; i++) needed[m->output[i]] |= wanted[i];
    for (int k = m->n_node - 1; k >= 0; k--) {
        const keel_model_node *n = &m->node[k];
        bool any = false;
        for (int i = 0; i < n->n_out; i++) any = any || needed[n->out + i];
        for (int i = 0; any && i < n->n_in + n->n_mask; i++)
            if (n->in[i] >= 0) needed[n->in[i]] = true;
    }
    return KEEL_OK;
}

static bool makes_any(const keel_model_node *n, const bool *needed)
{
    bool any = !needed;
    for (int i = 0; i < n->n_out && !any; i++) any = needed[n->out + i];
    return any;
}

/* Emits the calls of a model that give symbols which are needed; NULL: all. *f is made, with
 * m->n_symbol values; the caller frees it. */
static keel_status emit_calls(const keel_model *m, keel_graph *g, const keel_value *in,
                              const keel_value *mask, const bool *needed, flow *f,
                              keel_model_chances *chances)
{
    keel_status s = KEEL_OK;
    int *order = NULL;
    f->value = keel_calloc(2 * (size_t)m->n_symbol, sizeof *f->value);
    if (!f->value) return KEEL_ENOMEM;
    f->mask = f->value + m->n_symbol;
    for (int k = 0; k < 2 * m->n_symbol; k++) f->value[k] = -1;
    KEEL_TRY(find_taken(m, f));
    for (int i = 0; i < m->n_input; i++) {
        const keel_dtype own = m->symbol[m->input[i]].spec.dtype;
        if (in[i] < 0 && (!needed || needed[m->input[i]]))
            return keel_fail(KEEL_EARG, "input %d is needed for an output that is wanted", i);
        f->whole[m->input[i]] = !keel_dtype_is_real(own) && own != KEEL_STRING;
        f->value[m->input[i]] = in[i];
        f->mask[m->input[i]] = mask ? mask[i] : KEEL_MASK_NONE;
    }
    if (chances && chances->in_turn) KEEL_TRY(keel_model_run_order(m, &order));
    for (int i = 0; i < m->n_node && s >= 0; i++) {
        const int k = order ? order[i] : i;
        const keel_model_node *n = &m->node[k];
        if (m->layer[n->layer].kind->emit && makes_any(n, needed))
            s = emit_node(m, k, g, f, chances);
    }
    keel_free(order);
    return s;
}

keel_status keel_model_emit_into(const keel_model *m, keel_graph *g, const keel_value *in,
                                 const keel_value *mask, const bool *wanted,
                                 keel_model_chances *chances, keel_value *out, keel_value *out_mask)
{
    flow f = { 0 };
    bool *needed = NULL;
    const char *const layer = g->layer;
    chances->in_turn = has_inference(m);
    keel_status s = wanted ? find_needed(m, wanted, &needed) : KEEL_OK;
    if (s >= 0) s = emit_calls(m, g, in, mask, needed, &f, chances);
    for (int i = 0; i < m->n_output && s >= 0; i++) {
        const keel_symbol y = m->output[i];
        out[i] = out_mask[i] = KEEL_MASK_NONE;
        if (wanted && !wanted[i]) continue;
        g->layer = m->layer[keel_model_maker(m, y)->layer].name;
        s = keel_graph_cast(g, f.value[y], g->real, &out[i]);
        out_mask[i] = f.gone[y] ? KEEL_MASK_NONE : f.mask[y];
        if (s >= 0 && out_mask[i] >= 0) s = keel_graph_cast(g, out_mask[i], g->real, &out_mask[i]);
    }
    g->layer = layer;
    keel_free(needed);
    keel_free(f.value);
    keel_free(f.taken);
    keel_free(f.gone);
    keel_free(f.whole);
    return s;
}

static keel_status emit_inner(const keel_model *inner, keel_emit *e, keel_model_chances *chances)
{
    flow f = { 0 };
    keel_status s = keel_emit_outputs(e, inner->n_output);
    if (s >= 0) s = emit_calls(inner, e->graph, e->in, e->mask, NULL, &f, chances);
    e->gives = KEEL_WHOLE_ALWAYS;
    for (int i = 0; i < inner->n_output && s >= 0; i++) {
        e->out[i] = f.value[inner->output[i]];
        e->out_mask[i] = f.gone[inner->output[i]] ? KEEL_MASK_NONE : f.mask[inner->output[i]];
        if (!f.whole[inner->output[i]]) e->gives = KEEL_WHOLE_NEVER;
    }
    keel_free(f.value);
    keel_free(f.taken);
    keel_free(f.gone);
    keel_free(f.whole);
    return s;
}

keel_status keel_model_emit_layer(const keel_model *m, keel_model *maker, int layer, keel_emit *e,
                                  keel_model_chances *chances)
{
    const keel_model_layer *l = &m->layer[layer];
    keel_status s = keel_emit_outputs(e, 1);
    if (s >= 0)
        s = keel_model_layer_is_model(l) ? emit_inner(l->inner, e, chances)
                                         : emit_plain(m, maker, layer, e, chances);
    return s < 0 && s != KEEL_ENOMEM ? keel_fail_within(s, "layer '%s'", l->name) : s;
}

bool keel_model_reads_rows(const keel_model *m)
{
    bool any = false;
    for (int i = 0; i < m->n_layer && !any; i++)
        any = m->layer[i].kind->reads_rows ||
              (m->layer[i].inner && keel_model_reads_rows(m->layer[i].inner));
    return any;
}

static keel_status input_spec(const keel_model *m, const keel_model_emission *e, int i,
                              keel_spec *out)
{
    const keel_spec *own = &m->symbol[m->input[i]].spec;
    char shape[96];
    *out = e->specs ? e->specs[i] : *own;
    if (own->dtype == KEEL_STRING) return KEEL_OK;
    if (!e->specs || keel_dtype_is_real(out->dtype)) out->dtype = e->real;
    if (!keel_shape_is_open(&out->shape)) return KEEL_OK;
    keel_shape_text(shape, &out->shape);
    return keel_fail(KEEL_ESHAPE, "input '%s' has open dims, rows of %s: they must be known here",
                     keel_model_input_name(m, i), shape);
}

keel_status keel_model_emit(const keel_model *m, keel_model_emission *e)
{
    keel_status s = KEEL_OK;
    keel_graph *g = NULL;
    flow f = { 0 };
    keel_model_chances chances = { .next = KEEL_MODEL_LAYERS_MAX, .in_turn = has_inference(m) };
    if (!m->finished || !m->n_output)
        return keel_fail(KEEL_EARG, "the model '%s' is not finished: %s", m->name,
                         m->sequential ? "add a layer" : "say its outputs (keel_model_outputs)");
    if ((s = keel_graph_create(&g, e->real, e->training)) < 0) goto out;
    g->scored = e->scored;
    g->batch = keel_model_batch(m);
    if (!(chances.drew = keel_calloc(KEEL_MODEL_LAYERS_MAX, sizeof *chances.drew))) {
        s = KEEL_ENOMEM;
        goto out;
    }
    for (int i = 0; i < m->n_input; i++) {
        keel_spec spec;
        if ((s = input_spec(m, e, i, &spec)) < 0) goto out;
        if ((s = keel_graph_input(g, &spec, &e->input[i])) < 0) goto out;
    }
    if ((s = emit_calls(m, g, e->input, NULL, NULL, &f, &chances)) < 0) goto out;
    for (int i = 0; i < m->n_output; i++) { /* losses and readers expect real numbers */
        const keel_symbol y = m->output[i];
        g->layer = m->layer[keel_model_maker(m, y)->layer].name;
        s = keel_graph_cast(g, f.value[y], e->real, &e->output[i]);
        if (s >= 0 && e->mask) {
            e->mask[i] = f.gone[y] ? KEEL_MASK_NONE : f.mask[y];
            if (e->mask[i] >= 0) s = keel_graph_cast(g, e->mask[i], e->real, &e->mask[i]);
        }
        g->layer = NULL;
        if (s < 0) goto out;
    }
    e->graph = g;
    g = NULL;
out:
    keel_free(f.value);
    keel_free(f.taken);
    keel_free(f.gone);
    keel_free(f.whole);
    keel_free(chances.drew);
    keel_graph_destroy(g);
    return s;
}
