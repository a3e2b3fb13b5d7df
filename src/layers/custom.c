/* See custom.h. A registered class is a keel_layer like any other, whose args say which callbacks
 * to ask. */
#include "layers/custom.h"
#include "base/memory.h"
#include <stdio.h>
#include <string.h>

static keel_registry registry = { .what = "layer" };

/* Keras writes it for classes without a get_config of their own. */
static const keel_field fields[] = {
    KEEL_REFUSE("autocast", "true", "inputs have the layer's type"),
    { 0 },
};

const keel_layer *keel_layer_registered(const char *name)
{
    return (const keel_layer *)keel_registry_find(&registry, name);
}

static const keel_custom_layer *layer_of(const void *args)
{
    return keel_registered_of(args)->of;
}

/* ---- what is asked when the layer is built --------------------------------------------------- */

static keel_status check_shape(const void *args, const char *what, const keel_shape *shape)
{
    const char *name = keel_registered_of(args)->name;
    char text[96];
    const keel_status s = keel_shape_check(shape, sizeof(double));
    if (s < 0) return keel_fail_within(s, "%s: %s", name, what);
    keel_shape_text(text, shape);
    for (int i = 0; i < shape->rank; i++)
        if (shape->dim[i] < 1)
            return keel_fail(KEEL_ESHAPE, "%s: %s has the shape %s, with no elements", name, what,
                             text);
    return KEEL_OK;
}

static keel_status ask_weights(const void *args, const keel_layer_shapes *shapes,
                               keel_custom_built *out)
{
    const keel_custom_layer *l = layer_of(args);
    char what[80];
    for (int i = 0; l->weight; i++) {
        keel_layer_weight w = { 0 };
        if (!l->weight(shapes, i, &w)) break;
        if (i == KEEL_CUSTOM_WEIGHTS_MAX)
            return keel_fail(KEEL_EUNSUP, "%s: more than %d weights", l->type.name,
                             KEEL_CUSTOM_WEIGHTS_MAX);
        if (!w.name || !*w.name || strchr(w.name, '/'))
            return keel_fail(KEEL_EARG, "%s: weight %d must have a name, without '/'", l->type.name,
                             i);
        snprintf(what, sizeof what, "weight '%.60s'", w.name);
        KEEL_TRY(check_shape(args, what, &w.shape));
        out->weight[out->n_weight++] = w;
    }
    return KEEL_OK;
}

static keel_status refuse_inputs(const keel_custom_layer *l, const keel_shape *in, int n_in)
{
    char text[96], all[200] = "";
    for (int i = 0; i < n_in; i++) {
        keel_shape_text(text, &in[i]);
        snprintf(all + strlen(all), sizeof all - strlen(all), "%s%s", i ? ", " : "", text);
    }
    return keel_fail(KEEL_ESHAPE, "%s takes no rows of %s", l->type.name, all);
}

keel_status keel_custom_build(const void *args, const keel_shape *in, int n_in,
                              keel_custom_built *out)
{
    const keel_custom_layer *l = layer_of(args);
    keel_custom_built built = { 0 };
    const keel_layer_shapes shapes = {
        .config = keel_registered_config(args), .user = l->type.user, .n_in = n_in, .in = in
    };
    if (n_in != l->inputs)
        return keel_fail(KEEL_EARG, "%s takes %d input%s, not %d", l->type.name, l->inputs,
                         l->inputs == 1 ? "" : "s", n_in);
    built.out = in[0];
    /* the shape first: a layer may divide by what it refuses here */
    if (l->output && !l->output(&shapes, &built.out)) return refuse_inputs(l, in, n_in);
    KEEL_TRY(check_shape(args, "its output", &built.out));
    KEEL_TRY(ask_weights(args, &shapes, &built));
    if (l->saved) built.saved = l->saved(&shapes);
    if (built.saved < 0 || built.saved > INT64_MAX / 64)
        return keel_fail(KEEL_ESHAPE, "%s: it saves %lld numbers of a row", l->type.name,
                         (long long)built.saved);
    *out = built;
    return KEEL_OK;
}

keel_status keel_custom_initializer(const keel_layer_weight *w, keel_object *out)
{
    const char *text = w->initializer ? w->initializer : "glorot_uniform";
    char what[96];
    json_t *v = *text == '{' ? json_loads(text, JSON_REJECT_DUPLICATES, NULL) : json_string(text);
    if (!v) return keel_fail(KEEL_EARG, "weight '%.60s': its initializer is not JSON", w->name);
    snprintf(what, sizeof what, "weight '%.60s': initializer", w->name);
    keel_status s = keel_object_read(out, v, keel_initializer_find, what);
    json_decref(v);
    return s;
}

/* Weights are declared in the order of Keras's file, which has those that are trained first; the op
 * has them in the order of the callback. */
static keel_status declare(keel_emit *e, const keel_custom_built *built, keel_variable *w,
                           keel_spec *spec)
{
    for (int state = 0; state < 2; state++)
        for (int i = 0; i < built->n_weight; i++) {
            const keel_layer_weight *own = &built->weight[i];
            keel_object initializer = { 0 };
            if (own->state != (state == 1)) continue;
            KEEL_TRY(keel_custom_initializer(own, &initializer));
            const keel_weight_decl decl = { .name = own->name,
                                            .shape = own->shape,
                                            .initializer = &initializer,
                                            .state = own->state };
            const keel_status s = e->weight(e, &decl, &w[i], &spec[i]);
            keel_object_free(&initializer);
            if (s < 0) return s;
        }
    return KEEL_OK;
}

static keel_status emit(keel_emit *e)
{
    keel_custom_built built;
    keel_shape in[KEEL_CUSTOM_INPUTS_MAX];
    keel_variable w[KEEL_CUSTOM_WEIGHTS_MAX];
    keel_spec spec[KEEL_CUSTOM_WEIGHTS_MAX];
    for (int i = 0; i < e->n_in && i < KEEL_CUSTOM_INPUTS_MAX; i++)
        in[i] = keel_emit_in(e, i)->shape;
    KEEL_TRY(keel_custom_build(e->args, in, e->n_in, &built));
    KEEL_TRY(declare(e, &built, w, spec));
    const keel_custom_args args = { .of = e->args, .out = built.out, .saved = built.saved };
    const keel_node_parts parts = { .op = &keel_custom_op,
                                    .args = &args,
                                    .n_in = e->n_in,
                                    .in = e->in,
                                    .n_weight = built.n_weight,
                                    .weight = w,
                                    .weight_spec = spec };
    return keel_emit_op(e, &parts, e->out);
}

/* ---- running --------------------------------------------------------------------------------- */

keel_status keel_custom_call(const void *args, keel_layer_rows *r, bool backward)
{
    const keel_custom_layer *l = layer_of(args);
    r->config = keel_registered_config(args);
    r->user = l->type.user;
    const keel_status s = backward ? l->backward(r) : l->forward(r);
    if (s >= 0) return KEEL_OK;
    return keel_fail(KEEL_ECALLBACK, "%s of %s returned %s", backward ? "backward" : "forward",
                     l->type.name, keel_status_name(s));
}

/* ---- registering ----------------------------------------------------------------------------- */

/* What Keras has among layers, and keel_layers has not. */
static const char *const others = "Sequential|Functional|Model|Layer|Wrapper|Lambda|Pipeline|"
                                  "AbstractRNNCell|TFSMLayer|JaxLayer|FlaxLayer|TorchModuleWrapper";

static keel_status check(const keel_custom_layer *l)
{
    if (l->inputs < 1 || l->inputs > KEEL_CUSTOM_INPUTS_MAX)
        return keel_fail(KEEL_EARG, "layer '%s': %d inputs; possible are 1 to %d", l->type.name,
                         l->inputs, KEEL_CUSTOM_INPUTS_MAX);
    if (!l->forward) return keel_fail(KEEL_EARG, "layer '%s': it has no `forward`", l->type.name);
    return KEEL_OK;
}

keel_status keel_register_layer(const keel_custom_layer *layer)
{
    const char *name = layer->type.name ? layer->type.name : "";
    const keel_layer *same = keel_layer_find(name);
    const bool one = layer->inputs == 1;
    keel_layer made = { .min_inputs = one ? 1 : layer->inputs,
                        .max_inputs = one ? 1 : -1,
                        .supports_masking = layer->supports_masking,
                        .emit = emit };
    const keel_registration from = { .size = layer->size,
                                     .wanted = sizeof *layer,
                                     .of = layer,
                                     .type = &layer->type,
                                     .more = fields,
                                     .ours = keel_name_listed(others, name) ||
                                             (same && !same->type.registered) };
    KEEL_TRY(keel_registered_make(&registry, &from, &made.type));
    keel_status s = check(layer);
    keel_layer *own = keel_calloc(1, sizeof *own);
    if (!own) s = KEEL_ENOMEM;
    if (s >= 0) {
        *own = made;
        s = keel_registry_add(&registry, &own->type);
    }
    if (s >= 0) return s;
    keel_registered_free(&made.type);
    keel_free(own);
    return s;
}
