/* A whole model as a stage: Keras's ds.map(lambda x, y: (model(x, training=True), y)). Its inputs
 * are fields by name, or all inputs of a row in their order; its outputs take their place. */
#include "model/lend.h"
#include "data/each.h"
#include "keel/pipeline.h"
#include "model/live.h"
#include "train/stages/change.h"
#include "train/stages/model_stage.h"
#include <string.h>

typedef struct model_args {
    char *file;
    bool training;
    keel_model *model; /* from C, borrowed; NULL: that of the file */
} model_args;

#define T model_args
static const keel_field fields[] = {
    KEEL_STRING(T, file, "null", "the .keras file of the model"),
    KEEL_BOOL(T, training, "true", "false: as the model predicts"),
    { .key = NULL },
};
#undef T

/* The n-th input of a row; -1: there are fewer. */
static int nth_input(const keel_data_spec *spec, int n)
{
    for (int i = 0; i < spec->n_field; i++)
        if (spec->field[i].role == KEEL_ROLE_INPUT && n-- == 0) return i;
    return -1;
}

static keel_status find_inputs(const keel_model *m, const keel_data_spec *spec, int *in)
{
    int found = 0;
    for (int i = 0; i < m->n_input; i++) {
        in[i] = keel_change_find(spec, keel_model_input_name(m, i));
        found += in[i] >= 0;
    }
    if (found == m->n_input) return KEEL_OK;
    for (int i = 0; i < m->n_input; i++) in[i] = nth_input(spec, i);
    if (in[m->n_input - 1] >= 0 && nth_input(spec, m->n_input) < 0) return KEEL_OK;
    return keel_fail(KEEL_EARG,
                     "model '%s' takes %d inputs, and rows have another number of them; name the "
                     "fields as the model does, the first is '%s'",
                     keel_model_name(m), m->n_input, keel_model_input_name(m, 0));
}

static const char *output_name(const keel_model *m, const keel_data_spec *spec, const int *in,
                               int i)
{
    const bool alike = m->n_output == 1 || m->n_output == m->n_input;
    return alike ? spec->field[in[i]].path : keel_model_output_name(m, i);
}

/* Outputs stand where the first input was; other inputs of the model are gone. */
static keel_status lay_out(keel_change_plan *p, const keel_data_spec *spec)
{
    const keel_model *m = p->model;
    int *const in = p->call[0].in;
    KEEL_TRY(find_inputs(m, spec, in));
    p->n_call = 1;
    for (int i = 0; i < spec->n_field; i++) {
        bool taken = false;
        for (int k = 0; k < m->n_input; k++) taken = taken || in[k] == i;
        for (int k = 0; i == in[0] && k < m->n_output; k++) {
            if (p->n_field == KEEL_FIELDS_MAX)
                return keel_fail(KEEL_EUNSUP, "more than %d fields", KEEL_FIELDS_MAX);
            p->as[p->n_field] = spec->field[in[0]];
            p->as[p->n_field].path = output_name(m, spec, in, k);
            p->field[p->n_field++] = (keel_change_field){ .from = -1, .output = k };
        }
        if (taken) continue;
        if (p->n_field == KEEL_FIELDS_MAX)
            return keel_fail(KEEL_EUNSUP, "more than %d fields", KEEL_FIELDS_MAX);
        p->as[p->n_field] = spec->field[i];
        p->field[p->n_field++] = (keel_change_field){ .from = i };
    }
    return KEEL_OK;
}

static keel_status check(const keel_model *m)
{
    if (!m->finished || !m->n_output)
        return keel_fail(KEEL_EARG, "the model '%s' is not finished: it has no outputs yet",
                         keel_model_name(m));
    if (m->n_input < 1 || m->n_input > KEEL_FIELDS_MAX || m->n_output > KEEL_OUTPUTS_MAX)
        return keel_fail(KEEL_EUNSUP, "the model '%s' has %d inputs and %d outputs",
                         keel_model_name(m), m->n_input, m->n_output);
    return KEEL_OK;
}

static keel_status infer(keel_applied *s, keel_data_spec *spec)
{
    const model_args *a = s->args;
    keel_change_plan p = {
        .name = s->stage->type.name, .model = a->model, .owns = !a->model, .training = a->training
    };
    if (!a->model && !a->file) return keel_fail(KEEL_EARG, "give the `file` of the model");
    if (!a->model) KEEL_TRY(keel_model_load_without_state(&p.model, a->file));
    keel_status r = check(p.model);
    if (r >= 0) r = lay_out(&p, spec);
    if (r >= 0) return keel_change_infer(s, spec, &p);
    if (p.owns) keel_model_destroy(p.model);
    return r;
}

const keel_stage keel_model_stage = {
    .type = { .name = "model",
              .module = "keel.data",
              .help = "A model of layers that change rows; fields are its inputs by name, or in "
                      "their order.",
              .args_size = sizeof(model_args),
              .fields = fields },
    .n_parent = 1,
    .infer = infer,
    .is_random = keel_change_is_random,
    .read = keel_change_read,
    .length = keel_change_length,
    KEEL_EACH_STAGE,
    .make = keel_change_make,
    .needs = keel_change_needs,
    .release = keel_change_release,
};

keel_status keel_dataset_map_model(keel_dataset **out, keel_dataset *d, keel_model *m,
                                   bool training)
{
    if (!out || !d || !m) return keel_fail(KEEL_EARG, "model: out, d and m must not be NULL");
    KEEL_TRY(keel_model_idle(m, "keel_dataset_map_model"));
    keel_model_take_all_back(m);
    const model_args a = { .training = training, .model = m };
    return keel_stage_apply_args(out, &keel_model_stage, &a, &d, 1);
}
