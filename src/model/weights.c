/* Looking at a model, and reading and setting its weights: counts, names, shapes, values, what is
 * frozen. */
#include "base/memory.h"
#include "base/text.h"
#include "model/lend.h"
#include "model/parts.h"
#include <stdio.h>
#include <string.h>

/* ---- looking --------------------------------------------------------------------------------- */

const char *keel_model_name(const keel_model *m)
{
    return m->name ? m->name : "";
}

int keel_model_layer_count(const keel_model *m)
{
    return m->n_layer;
}

int keel_model_input_count(const keel_model *m)
{
    return m->n_input;
}

int keel_model_output_count(const keel_model *m)
{
    return m->n_output;
}

const keel_spec *keel_model_spec(const keel_model *m, keel_symbol s)
{
    return s >= 0 && s < m->n_symbol ? &m->symbol[s].spec : NULL;
}

keel_status keel_model_input_shape(const keel_model *m, int input, keel_shape *out)
{
    if (input < 0 || input >= m->n_input)
        return keel_fail(KEEL_EARG, "there is no input %d: the model has %d", input, m->n_input);
    *out = m->symbol[m->input[input]].spec.shape;
    return KEEL_OK;
}

keel_status keel_model_output_shape(const keel_model *m, int output, keel_shape *out)
{
    if (output < 0 || output >= m->n_output)
        return keel_fail(KEEL_EARG, "there is no output %d: the model has %d", output, m->n_output);
    *out = m->symbol[m->output[output]].spec.shape;
    return KEEL_OK;
}

/* The key of an end in an object of ends without further levels, as Keras names their fields and
 * logs; else the name of its layer. */
static const char *end_name(const keel_model *m, const json_t *paths, keel_symbol s, int end)
{
    const json_t *path;
    bool flat = true;
    size_t i;
    json_array_foreach(paths, i, path) flat = flat && json_array_size(path) == 1;
    const char *key = json_string_value(json_array_get(json_array_get(paths, (size_t)end), 0));
    return flat && key ? key : m->layer[keel_model_maker(m, s)->layer].name;
}

const char *keel_model_input_name(const keel_model *m, int input)
{
    if (input < 0 || input >= m->n_input) return NULL;
    return end_name(m, m->input_paths, m->input[input], input);
}

/* True if an output before that one has this name, or any output by its own. */
static bool is_name_taken(const keel_model *m, const char *name, int before)
{
    for (int i = 0; i < m->n_output; i++)
        if ((i < before && !strcmp(m->output_name[i], name)) ||
            !strcmp(end_name(m, m->output_paths, m->output[i], i), name))
            return true;
    return false;
}

keel_status keel_model_name_outputs(keel_model *m)
{
    keel_free(m->output_name);
    m->output_name = keel_calloc((size_t)m->n_output, sizeof *m->output_name);
    if (!m->output_name) return KEEL_ENOMEM;
    for (int i = 0; i < m->n_output; i++) {
        const char *own = end_name(m, m->output_paths, m->output[i], i);
        keel_text t = { 0 };
        bool again = false;
        for (int k = 0; k < i; k++)
            again = again || !strcmp(end_name(m, m->output_paths, m->output[k], k), own);
        keel_text_add(&t, "%s", own);
        for (int k = 1; again && !t.failed && is_name_taken(m, t.data, i); k++) {
            t.length = 0;
            keel_text_add(&t, "%s_%d", own, k);
        }
        m->output_name[i] = t.failed ? NULL : keel_model_keep_name(m, t.data);
        keel_text_free(&t);
        if (!m->output_name[i]) return KEEL_ENOMEM;
    }
    return KEEL_OK;
}

const char *keel_model_output_name(const keel_model *m, int output)
{
    if (output < 0 || output >= m->n_output) return NULL;
    if (m->output_name) return m->output_name[output];
    return end_name(m, m->output_paths, m->output[output], output);
}

void keel_model_path_text(char *text, size_t size, const json_t *paths, int end, const char *last)
{
    const json_t *path = json_array_get(paths, (size_t)end), *step;
    size_t i, at = 0;
    text[0] = 0;
    json_array_foreach(path, i, step)
    {
        char place[24];
        const char *word = json_string_value(step);
        snprintf(place, sizeof place, "%d", (int)json_integer_value(step));
        if (!word) word = last && i + 1 == json_array_size(path) ? last : place;
        if (at < size) at += (size_t)snprintf(text + at, size - at, "%s%s", i ? "/" : "", word);
    }
}

const char *keel_model_layer_name(const keel_model *m, int layer)
{
    return layer >= 0 && layer < m->n_layer ? m->layer[layer].name : NULL;
}

const char *keel_model_layer_class(const keel_model *m, int layer)
{
    return layer >= 0 && layer < m->n_layer ? m->layer[layer].kind->type.name : NULL;
}

int64_t keel_model_count_params(const keel_model *m, int64_t *trainable)
{
    int64_t all = 0, moved = 0;
    for (int i = 0; i < m->n_weight; i++) {
        const int64_t n = keel_shape_count(&m->weight[i].info.spec.shape);
        all += n;
        if (m->weight[i].trainable) moved += n;
    }
    if (trainable) *trainable = moved;
    return all;
}

int keel_model_trainable_count(const keel_model *m)
{
    int n = 0;
    for (int i = 0; i < m->n_weight; i++) n += m->weight[i].trainable;
    return n;
}

int keel_model_trainable(const keel_model *m, int t)
{
    for (int i = 0; i < m->n_weight; i++)
        if (m->weight[i].trainable && t-- == 0) return i;
    return -1;
}

/* ---- values ---------------------------------------------------------------------------------- */

int keel_model_weight_count(const keel_model *m)
{
    return m->n_weight;
}

const char *keel_model_weight_name(const keel_model *m, int weight)
{
    return weight >= 0 && weight < m->n_weight ? m->weight[weight].info.name : NULL;
}

int keel_model_find_weight(const keel_model *m, const char *name)
{
    for (int i = 0; i < m->n_weight; i++)
        if (!strcmp(m->weight[i].info.name, name)) return i;
    return -1;
}

void keel_convert_reals(void *to, keel_dtype to_type, const void *from, keel_dtype from_type,
                        int64_t n)
{
    if (to_type == from_type)
        memcpy(to, from, (size_t)n * keel_dtype_size(to_type));
    else if (to_type == KEEL_FLOAT64)
        for (int64_t i = 0; i < n; i++) ((double *)to)[i] = ((const float *)from)[i];
    else
        for (int64_t i = 0; i < n; i++) ((float *)to)[i] = (float)((const double *)from)[i];
}

static keel_status find(const keel_model *m, const char *name, int *out)
{
    *out = keel_model_find_weight(m, name);
    if (*out >= 0) return KEEL_OK;
    return keel_fail(KEEL_EARG, "there is no weight '%s': names read 'dense/kernel'", name);
}

keel_status keel_model_get_weight(const keel_model *m, const char *name, keel_tensor *out)
{
    keel_tensor t = { 0 };
    int i;
    KEEL_TRY(find(m, name, &i));
    const keel_spec *spec = &m->weight[i].info.spec;
    KEEL_TRY(keel_tensor_create(&t, spec->dtype, &spec->shape));
    keel_model_pull(m, KEEL_LIVE_WEIGHTS);
    keel_convert_reals(t.data, spec->dtype, m->weight[i].data, spec->dtype,
                       keel_shape_count(&spec->shape));
    *out = t;
    return KEEL_OK;
}

keel_status keel_model_set_weight(keel_model *m, const char *name, const keel_tensor *value)
{
    char has[96], given[96];
    int i;
    KEEL_TRY(find(m, name, &i));
    const keel_spec *spec = &m->weight[i].info.spec;
    if (!keel_dtype_is_real(value->dtype))
        return keel_fail(KEEL_EUNSUP, "%s: the value must be float32 or float64, not %s", name,
                         keel_dtype_name(value->dtype));
    if (!keel_shape_equal(&spec->shape, &value->shape)) {
        keel_shape_text(has, &spec->shape);
        keel_shape_text(given, &value->shape);
        return keel_fail(KEEL_ESHAPE, "%s has the shape %s, the value %s", name, has, given);
    }
    keel_model_change(m, KEEL_LIVE_WEIGHTS);
    keel_convert_reals(m->weight[i].data, spec->dtype, value->data, value->dtype,
                       keel_shape_count(&spec->shape));
    m->changes++;
    return KEEL_OK;
}

/* Changes the types of all values of a model, and of those inside it. */
static void turn(keel_model *m, keel_dtype dtype)
{
    for (int i = 0; i < m->n_layer; i++) {
        keel_spec *input = &m->layer[i].input;
        if (keel_dtype_is_real(input->dtype)) input->dtype = dtype;
        if (m->layer[i].inner) turn(m->layer[i].inner, dtype);
    }
    for (int i = 0; i < m->n_symbol; i++) {
        keel_model_symbol *s = &m->symbol[i];
        if (keel_dtype_is_real(s->spec.dtype)) s->spec.dtype = dtype;
        s->mask.dtype = dtype;
    }
    m->dtype = dtype;
}

keel_status keel_model_set_dtype(keel_model *m, keel_dtype dtype)
{
    keel_status s = KEEL_OK;
    const int n = m->n_weight, n_all = n + m->compiled.n_state;
    void **data = NULL;
    KEEL_TRY(keel_model_idle(m, "keel_model_set_dtype"));
    if (!keel_dtype_is_real(dtype))
        return keel_fail(KEEL_EUNSUP, "a model computes in float32 or float64, not in %s",
                         keel_dtype_name(dtype));
    if (dtype == m->dtype) return KEEL_OK;
    data = keel_calloc((size_t)n_all, sizeof *data);
    if (!data) return KEEL_ENOMEM;
    keel_model_take_all_back(m);
    for (int i = 0; i < n_all; i++) {
        const keel_tensor *t = i < n ? NULL : &m->compiled.state[i - n];
        if (t && !t->data) continue; /* a slot without memory */
        const int64_t count = keel_shape_count(t ? &t->shape : &m->weight[i].info.spec.shape);
        data[i] = keel_aligned_calloc((size_t)count, keel_dtype_size(dtype));
        if (!data[i]) {
            s = KEEL_ENOMEM;
            goto out;
        }
        keel_convert_reals(data[i], dtype, t ? t->data : m->weight[i].data, m->dtype, count);
    }
    for (int i = 0; i < n_all; i++) {
        if (!data[i]) continue;
        void **place = i < n ? &m->weight[i].data : &m->compiled.state[i - n].data;
        void *old = *place;
        *place = data[i];
        data[i] = old;
        if (i < n)
            m->weight[i].info.spec.dtype = dtype;
        else
            m->compiled.state[i - n].dtype = dtype;
    }
    turn(m, dtype);
out:
    for (int i = 0; i < n_all; i++) keel_free(data[i]);
    keel_free(data);
    return s;
}

static void set_policy(keel_model *m, keel_dtype compute)
{
    m->compute = compute;
    for (int i = 0; i < m->n_layer; i++) {
        m->layer[i].compute = m->layer[i].kind->emit ? compute : KEEL_FLOAT32;
        if (m->layer[i].inner) set_policy(m->layer[i].inner, compute);
    }
}

keel_status keel_model_set_dtype_policy(keel_model *m, const char *policy)
{
    keel_dtype compute;
    KEEL_TRY(keel_model_idle(m, "keel_model_set_dtype_policy"));
    KEEL_TRY(keel_policy_find(policy, &compute));
    set_policy(m, compute);
    return KEEL_OK;
}

enum { PLAIN = 1, IN_BFLOAT16 = 2, IN_FLOAT16 = 4 };

/* The policies of all layers, as flags. */
static int policies_of(const keel_model *m)
{
    int all = 0;
    for (int i = 0; i < m->n_layer; i++) {
        const keel_model_layer *l = &m->layer[i];
        if (l->inner) all |= policies_of(l->inner);
        if (keel_model_layer_is_model(l) || !l->kind->emit) continue;
        all |= l->compute == KEEL_BFLOAT16  ? IN_BFLOAT16
               : l->compute == KEEL_FLOAT16 ? IN_FLOAT16
                                            : PLAIN;
    }
    return all;
}

const char *keel_model_dtype_policy(const keel_model *m)
{
    static const char *const names[] = { "float32",
                                         "float32",
                                         "mixed_bfloat16",
                                         "float32 and mixed_bfloat16",
                                         "mixed_float16",
                                         "float32 and mixed_float16",
                                         "mixed_bfloat16 and mixed_float16",
                                         "float32, mixed_bfloat16 and mixed_float16" };
    return m->dtype == KEEL_FLOAT64 ? "float64" : names[policies_of(m)];
}

/* ---- freezing -------------------------------------------------------------------------------- */

static bool freeze(keel_model_layer *l, bool trainable)
{
    bool changed = l->trainable != trainable;
    l->trainable = trainable;
    for (int i = 0; l->inner && i < l->inner->n_layer; i++)
        changed = freeze(&l->inner->layer[i], trainable) || changed;
    return changed;
}

keel_status keel_model_set_trainable(keel_model *m, const char *layer_name, bool trainable)
{
    keel_status s = KEEL_OK;
    keel_model_layer **all = NULL;
    keel_model *in = m;
    int only = -1, n = 0;
    bool changed = false, *before = NULL;
    KEEL_TRY(keel_model_idle(m, "keel_model_set_trainable"));
    if (layer_name && !keel_model_find_label(m, layer_name, &in, &only))
        return keel_fail(KEEL_EARG, "there is no layer named '%s'", layer_name);
    if ((s = keel_model_all_layers(m, &all, &n)) < 0) goto out;
    if (!(before = keel_calloc((size_t)n, sizeof *before))) {
        s = KEEL_ENOMEM;
        goto out;
    }
    for (int i = 0; i < n; i++) before[i] = all[i]->trainable;
    for (int i = 0; i < in->n_layer; i++)
        if (only < 0 || i == only) changed = freeze(&in->layer[i], trainable) || changed;
    keel_model_mark_trainable(m);
    if (changed && m->compiled.given) s = keel_model_state_reset(m);
    for (int i = 0; s < 0 && i < n; i++) all[i]->trainable = before[i];
    if (s < 0) keel_model_mark_trainable(m);
out:
    keel_free(all);
    keel_free(before);
    return s;
}

keel_status keel_model_get_trainable(const keel_model *m, const char *layer_name, bool *out)
{
    keel_model *in = NULL;
    int i = -1;
    if (!layer_name)
        return keel_fail(KEEL_EARG, "name a layer: NULL is all of them, which may differ");
    if (!keel_model_find_label(m, layer_name, &in, &i))
        return keel_fail(KEEL_EARG, "there is no layer named '%s'", layer_name);
    *out = in->layer[i].trainable;
    return KEEL_OK;
}
