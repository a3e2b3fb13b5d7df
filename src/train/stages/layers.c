/* Every layer of Keras's preprocessing as a stage, by the class's name and with its arguments: the
 * field table of the stage is that of the layer, followed by which fields it changes. */
#include "base/memory.h"
#include "base/round.h"
#include "data/each.h"
#include "model/parts.h"
#include "tensor/dtype.h"
#include "train/stages/change.h"
#include "train/stages/mixing.h"
#include "train/stages/model_stage.h"
#include <pthread.h>
#include <string.h>

extern const keel_layer *const keel_preprocessing_layers[]; /* ends with NULL; made by the build */
extern const keel_layer keel_layer_mix_up, keel_layer_cut_mix;

enum { FIELDS_MAX = 32, LAYERS_MAX = 80 };

/* Behind the arguments of the layer. */
typedef struct own_args {
    keel_texts field;
    char *to;
    bool training;
} own_args;

static const keel_field own_fields[] = {
    KEEL_TEXTS(own_args, field, "null",
               "what is changed; several fields in the same way, or by a layer of several inputs "
               "together. null: the first input"),
    KEEL_STRING(own_args, to, "null", "a new field for the result; null: in place of the field"),
    KEEL_BOOL(own_args, training, "true", "false: as the layer is outside of training"),
};
enum { OWN_FIELDS = sizeof own_fields / sizeof *own_fields };

typedef struct layer_stage {
    keel_stage stage; /* first, so that a stage is its layer_stage */
    const keel_layer *layer;
    size_t own; /* where own_args are */
    keel_field field[FIELDS_MAX];
} layer_stage;

static layer_stage made[LAYERS_MAX];
static int n_made;
static pthread_once_t once = PTHREAD_ONCE_INIT;

/* ---- applying one ---------------------------------------------------------------------------- */

static keel_status add_input(keel_model *m, const keel_data_field *f, keel_symbol *out)
{
    const bool real = keel_dtype_is_real(f->dtype) || f->dtype == KEEL_UINT8;
    const char *dtype = real ? "float32" : keel_dtype_name(f->dtype);
    return keel_model_input(m, &f->shape, KEEL_ARGS(KEEL_ARG_STR("dtype", dtype)), out);
}

static keel_status add_layer(keel_model *m, const keel_layer *l, const void *args,
                             const keel_symbol *in, int n_in)
{
    keel_layer_common common = { .name = l->type.name, .trainable = true, .compute = KEEL_FLOAT32 };
    keel_symbol out;
    json_t *config;
    int layer;
    KEEL_TRY(keel_layer_config(l, args, &common, &config));
    keel_status s = keel_model_new_layer(m, l->type.name, config, &layer);
    json_decref(config);
    const keel_model_call_of call = { .in = in, .n_in = n_in };
    if (s >= 0) s = keel_model_new_node(m, layer, &call, &out);
    return s < 0 ? s : keel_model_outputs(m, &out, 1);
}

/* What it would have learned is an argument here. Only the waves of a Fourier transform are
 * weights that need no learning. */
static keel_status make_weights(keel_model *m, const keel_layer *l)
{
    if (m->n_weight && !strcmp(l->type.name, "Normalization"))
        return keel_fail(KEEL_EARG, "it has no statistics: give mean and variance, as adapt() has "
                                    "found them in Keras");
    for (int i = 0; i < m->n_weight; i++)
        if (m->weight[i].initializer.type != keel_initializer_find("STFT"))
            return keel_fail(KEEL_EUNSUP, "it has weights, which a stage cannot learn");
    return keel_model_fill_weights(m);
}

static keel_status make_model(keel_model **out, const keel_layer *l, const void *args,
                              const keel_data_field *const *field, int n)
{
    keel_model *m;
    keel_symbol in[KEEL_FIELDS_MAX];
    KEEL_TRY(keel_model_create(&m, l->type.name, KEEL_FLOAT32, 0));
    keel_status s = KEEL_OK;
    for (int i = 0; i < n && s >= 0; i++) s = add_input(m, field[i], &in[i]);
    if (s >= 0) s = add_layer(m, l, args, in, n);
    if (s >= 0) s = make_weights(m, l);
    if (s < 0)
        keel_model_destroy(m);
    else
        *out = m;
    return s;
}

/* The fields that are changed. */
static keel_status find_fields(const own_args *a, const keel_data_spec *spec, int *field, int *n)
{
    *n = a->field.count ? a->field.count : 1;
    if (*n > KEEL_FIELDS_MAX)
        return keel_fail(KEEL_EARG, "field: at most %d names", KEEL_FIELDS_MAX);
    field[0] = keel_spec_first(spec, KEEL_ROLE_INPUT);
    if (!a->field.count && field[0] < 0)
        return keel_fail(KEEL_EARG, "rows have no input: say which `field`");
    for (int i = 0; i < a->field.count; i++) {
        field[i] = keel_change_find(spec, a->field.at[i]);
        if (field[i] < 0) return keel_change_no_field(spec, a->field.at[i]);
        for (int k = 0; k < i; k++)
            if (field[k] == field[i])
                return keel_fail(KEEL_EARG, "field: '%s' stands there twice", a->field.at[i]);
    }
    return KEEL_OK;
}

/* The result has the fields of the rows, changed ones in their places, and the new one behind. */
static keel_status lay_out(keel_change_plan *p, const own_args *a, const keel_data_spec *spec,
                           const int *field, int n, bool each)
{
    p->n_call = each ? n : 1;
    for (int i = 0; i < n; i++) p->call[each ? i : 0].in[each ? 0 : i] = field[i];
    p->n_field = spec->n_field;
    for (int i = 0; i < spec->n_field; i++) {
        p->field[i] = (keel_change_field){ .from = i };
        p->as[i] = spec->field[i];
    }
    if (!a->to) {
        for (int k = 0; k < p->n_call; k++)
            p->field[field[k]] = (keel_change_field){ .from = -1, .call = k };
        return KEEL_OK;
    }
    if (p->n_call > 1)
        return keel_fail(KEEL_EARG, "`to` is one field, and %d are changed", p->n_call);
    if (keel_change_find(spec, a->to) >= 0)
        return keel_fail(KEEL_EARG, "to: there is a field '%.60s' already", a->to);
    if (p->n_field == KEEL_FIELDS_MAX)
        return keel_fail(KEEL_EUNSUP, "rows have %d fields already", KEEL_FIELDS_MAX);
    p->as[p->n_field] = spec->field[field[0]];
    p->as[p->n_field].path = a->to;
    p->field[p->n_field++] = (keel_change_field){ .from = -1 };
    return KEEL_OK;
}

static keel_status infer(keel_applied *s, keel_data_spec *spec)
{
    const layer_stage *of = (const layer_stage *)(const void *)s->stage;
    const own_args *a = (const void *)((const char *)s->args + of->own);
    const keel_data_field *input[KEEL_FIELDS_MAX];
    keel_change_plan p = { .name = s->stage->type.name, .owns = true, .training = a->training };
    int field[KEEL_FIELDS_MAX], n;
    const bool each = of->layer->max_inputs == 1;
    KEEL_TRY(find_fields(a, spec, field, &n));
    if (!each && n < of->layer->min_inputs)
        return keel_fail(KEEL_EARG, "it takes %d fields or more: field = [\"a\", \"b\"]",
                         of->layer->min_inputs);
    KEEL_TRY(lay_out(&p, a, spec, field, n, each));
    for (int i = 1; i < n && each; i++)
        if (spec->field[field[i]].shape.rank != spec->field[field[0]].shape.rank)
            return keel_fail(KEEL_ESHAPE, "'%s' and '%s' differ in their number of dims",
                             spec->field[field[0]].path, spec->field[field[i]].path);
    /* one model serves fields that differ in shape: their dims are then open */
    keel_data_field first = spec->field[field[0]];
    for (int i = 1; i < n && each; i++)
        for (int d = 0; d < first.shape.rank; d++)
            if (spec->field[field[i]].shape.dim[d] != first.shape.dim[d])
                first.shape.dim[d] = KEEL_DIM_OPEN;
    for (int i = 0; i < n; i++) input[i] = each ? &first : &spec->field[field[i]];
    KEEL_TRY(make_model(&p.model, of->layer, s->args, input, each ? 1 : n));
    return keel_change_infer(s, spec, &p);
}

/* ---- the list -------------------------------------------------------------------------------- */

static const keel_stage changing = {
    .n_parent = 1,
    .rowwise = true,
    .infer = infer,
    .is_random = keel_change_is_random,
    .read = keel_change_read,
    .length = keel_change_length,
    KEEL_EACH_STAGE,
    .make = keel_change_make,
    .needs = keel_change_needs,
    .release = keel_change_release,
};

static int count_fields(const keel_field *f)
{
    int n = 0;
    while (f && f[n].key) n++;
    return n;
}

static void make_stage(layer_stage *x, const keel_layer *l)
{
    const bool mixes = l == &keel_layer_mix_up || l == &keel_layer_cut_mix;
    const int n = count_fields(l->type.fields);
    x->stage = mixes ? keel_mixing_stage : changing;
    x->stage.type = l->type;
    x->layer = l;
    x->own = (size_t)keel_round_up((int64_t)l->type.args_size, 16);
    memcpy(x->field, l->type.fields, (size_t)n * sizeof *x->field);
    if (mixes) return;
    memcpy(x->field + n, own_fields, sizeof own_fields);
    for (int i = 0; i < OWN_FIELDS; i++) x->field[n + i].offset += x->own;
    x->stage.type.fields = x->field;
    x->stage.type.args_size = x->own + sizeof(own_args);
}

static void make_all(void)
{
    for (int i = 0; keel_preprocessing_layers[i] && n_made < LAYERS_MAX; i++) {
        const keel_layer *l = keel_preprocessing_layers[i];
        if (count_fields(l->type.fields) + OWN_FIELDS >= FIELDS_MAX) continue; /* a test counts */
        make_stage(&made[n_made++], l);
    }
}

const keel_stage *keel_layer_stage(int i)
{
    pthread_once(&once, make_all);
    if (i == n_made) return &keel_model_stage;
    return i < n_made ? &made[i].stage : NULL;
}
