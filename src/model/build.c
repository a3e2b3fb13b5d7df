/* Building a model: layers, their calls and their weights. Each step either succeeds completely or
 * leaves the lists as they were (keel_model_where, keel_model_back). */
#include "base/memory.h"
#include "base/text.h"
#include "model/parts.h"
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Calls inside of models count, too. So a few lines of configuration (models called twice by models
 * called twice) cannot ask for any number of ops. */
enum { NODES_MAX = 1 << 18, INPUTS_MAX = 1 << 12 };

/* ---- lists ----------------------------------------------------------------------------------- */

/* Makes room for one more; the capacity is the power of two at or above the count, at least 8. */
static keel_status reserve(void **list, int count, size_t size)
{
    if (count && (count < 8 || (count & (count - 1)))) return KEEL_OK;
    void *p = keel_grow(*list, count ? (size_t)count * 2 : 8, size);
    if (!p) return KEEL_ENOMEM;
    *list = p;
    memset((char *)p + (size_t)count * size, 0, size);
    return KEEL_OK;
}

static void free_layer(keel_model_layer *l)
{
    if (l->args) keel_fields_free(&l->kind->type, l->args);
    keel_free(l->args);
    keel_object_free(&l->activity);
    keel_free(l->name);
    keel_free(l->label);
    keel_free(l->path);
    keel_model_destroy(l->inner);
}

static void free_weight(keel_model_weight *w)
{
    keel_free((void *)w->info.name);
    keel_free(w->own ? w->own : w->data);
    keel_free(w->path);
    if (w->initializer.type) keel_object_free(&w->initializer);
}

/* How many calls of layers are made when a layer is emitted. */
static int64_t work_of(const keel_model_layer *l)
{
    return l->inner ? 1 + l->inner->work : 1;
}

keel_model_mark keel_model_where(const keel_model *m)
{
    return (keel_model_mark){ m->n_layer, keel_model_outermost(m)->n_weight, m->n_node };
}

void keel_model_back(keel_model *m, keel_model_mark mark)
{
    keel_model *root = keel_model_outermost(m);
    while (m->n_node > mark.n_node) {
        keel_model_node *n = &m->node[--m->n_node];
        m->layer[n->layer].n_node--;
        m->work -= work_of(&m->layer[n->layer]);
        m->n_symbol = n->out;
        json_decref(n->call);
        keel_free(n->in);
    }
    while (root->n_weight > mark.n_weight) {
        keel_model_weight *w = &root->weight[--root->n_weight];
        w->owner->layer[w->layer].n_weight--;
        free_weight(w);
    }
    while (m->n_layer > mark.n_layer) free_layer(&m->layer[--m->n_layer]);
}

keel_status keel_model_put_symbols(keel_symbol **list, int *count, const keel_symbol *from, int n)
{
    keel_symbol *copy = keel_calloc((size_t)n, sizeof *copy);
    if (!copy) return KEEL_ENOMEM;
    if (n) memcpy(copy, from, (size_t)n * sizeof *copy);
    keel_free(*list);
    *list = copy;
    *count = n;
    return KEEL_OK;
}

/* ---- models ---------------------------------------------------------------------------------- */

keel_status keel_model_create(keel_model **out, const char *name, keel_dtype dtype, uint64_t seed)
{
    if (name && strchr(name, '/')) /* Keras would not load the model's file */
        return keel_fail(KEEL_EARG, "the name of a model, '%.200s', must not have a '/'", name);
    return keel_model_begin(out, name, dtype, seed);
}

keel_status keel_model_begin(keel_model **out, const char *name, keel_dtype dtype, uint64_t seed)
{
    if (!keel_dtype_is_real(dtype))
        return keel_fail(KEEL_EUNSUP, "a model computes in float32 or float64, not in %s",
                         keel_dtype_name(dtype));
    keel_model *m = keel_calloc(1, sizeof *m);
    if (!m) return KEEL_ENOMEM;
    m->dtype = dtype;
    m->seed = seed;
    if (name && !(m->name = keel_strdup(name))) {
        keel_model_destroy(m);
        return KEEL_ENOMEM;
    }
    *out = m;
    return KEEL_OK;
}

void keel_model_destroy(keel_model *m)
{
    if (!m) return;
    if (m->live) { /* fit will end with an error */
        m->live->destroyed = true;
        return;
    }
    /* the outermost model has the weights, and has freed them before its layers */
    keel_model_back(m, (keel_model_mark){ .n_weight = m->outer ? INT_MAX : 0 });
    keel_free(m->layer);
    keel_free(m->weight);
    keel_free(m->node);
    keel_free(m->symbol);
    keel_free(m->input);
    keel_free(m->output);
    keel_free(m->output_name);
    json_decref(m->input_paths);
    json_decref(m->output_paths);
    keel_free(m->name);
    keel_row_states_free(&m->row_states);
    keel_compiled_free(&m->compiled);
    keel_free(m->refused);
    for (int i = 0; i < m->n_kept; i++) keel_free(m->kept[i]);
    keel_free(m->kept);
    for (int64_t i = 0; i < m->n_class; i++) keel_free(m->class_names[i]);
    keel_free(m->class_names);
    json_decref(m->file_config);
    keel_free(m);
}

int keel_model_find_layer(const keel_model *m, const char *name)
{
    for (int i = 0; i < m->n_layer; i++)
        if (!strcmp(m->layer[i].name, name)) return i;
    return -1;
}

/* ---- layers ---------------------------------------------------------------------------------- */

/* The k of "stem_k", 0 for the stem itself; -1: another name. */
static long number_of(const char *name, const char *stem)
{
    const size_t n = strlen(stem);
    char *end;
    if (strncmp(name, stem, n)) return -1;
    if (!name[n]) return 0;
    if (name[n] != '_' || name[n + 1] < '1' || name[n + 1] > '9') return -1;
    const long k = strtol(name + n + 1, &end, 10);
    return *end ? -1 : k;
}

/* The first free name of "conv2d", "conv2d_1", ... NULL: no memory. */
static char *free_name(const keel_model *m, const char *class_name)
{
    char stem[128], name[160];
    int k = 0;
    bool *taken = keel_calloc((size_t)m->n_layer + 1, sizeof *taken); /* by number */
    if (!taken) return NULL;
    keel_snake_case(stem, sizeof stem, class_name);
    for (int i = 0; i < m->n_layer; i++) {
        const long number = number_of(m->layer[i].name, stem);
        if (number >= 0 && number <= m->n_layer) taken[number] = true;
    }
    while (taken[k]) k++;
    keel_free(taken);
    snprintf(name, sizeof name, "%s_%d", stem, k);
    return keel_strdup(k ? name : stem);
}

keel_status keel_model_put_layer(keel_model *m, const keel_model_layer *l)
{
    if (m->n_layer >= KEEL_MODEL_LAYERS_MAX)
        return keel_fail(KEEL_EUNSUP, "more than %d layers", KEEL_MODEL_LAYERS_MAX);
    KEEL_TRY(reserve((void **)&m->layer, m->n_layer, sizeof *m->layer));
    m->layer[m->n_layer++] = *l;
    return KEEL_OK;
}

keel_status keel_model_reserve_weight(keel_model *m, int weight)
{
    return reserve((void **)&m->weight, weight, sizeof *m->weight);
}

keel_status keel_model_new_layer(keel_model *m, const char *class_name, const json_t *config,
                                 int *layer)
{
    keel_status s = KEEL_OK;
    keel_layer_common common;
    const keel_model_mark mark = keel_model_where(m);
    keel_model_layer l = { .kind = keel_layer_find(class_name) };
    if (!l.kind && !strcmp(class_name, "Lambda"))
        return keel_fail(KEEL_EUNSUP, "a Lambda holds Python code, which cannot run here; "
                                      "operations between layers need none: x * 2, or "
                                      "keras.ops.mean(x, 1)");
    if (!l.kind)
        return keel_fail(KEEL_EUNSUP,
                         "there is no layer class '%.100s'; 'keel layers' lists all of them",
                         class_name);
    void *args = keel_calloc(1, l.kind->type.args_size);
    if (!args) return KEEL_ENOMEM;
    if ((s = keel_layer_read(l.kind, config, args, &common)) < 0) {
        keel_free(args); /* it owns nothing */
        return s;
    }
    l.args = args;
    if (keel_dtype_is_narrow(common.dtype) && !m->outer) {
        s = keel_fail(KEEL_EUNSUP,
                      "dtype '%s' of an input: rows are read as float32; leave it out, and layers "
                      "of a mixed policy round them",
                      keel_dtype_name(common.dtype));
        goto out;
    }
    l.trainable = common.trainable;
    l.compute = common.compute;
    l.activity = common.activity;
    l.batch = common.batch;
    l.input = (keel_spec){ .dtype = keel_dtype_flows(common.dtype) ? m->dtype : common.dtype,
                           .shape = common.shape };
    if (common.name && keel_model_find_layer(m, common.name) >= 0) {
        s = keel_fail(KEEL_EARG, "two layers are named '%s': names must differ", common.name);
        goto out;
    }
    l.name = common.name ? keel_strdup(common.name) : free_name(m, l.kind->type.name);
    if (!l.name) {
        s = KEEL_ENOMEM;
        goto out;
    }
    if ((l.kind->held || l.kind->held_list) &&
        (s = keel_model_read_held(m, l.kind, config, &l.inner)) < 0)
        goto out;
    if ((s = keel_model_put_layer(m, &l)) < 0) goto out;
    *layer = m->n_layer - 1;
    l = (keel_model_layer){ 0 };
out:
    if (s < 0)
        keel_model_back(m, mark); /* weights first, because models inside the layer have them */
    free_layer(&l);
    return s;
}

/* ---- weights --------------------------------------------------------------------------------- */

keel_status keel_model_new_weight(keel_model *m, int layer, const keel_weight_decl *d, int *weight)
{
    keel_status s = KEEL_OK;
    keel_model *root = keel_model_outermost(m);
    keel_model_layer *l = &m->layer[layer];
    keel_model_weight w = { .owner = m, .layer = layer, .state = d->state, .besides = d->besides };
    keel_text name = { 0 };
    if (l->n_weight == KEEL_LAYER_WEIGHTS_MAX)
        return keel_fail(KEEL_EUNSUP, "more than %d weights", KEEL_LAYER_WEIGHTS_MAX);
    if ((s = keel_shape_check(&d->shape, sizeof(double))) < 0)
        return keel_fail_within(s, "%s", d->name);
    keel_text_add(&name, "%s/%s", l->name, d->name);
    w.info.name = name.data; /* from here on freed with w */
    if (name.failed) {
        s = KEEL_ENOMEM;
        goto out;
    }
    w.info.spec = (keel_spec){ .dtype = m->dtype, .shape = d->shape };
    w.info.lead = d->lead;
    w.trainable = l->trainable && !d->state;
    if ((s = keel_regularizer_read(d->regularizer, &d->shape, &w.info.penalty)) < 0 ||
        (s = keel_constraint_read(d->constraint, &d->shape, &w.info.projection)) < 0) {
        s = keel_fail_within(s, "%s", d->name);
        goto out;
    }
    if (d->initializer && (s = keel_object_copy(&w.initializer, d->initializer)) < 0) goto out;
    if ((s = reserve((void **)&root->weight, root->n_weight, sizeof *root->weight)) < 0) goto out;
    *weight = root->n_weight;
    l->weight[l->n_weight++] = root->n_weight;
    root->weight[root->n_weight++] = w;
    w = (keel_model_weight){ 0 };
out:
    free_weight(&w);
    return s;
}

keel_status keel_model_alloc_weight(keel_model *m, int weight)
{
    keel_model_weight *w = &m->weight[weight];
    if (w->data) return KEEL_OK;
    w->data = keel_aligned_calloc((size_t)keel_shape_count(&w->info.spec.shape),
                                  keel_dtype_size(w->info.spec.dtype));
    return w->data ? KEEL_OK : KEEL_ENOMEM;
}

/* The shape that ops see. */
static keel_shape matrix_of(const keel_weight_info *w)
{
    const keel_shape *s = &w->spec.shape;
    keel_shape matrix = KEEL_SHAPE(1, 1);
    if (!w->lead) return *s;
    for (int d = 0; d < s->rank; d++) matrix.dim[d >= w->lead] *= s->dim[d];
    return matrix;
}

keel_status keel_model_fill_weight(keel_model *m, int weight)
{
    keel_model_weight *w = &m->weight[weight];
    const int64_t n = keel_shape_count(&w->info.spec.shape);
    const keel_chance chance = { .seed = m->seed, .stream = KEEL_STREAM_WEIGHTS };
    const keel_initializer *init = (const keel_initializer *)w->initializer.type;
    KEEL_TRY(keel_model_alloc_weight(m, weight));
    if (!init) return KEEL_OK;
    double *values = keel_calloc((size_t)n, sizeof *values);
    if (!values) return KEEL_ENOMEM;
    const bool as_matrix = init->by_fans && !keel_fans_given(w->initializer.args);
    const keel_shape shape = as_matrix ? matrix_of(&w->info) : w->info.spec.shape;
    keel_status s = init->fill(w->initializer.args, &shape, &chance, (uint64_t)weight, values);
    if (s >= 0) keel_convert_reals(w->data, w->info.spec.dtype, values, KEEL_FLOAT64, n);
    keel_free(values);
    return s < 0 ? keel_fail_within(s, "%s", w->info.name) : KEEL_OK;
}

keel_status keel_model_fill_weights(keel_model *m)
{
    for (int i = 0; i < m->n_weight; i++)
        if (!m->weight[i].data) KEEL_TRY(keel_model_fill_weight(m, i));
    return KEEL_OK;
}

/* ---- calls ----------------------------------------------------------------------------------- */

static keel_status check_inputs(const keel_model *m, const keel_model_layer *l,
                                const keel_model_call_of *call)
{
    const keel_symbol *in = call->in;
    const int n_in = call->n_in;
    const int most = l->kind->max_inputs < 0 ? INPUTS_MAX : l->kind->max_inputs;
    if (keel_model_layer_is_model(l) && n_in != l->inner->n_input)
        return keel_fail(KEEL_EARG, "layer '%s': the model takes %d input%s, not %d", l->name,
                         l->inner->n_input, l->inner->n_input == 1 ? "" : "s", n_in);
    const int least = l->kind->min_inputs, bound = n_in < least ? least : most;
    if (n_in < least || n_in > most)
        return keel_fail(KEEL_EARG, "layer '%s': a %s takes %s%d input%s, not %d", l->name,
                         l->kind->type.name,
                         least == most   ? ""
                         : bound == most ? "at most "
                                         : "at least ",
                         bound, bound == 1 ? "" : "s", n_in);
    for (int i = 0; i < n_in + call->n_mask; i++)
        if ((in[i] < 0 && i < n_in) || in[i] >= m->n_symbol)
            return keel_fail(KEEL_EARG, "layer '%s': input %d is no symbol of this model", l->name,
                             i);
    if (l->n_node && !l->kind->emit)
        return keel_fail(KEEL_EARG, "layer '%s': an input cannot be called", l->name);
    return KEEL_OK;
}

/* An earlier call of this layer on inputs of the same specs, which has the same outputs. */
static const keel_model_node *alike(const keel_model *m, int layer, const keel_model_call_of *call)
{
    const keel_symbol *in = call->in;
    const int n_in = call->n_in;
    const int last = m->layer[layer].last_node;
    const keel_model_node *n = last < m->n_node ? &m->node[last] : NULL;
    if (!n || n->layer != layer || n->n_in != n_in || n->n_mask || call->n_mask || call->call)
        return NULL;
    for (int i = 0; i < n_in; i++) {
        const keel_model_symbol *a = &m->symbol[n->in[i]], *b = &m->symbol[in[i]];
        if (a->spec.dtype != b->spec.dtype || a->masked != b->masked || b->taken ||
            !keel_shape_equal(&a->spec.shape, &b->spec.shape) ||
            !keel_shape_equal(&a->mask.shape, &b->mask.shape))
            return NULL;
    }
    return n;
}

static keel_status outputs_of(keel_model *m, int layer, const keel_model_call_of *call,
                              keel_model_symbol **out, int *n_out)
{
    const keel_model_layer *l = &m->layer[layer];
    const keel_model_node *before = alike(m, layer, call);
    if (l->kind->emit && !before) return keel_model_infer_call(m, layer, call, out, n_out);
    *n_out = before ? before->n_out : 1;
    *out = keel_calloc((size_t)*n_out, sizeof **out);
    if (!*out) return KEEL_ENOMEM;
    for (int i = 0; i < *n_out; i++)
        (*out)[i] = before ? m->symbol[before->out + i] : (keel_model_symbol){ .spec = l->input };
    return KEEL_OK;
}

bool keel_model_takes_mask(const keel_model *m, const keel_model_node *n, int i)
{
    const keel_model_layer *l = &m->layer[n->layer];
    if (!keel_model_layer_is_model(l)) return l->kind->takes_masks;
    /* Keras gives a model a copy, in float32, of what was made in another type */
    if (m->layer[keel_model_maker(m, n->in[i])->layer].compute != KEEL_FLOAT32) return false;
    return l->inner->symbol[l->inner->input[i]].taken;
}

bool keel_model_mask_at_run(const keel_model_layer *l)
{
    return keel_model_layer_is_model(l) || l->kind->masks_at_run || l->kind->takes_masks;
}

keel_status keel_model_new_node(keel_model *m, int layer, const keel_model_call_of *call,
                                keel_symbol *out)
{
    keel_status s = KEEL_OK;
    keel_model_symbol *made = NULL;
    keel_model_node n = { .layer = layer,
                          .index = m->layer[layer].n_node,
                          .out = m->n_symbol,
                          .inference = call->inference };
    KEEL_TRY(check_inputs(m, &m->layer[layer], call));
    if (m->n_node >= NODES_MAX || work_of(&m->layer[layer]) > NODES_MAX - m->work)
        return keel_fail(KEEL_EUNSUP, "more than %d calls of layers", NODES_MAX);
    const keel_model_mark mark = keel_model_where(m);
    s = keel_model_put_symbols(&n.in, &n.n_in, call->in, call->n_in + call->n_mask);
    if (s < 0) goto out;
    n.n_in = call->n_in;
    n.n_mask = call->n_mask;
    n.call = json_incref(call->call);
    if ((s = outputs_of(m, layer, call, &made, &n.n_out)) < 0) goto out;
    if (m->sequential && n.n_out > 1) {
        s = keel_fail(KEEL_EUNSUP,
                      "layer '%s' has %d outputs, and a layer of a Sequential model one: build a "
                      "Functional model, which says where each goes",
                      m->layer[layer].name, n.n_out);
        goto out;
    }
    if (n.n_out > NODES_MAX - m->n_symbol) {
        s = keel_fail(KEEL_EUNSUP, "more than %d outputs of layers", NODES_MAX);
        goto out;
    }
    if ((s = reserve((void **)&m->node, m->n_node, sizeof *m->node)) < 0) goto out;
    for (int i = 0; i < n.n_out; i++) {
        if ((s = reserve((void **)&m->symbol, m->n_symbol, sizeof *m->symbol)) < 0) goto out;
        made[i].node = m->n_node;
        made[i].output = i;
        made[i].taken = false;
        m->symbol[m->n_symbol++] = made[i];
    }
    *out = n.out;
    for (int i = 0; i < n.n_in; i++)
        if (keel_model_takes_mask(m, &n, i)) m->symbol[n.in[i]].taken = true;
    m->layer[layer].last_node = m->n_node;
    m->node[m->n_node++] = n;
    m->layer[layer].n_node++;
    m->work += work_of(&m->layer[layer]);
    keel_free(made);
    return KEEL_OK;
out:
    m->n_symbol = n.out;
    json_decref(n.call);
    keel_free(n.in);
    keel_free(made);
    keel_model_back(m, mark);
    return s;
}
