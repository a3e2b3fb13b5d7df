/* The calls with which a program builds a model: Sequential by keel_model_add, Functional by
 * keel_model_input, keel_model_call and keel_model_outputs. */
#include "base/memory.h"
#include "model/lend.h"
#include "model/parts.h"
#include <string.h>

static keel_status ready(const keel_model *m, bool sequential)
{
    KEEL_TRY(keel_model_idle(m, "adding to a model"));
    if (m->file_config)
        return keel_fail(KEEL_EUNSUP, "the model '%s' was loaded: it cannot be built further",
                         m->name);
    if (m->compiled.given)
        return keel_fail(KEEL_EARG, "the model '%s' is compiled: build it first, then compile",
                         m->name);
    if (sequential ? m->functional : m->sequential)
        return keel_fail(KEEL_EARG, "the model '%s' is %s: %s", m->name,
                         m->sequential ? "Sequential" : "Functional",
                         m->sequential ? "use keel_model_add" : "use keel_model_call");
    if (!sequential && m->finished)
        return keel_fail(KEEL_EARG, "the model '%s' has its outputs: it is finished", m->name);
    return KEEL_OK;
}

static keel_status become(keel_model *m, bool sequential)
{
    if (!m->name && !(m->name = keel_strdup(sequential ? "sequential" : "functional")))
        return KEEL_ENOMEM;
    m->sequential = sequential;
    m->functional = !sequential;
    return KEEL_OK;
}

bool keel_model_calls_with_list(const keel_layer *kind)
{
    return kind->max_inputs < 0 || kind->takes_list;
}

keel_status keel_model_call_json(const keel_layer *kind, const keel_arg *with, int n_in,
                                 json_t **out)
{
    json_t *args = NULL, *kwargs = NULL;
    if (!with || !with->key) return KEEL_OK;
    if (!kind->operation && !kind->by_arguments)
        return keel_fail(KEEL_EARG, "a %s is called with its inputs only, not with '%s'",
                         kind->type.name, with->key);
    KEEL_TRY(keel_args_json(with, &kwargs));
    bool failed = !(args = json_array());
    for (int i = 0; !failed && i < n_in; i++)
        failed = json_array_append_new(args, json_pack("{s:i}", KEEL_CALL_VALUE, i));
    const bool list = !kind->operation && keel_model_calls_with_list(kind);
    *out = failed ? NULL
                  : json_pack(list ? "{s:[O],s:O}" : "{s:O,s:O}", "args", args, "kwargs", kwargs);
    json_decref(args);
    json_decref(kwargs);
    return *out ? KEEL_OK : keel_fail(KEEL_ENOMEM, "out of memory calling a %s", kind->type.name);
}

/* Adds a layer and its first call. */
static keel_status add_with(keel_model *m, const char *class_name, const json_t *config,
                            const keel_arg *with, const keel_symbol *in, int n_in, keel_symbol *out)
{
    const keel_model_mark mark = keel_model_where(m);
    keel_symbol symbol = -1;
    int layer = -1;
    keel_status s = keel_model_new_layer(m, class_name, config, &layer);
    keel_model_call_of call = { .in = in, .n_in = n_in };
    if (s >= 0) s = keel_model_call_json(m->layer[layer].kind, with, n_in, &call.call);
    if (s >= 0) s = keel_model_new_node(m, layer, &call, &symbol);
    if (s >= 0) s = keel_model_fill_weights(m);
    if (s < 0)
        keel_model_back(m, mark);
    else
        *out = symbol;
    json_decref(call.call);
    return s;
}

static keel_status add(keel_model *m, const char *class_name, const json_t *config,
                       const keel_symbol *in, int n_in, keel_symbol *out)
{
    return add_with(m, class_name, config, NULL, in, n_in, out);
}

keel_status keel_model_add(keel_model *m, const char *layer, const keel_arg *args)
{
    keel_status s = KEEL_OK;
    json_t *config = NULL;
    keel_symbol last = m->n_symbol - 1, out = -1;
    const keel_model_mark mark = keel_model_where(m);
    const bool first = m->n_node == 0, is_input = !strcmp(layer, "InputLayer");
    if ((s = ready(m, true)) < 0) goto out;
    if (first != is_input) {
        s = keel_fail(KEEL_EARG,
                      first ? "the first layer must be an InputLayer with a shape, not a "
                              "%s"
                            : "a Sequential model has one %s, its first layer",
                      layer);
        goto out;
    }
    if ((s = become(m, true)) < 0) goto out;
    if ((s = keel_args_json(args, &config)) < 0) goto out;
    if ((s = add(m, layer, config, &last, !first, &out)) < 0) goto out;
    if ((s = keel_model_number(m)) < 0) goto out;
    s = first ? keel_model_put_symbols(&m->input, &m->n_input, &out, 1)
              : keel_model_put_symbols(&m->output, &m->n_output, &out, 1);
    m->finished = m->n_output > 0;
out:
    if (s < 0) keel_model_back(m, mark);
    json_decref(config);
    return s;
}

keel_status keel_model_input(keel_model *m, const keel_shape *shape, const keel_arg *args,
                             keel_symbol *out)
{
    keel_status s = KEEL_OK;
    json_t *config = NULL, *dims = NULL;
    const keel_model_mark mark = keel_model_where(m);
    keel_symbol symbol = -1, *inputs = NULL;
    if ((s = ready(m, false)) < 0) goto out;
    if (shape->rank < 0 || shape->rank > KEEL_RANK_MAX) {
        s = keel_fail(KEEL_EARG, "an input of %d dims: at most %d", shape->rank, KEEL_RANK_MAX);
        goto out;
    }
    if ((s = become(m, false)) < 0) goto out;
    if ((s = keel_args_json(args, &config)) < 0) goto out;
    dims = json_array();
    for (int i = 0; dims && i < shape->rank; i++)
        if (json_array_append_new(dims, keel_dim_json(shape->dim[i]))) {
            json_decref(dims);
            dims = NULL;
        }
    if (json_object_set_new(config, "shape", dims)) { /* a NULL fails too */
        s = keel_fail(KEEL_ENOMEM, "out of memory adding an input");
        goto out;
    }
    if ((s = add(m, "InputLayer", config, NULL, 0, &symbol)) < 0) goto out;
    inputs = keel_calloc((size_t)m->n_input + 1, sizeof *inputs);
    if (!inputs) {
        s = KEEL_ENOMEM;
        goto out;
    }
    for (int i = 0; i < m->n_input; i++) inputs[i] = m->input[i];
    inputs[m->n_input] = symbol;
    s = keel_model_put_symbols(&m->input, &m->n_input, inputs, m->n_input + 1);
    if (s >= 0) *out = symbol;
out:
    if (s < 0) keel_model_back(m, mark);
    keel_free(inputs);
    json_decref(config);
    return s;
}

keel_status keel_model_call(keel_model *m, const char *layer, const keel_arg *args,
                            const keel_symbol *in, int n_in, keel_symbol *out)
{
    return keel_model_call_with(m, layer, args, NULL, in, n_in, out);
}

keel_status keel_model_call_with(keel_model *m, const char *layer, const keel_arg *args,
                                 const keel_arg *with, const keel_symbol *in, int n_in,
                                 keel_symbol *out)
{
    json_t *config = NULL;
    KEEL_TRY(ready(m, false));
    if (!strcmp(layer, "InputLayer"))
        return keel_fail(KEEL_EARG, "an InputLayer is made by keel_model_input");
    KEEL_TRY(become(m, false));
    KEEL_TRY(keel_args_json(args, &config));
    const keel_status s = add_with(m, layer, config, with, in, n_in, out);
    json_decref(config);
    return s;
}

keel_status keel_model_call_again(keel_model *m, const char *layer_name, const keel_symbol *in,
                                  int n_in, keel_symbol *out)
{
    KEEL_TRY(ready(m, false));
    const int layer = keel_model_find_layer(m, layer_name);
    if (layer < 0) return keel_fail(KEEL_EARG, "there is no layer named '%s'", layer_name);
    const keel_model_call_of call = { .in = in, .n_in = n_in };
    return keel_model_new_node(m, layer, &call, out);
}

/* The arguments of a call of a model: training. */
static keel_status call_args(const keel_arg *args, bool *inference)
{
    for (; args && args->key; args++) {
        if (strcmp(args->key, "training") || args->kind != KEEL_ARG_IS_BOOL)
            return keel_fail(KEEL_EARG, "a model is called with training, true or false, not '%s'",
                             args->key);
        *inference = !args->number;
    }
    return KEEL_OK;
}

keel_status keel_model_call_model(keel_model *m, keel_model *inner, const keel_arg *args,
                                  const keel_symbol *in, int n_in, keel_symbol *out)
{
    keel_model_call_of call = { .in = in, .n_in = n_in };
    KEEL_TRY(ready(m, false));
    KEEL_TRY(keel_model_idle(inner, "keel_model_call_model"));
    keel_model_take_all_back(inner);
    KEEL_TRY(call_args(args, &call.inference));
    KEEL_TRY(become(m, false));
    return keel_model_take_in(m, inner, &call, out);
}

keel_status keel_model_outputs(keel_model *m, const keel_symbol *out, int n_out)
{
    keel_status s = KEEL_OK;
    KEEL_TRY(ready(m, false));
    if (n_out < 1 || n_out > KEEL_OUTPUTS_MAX)
        return keel_fail(KEEL_EARG, "%d outputs: there must be 1 to %d", n_out, KEEL_OUTPUTS_MAX);
    for (int i = 0; i < n_out; i++) {
        if (out[i] < 0 || out[i] >= m->n_symbol)
            return keel_fail(KEEL_EARG, "output %d is no symbol of this model", i);
        if (m->symbol[out[i]].spec.dtype == KEEL_STRING)
            return keel_fail(KEEL_EUNSUP, "output %d is of texts: a layer must look them up", i);
    }
    if ((s = keel_model_put_symbols(&m->output, &m->n_output, out, n_out)) < 0) return s;
    if ((s = keel_model_keras_order(m)) >= 0) s = keel_model_number(m);
    if (s >= 0) s = keel_model_name_outputs(m);
    if (s >= 0)
        m->finished = true;
    else
        m->n_output = 0;
    return s;
}
