/* See pairing.h. */
#include "train/pairing.h"
#include "base/memory.h"
#include <string.h>

const keel_type *keel_pairing_metric(const keel_model *m, const keel_model_metric *mm,
                                     const keel_spec *prediction, const keel_spec *target)
{
    const keel_object *loss = &m->compiled.loss[mm->output];
    if (mm->metric.type) return mm->metric.type;
    const char *name =
        keel_metric_resolve(mm->name, loss->type ? loss->type->name : "", prediction, target);
    return name ? keel_metric_find(name) : NULL;
}

/* ---- choice of fields ------------------------------------------------------------------------ */

static const keel_data_field *field_of(const keel_dataset *d, int i)
{
    return &d->origin->spec.field[i];
}

static int find(const keel_dataset *d, keel_data_role role, const char *path)
{
    for (int i = 0; i < d->origin->spec.n_field; i++)
        if (field_of(d, i)->role == role && !strcmp(field_of(d, i)->path, path)) return i;
    return -1;
}

/* The index of the nth field of a role, or -1. */
static int nth(const keel_dataset *d, keel_data_role role, int n)
{
    for (int i = 0; i < d->origin->spec.n_field; i++)
        if (field_of(d, i)->role == role && n-- == 0) return i;
    return -1;
}

static int count(const keel_dataset *d, keel_data_role role)
{
    int n = 0;
    while (nth(d, role, n) >= 0) n++;
    return n;
}

static void list(char *text, size_t size, const keel_dataset *d, keel_data_role role)
{
    size_t at = 0;
    text[0] = 0;
    for (int i = 0, k; (k = nth(d, role, i)) >= 0 && at + 1 < size; i++) {
        const int n = snprintf(text + at, size - at, "%s'%s'", i ? ", " : "", field_of(d, k)->path);
        at += n < 0 ? 0 : (size_t)n;
    }
}

/* The field of an input or output: by its name, or its path in a structure. */
static int find_end(const keel_model *m, const keel_dataset *d, keel_data_role role, int end)
{
    const bool input = role == KEEL_ROLE_INPUT;
    char path[256];
    const int field =
        find(d, role, input ? keel_model_input_name(m, end) : keel_model_output_name(m, end));
    if (field >= 0) return field;
    keel_model_path_text(path, sizeof path, input ? m->input_paths : m->output_paths, end, NULL);
    return *path ? find(d, role, path) : -1;
}

/* Choose the fields of a role for `n` named inputs or outputs of the model: by name if every name
 * is the path of a field, else in order if the numbers are equal (and no target has a name of the
 * model). */
static keel_status choose(int *field, const keel_model *m, const keel_dataset *d,
                          keel_data_role role, const int *end, int n)
{
    const bool input = role == KEEL_ROLE_INPUT;
    const int have = count(d, role);
    char names[256];
    int missing = -1, found = 0;
    for (int i = 0; i < n; i++) {
        field[i] = find_end(m, d, role, end[i]);
        if (field[i] >= 0)
            found++;
        else if (missing < 0)
            missing = i;
    }
    if (found == n) return KEEL_OK;
    if (!input && have == 0)
        return keel_fail(KEEL_EDATA,
                         "%s: has no targets (y) to compare predictions with; if they have another "
                         "name, label (--label) gives it",
                         keel_dataset_name(d));
    list(names, sizeof names, d, role);
    if (!input && found)
        return keel_fail(KEEL_EDATA, "%s: has no target '%s', which model '%s' compares; it has %s",
                         keel_dataset_name(d), keel_model_output_name(m, end[missing]),
                         keel_model_name(m), names);
    const char *const what = input       ? have == 1 ? "input" : "inputs"
                             : have == 1 ? "target"
                                         : "targets";
    if (have != n)
        return keel_fail(KEEL_EDATA,
                         "%s: rows have %d %s (%s), but model '%s' %s %d, the first is '%s'; name "
                         "the fields as the model does",
                         keel_dataset_name(d), have, what, names, keel_model_name(m),
                         input ? "takes" : "compares", n,
                         input ? keel_model_input_name(m, end[0])
                               : keel_model_output_name(m, end[0]));
    for (int i = 0; i < n; i++) field[i] = nth(d, role, i);
    return KEEL_OK;
}

/* ---- checks of shapes and types -------------------------------------------------------------- */

/* True if rows of shape `data` can feed `model`: (28, 28) can feed (28, 28, 1), which has the same
 * numbers in the same order. Open dims of the model become those of the data. */
static bool fits(const keel_shape *data, const keel_shape *model, keel_shape *taken)
{
    *taken = *model;
    for (int i = 0; i < data->rank || i < model->rank; i++) {
        const int64_t has = i < data->rank ? data->dim[i] : 1;
        const int64_t wants = i < model->rank ? model->dim[i] : 1;
        if (has != wants && wants != KEEL_DIM_OPEN) return false;
        if (i < model->rank) taken->dim[i] = has;
    }
    return true;
}

/* The type in which an input is fed, if the model takes `model` and the data have `data`. Integers
 * keep their type, so that they stay exact; bytes that stand for real numbers (images) are widened
 * by the first op. */
static keel_dtype fed_type(const keel_model *m, keel_dtype model, keel_dtype data)
{
    if (!keel_dtype_flows(model)) return keel_dtype_is_real(data) ? model : data;
    return data == KEEL_UINT8 ? data : m->dtype;
}

static keel_status pair_inputs(keel_pairing *p, const keel_model *m, const keel_dataset *d)
{
    int end[KEEL_FIELDS_MAX] = { 0 };
    char have[96], want[96];
    if (m->n_input > KEEL_FIELDS_MAX)
        return keel_fail(KEEL_EUNSUP, "model '%s' has %d inputs; a row has at most %d fields",
                         keel_model_name(m), m->n_input, KEEL_FIELDS_MAX);
    for (int i = 0; i < m->n_input; i++) end[i] = i;
    KEEL_TRY(choose(p->input, m, d, KEEL_ROLE_INPUT, end, m->n_input));
    for (int i = 0; i < m->n_input; i++) {
        const keel_data_field *f = field_of(d, p->input[i]);
        const keel_shape *own = &keel_model_spec(m, m->input[i])->shape;
        keel_shape shape;
        if (!fits(&f->shape, own, &shape)) {
            keel_shape_text(have, &f->shape);
            keel_shape_text(want, own);
            if (m->n_input == 1)
                return keel_fail(KEEL_ESHAPE, "%s: rows have shape %s, but model '%s' takes %s",
                                 keel_dataset_name(d), have, keel_model_name(m), want);
            return keel_fail(KEEL_ESHAPE,
                             "%s: '%s' has rows of shape %s, but input '%s' of model '%s' takes %s",
                             keel_dataset_name(d), f->path, have, keel_model_input_name(m, i),
                             keel_model_name(m), want);
        }
        const keel_dtype takes = keel_model_spec(m, m->input[i])->dtype;
        const bool texts = f->dtype == KEEL_STRING;
        if ((takes == KEEL_STRING) != texts)
            return keel_fail(KEEL_EDATA,
                             "%s: field '%s' has %s, but input '%s' of model '%s' takes %s",
                             keel_dataset_name(d), f->path, texts ? "texts" : "numbers",
                             keel_model_input_name(m, i), keel_model_name(m),
                             texts ? "numbers; TextVectorization or StringLookup in a pipeline "
                                     "file makes them, or --vocabulary for a column of a table"
                                   : "texts");
        const keel_dtype dtype = fed_type(m, takes, f->dtype);
        p->want[p->input[i]] = dtype;
        p->input_spec[i] = (keel_spec){ .dtype = dtype, .shape = shape };
        p->unwanted &= ~(UINT64_C(1) << p->input[i]);
    }
    return KEEL_OK;
}

/* True if all losses and metrics of an output take class numbers; integer targets then keep their
 * type. */
static bool takes_labels(const keel_model *m, int output, const keel_spec *prediction,
                         const keel_spec *target)
{
    const keel_object *loss = &m->compiled.loss[output];
    if (loss->type && !keel_target_is_labels(((const keel_loss *)loss->type)->target)) return false;
    for (int i = 0; i < m->compiled.n_metric; i++) {
        const keel_model_metric *mm = &m->compiled.metric[i];
        if (mm->output != output) continue;
        const keel_metric *metric =
            (const keel_metric *)keel_pairing_metric(m, mm, prediction, target);
        if (!metric || !keel_target_is_labels(metric->loss ? metric->loss->target : metric->target))
            return false;
    }
    return true;
}

static void pair_weight(keel_pairing *p, const keel_model *m, const keel_dataset *d, int output)
{
    const char *target = field_of(d, p->target[output])->path;
    int found = -1;
    for (int i = 0, k; (k = nth(d, KEEL_ROLE_WEIGHT, i)) >= 0; i++) {
        const char *of = field_of(d, k)->target;
        if (!of ? found < 0 : !strcmp(of, target)) found = k;
    }
    p->weight[output] = found;
    p->weight_spec[output] = (keel_spec){ .dtype = m->dtype };
    if (found < 0) return;
    p->weight_spec[output].shape = field_of(d, found)->shape;
    p->want[found] = m->dtype;
    p->unwanted &= ~(UINT64_C(1) << found);
}

/* The outputs that have a loss or a metric. */
static int scored_outputs(const keel_model *m, int *end)
{
    int n = 0;
    for (int k = 0; k < m->n_output && k < KEEL_OUTPUTS_MAX; k++) {
        bool scored = m->compiled.loss[k].type != NULL;
        for (int i = 0; i < m->compiled.n_metric; i++)
            scored = scored || m->compiled.metric[i].output == k;
        if (scored) end[n++] = k;
    }
    return n;
}

static void take_target(keel_pairing *p, const keel_model *m, int output, int field,
                        const keel_shape *shape, keel_dtype dtype)
{
    const keel_spec prediction = { m->dtype, keel_model_spec(m, m->output[output])->shape };
    keel_spec *target = &p->target_spec[output];
    p->target[output] = field;
    *target = (keel_spec){ .dtype = dtype, .shape = *shape };
    if (keel_dtype_is_real(dtype) || !takes_labels(m, output, &prediction, target))
        target->dtype = m->dtype;
    if (field < 0) return;
    p->want[field] = target->dtype;
    p->unwanted &= ~(UINT64_C(1) << field);
}

/* Of an output that has only metrics which Keel has not, the target is for callbacks that see rows:
 * they may compute these. */
static void pair_left_out(keel_pairing *p, const keel_model *m, const keel_dataset *d)
{
    for (int k = 0; k < m->n_output && k < KEEL_OUTPUTS_MAX; k++) {
        if (!m->compiled.left_out_of[k] || p->target[k] >= 0) continue;
        const int field = find_end(m, d, KEEL_ROLE_TARGET, k);
        if (field < 0) continue;
        take_target(p, m, k, field, &field_of(d, field)->shape, field_of(d, field)->dtype);
        pair_weight(p, m, d, k);
    }
}

static keel_status pair_targets(keel_pairing *p, const keel_model *m, const keel_dataset *d)
{
    int end[KEEL_OUTPUTS_MAX] = { 0 }, field[KEEL_OUTPUTS_MAX];
    const int n = scored_outputs(m, end);
    KEEL_TRY(choose(field, m, d, KEEL_ROLE_TARGET, end, n));
    for (int i = 0; i < n; i++) {
        const keel_data_field *f = field_of(d, field[i]);
        take_target(p, m, end[i], field[i], &f->shape, f->dtype);
        pair_weight(p, m, d, end[i]);
    }
    pair_left_out(p, m, d);
    return KEEL_OK;
}

/* What makes input `input` of the graph, by its number; -1: it is an input of the model. Those come
 * first, in the model's order. */
static int host_of(const keel_graph *g, int input)
{
    for (int i = 0; i < g->n_host; i++)
        if (g->host[i].input == input) return i;
    return -1;
}

/* Where rows differ in length, so does what is made of each place of them. */
static keel_status open_made(keel_pairing *p, const keel_graph *g, int i, const keel_shape *other,
                             const keel_model *m)
{
    keel_feed_made *made = &p->made[i];
    int input = g->host[i].of[0];
    const int from = host_of(g, input);
    const keel_shape *of = from < 0 ? &p->input_spec[input].shape : &p->made[from].shape;
    bool good = made->shape.rank == other->rank;
    for (int d = 0; good && d < other->rank; d++) {
        if (made->shape.dim[d] == other->dim[d]) continue;
        made->shape.dim[d] = KEEL_DIM_OPEN;
        good = made->shape.rank == of->rank && of->dim[d] == KEEL_DIM_OPEN;
    }
    if (good) return KEEL_OK;
    for (int h = from; h >= 0; h = host_of(g, input)) input = g->host[h].of[0];
    return keel_fail(KEEL_EUNSUP,
                     "model '%s' looks up rows of '%s', which differ in length, and makes "
                     "something else than one number of each place: not supported",
                     keel_model_name(m), keel_model_input_name(m, input));
}

/* The fields that the model's layers make of others: it is emitted to learn which, with `dim` in
 * place of dims that are open. The second time, with another one, says which dims of theirs are. */
static keel_status pair_made(keel_pairing *p, const keel_model *m, int64_t dim, bool compare)
{
    keel_status s;
    keel_spec specs[KEEL_FIELDS_MAX];
    keel_value *end = keel_calloc((size_t)(m->n_input + m->n_output), sizeof *end);
    if (!end) return KEEL_ENOMEM;
    for (int i = 0; i < m->n_input && i < KEEL_FIELDS_MAX; i++) {
        specs[i] = p->input_spec[i];
        specs[i].shape = keel_shape_closed(&specs[i].shape, dim);
    }
    keel_model_emission e = {
        .real = m->dtype, .specs = specs, .input = end, .output = end + m->n_input
    };
    if ((s = keel_model_emit(m, &e)) < 0) goto out;
    if (e.graph->n_host > KEEL_FIELDS_MAX) {
        s = keel_fail(KEEL_EUNSUP, "model '%s' looks up more than %d fields", keel_model_name(m),
                      KEEL_FIELDS_MAX);
        goto out;
    }
    for (int i = 0; i < e.graph->n_host; i++) {
        const keel_graph_host *h = &e.graph->host[i];
        const keel_spec *spec = keel_graph_spec(e.graph, keel_graph_input_value(e.graph, h->input));
        if (compare) {
            s = open_made(p, e.graph, i, &spec->shape, m);
            if (s < 0) goto out;
            continue;
        }
        keel_feed_made *made = &p->made[p->n_made++];
        *made = (keel_feed_made){ .n_of = h->n_of,
                                  .op = h->op,
                                  .args = h->args,
                                  .dtype = spec->dtype,
                                  .shape = spec->shape };
        for (int k = 0; k < h->n_of; k++) {
            const int from = host_of(e.graph, h->of[k]);
            made->of[k] = from < 0 ? p->input[h->of[k]] : p->n_field + from;
        }
    }
out:
    keel_graph_destroy(e.graph);
    keel_free(end);
    return s;
}

static keel_status pair_all_made(keel_pairing *p, const keel_model *m)
{
    static const int64_t tried[2] = { 40320, 80640 }; /* as in model/build.c */
    bool open = false;
    if (!keel_model_reads_rows(m)) return KEEL_OK;
    for (int i = 0; i < m->n_input; i++) open = open || keel_shape_is_open(&p->input_spec[i].shape);
    KEEL_TRY(pair_made(p, m, tried[0], false));
    return open ? pair_made(p, m, tried[1], true) : KEEL_OK;
}

static void clear(keel_pairing *p, int n_field, keel_dtype real)
{
    *p = (keel_pairing){ .n_field = n_field, .unwanted = ~UINT64_C(0) };
    for (int i = 0; i < KEEL_OUTPUTS_MAX; i++) p->target[i] = p->weight[i] = -1;
    for (int i = 0; i < KEEL_FIELDS_MAX; i++) p->want[i] = real;
}

keel_status keel_pairing_make(keel_pairing *out, const keel_model *m, const keel_dataset *d,
                              bool scored)
{
    keel_pairing p;
    if (!m->finished)
        return keel_fail(KEEL_EARG, "model '%s' is not finished: it has no outputs yet",
                         m->name ? m->name : "");
    clear(&p, d->origin->spec.n_field, m->dtype);
    KEEL_TRY(pair_inputs(&p, m, d));
    KEEL_TRY(pair_all_made(&p, m));
    p.scored = scored;
    if (scored) KEEL_TRY(pair_targets(&p, m, d));
    for (int i = 0; i < p.n_field; i++)
        if (!(p.unwanted >> i & 1) && keel_shape_is_open(&field_of(d, i)->shape))
            p.open |= UINT64_C(1) << i;
    *out = p;
    return KEEL_OK;
}

keel_status keel_pairing_close(keel_pairing *out, const keel_pairing *p, const keel_model *m,
                               const keel_data_field *batch)
{
    *out = *p;
    for (int i = 0; i < m->n_input; i++) {
        keel_shape *shape = &out->input_spec[i].shape;
        char have[96], want[96];
        if (fits(&batch[p->input[i]].shape, &p->input_spec[i].shape, shape)) continue;
        keel_shape_text(have, &batch[p->input[i]].shape);
        keel_shape_text(want, &p->input_spec[i].shape);
        return keel_fail(KEEL_ESHAPE, "rows of '%s' have shape %s in this batch, not %s",
                         batch[p->input[i]].path, have, want);
    }
    for (int k = 0; k < KEEL_OUTPUTS_MAX && p->scored; k++) {
        if (p->target[k] < 0) continue;
        out->target_spec[k].shape = batch[p->target[k]].shape;
        if (p->weight[k] >= 0) out->weight_spec[k].shape = batch[p->weight[k]].shape;
    }
    return KEEL_OK;
}

static keel_status close_input(const keel_model *m, int i, const keel_shape *inputs,
                               keel_shape *shape)
{
    char want[96], given[96];
    const char *name = keel_model_input_name(m, i);
    keel_shape_text(want, shape);
    if (!inputs || inputs[i].rank < 0)
        return keel_fail(KEEL_ESHAPE,
                         "input '%s' of model '%s' takes rows of %s: give the shape to plan for",
                         name, keel_model_name(m), want);
    keel_shape_text(given, &inputs[i]);
    bool good = inputs[i].rank == shape->rank;
    for (int d = 0; good && d < shape->rank; d++) {
        const int64_t dim = inputs[i].dim[d];
        good = dim > 0 && (shape->dim[d] == KEEL_DIM_OPEN || shape->dim[d] == dim);
    }
    if (!good)
        return keel_fail(KEEL_ESHAPE, "rows of shape %s do not fit input '%s' of model '%s', %s",
                         given, name, keel_model_name(m), want);
    *shape = inputs[i];
    return KEEL_OK;
}

/* The shapes of all outputs for inputs of these shapes. */
static keel_status output_shapes(const keel_model *m, const keel_spec *inputs, keel_shape *output)
{
    bool open = false;
    for (int i = 0; i < m->n_output && i < KEEL_OUTPUTS_MAX; i++) {
        output[i] = keel_model_spec(m, m->output[i])->shape;
        open = open || keel_shape_is_open(&output[i]);
    }
    if (!open) return KEEL_OK;
    keel_status s = KEEL_ENOMEM;
    keel_value *values = keel_calloc((size_t)m->n_input + (size_t)m->n_output, sizeof *values);
    if (!values) return s;
    keel_model_emission e = {
        .real = m->dtype, .specs = inputs, .input = values, .output = values + m->n_input
    };
    if ((s = keel_model_emit(m, &e)) >= 0)
        for (int i = 0; i < m->n_output && i < KEEL_OUTPUTS_MAX; i++)
            output[i] = keel_graph_spec(e.graph, e.output[i])->shape;
    keel_graph_destroy(s < 0 ? NULL : e.graph);
    keel_free(values);
    return s;
}

/* Pair the model with targets that its losses accept; the type of the targets hardly affects a
 * plan. */
keel_status keel_pairing_guess(keel_pairing *out, const keel_model *m, const keel_shape *inputs)
{
    keel_pairing p;
    int end[KEEL_OUTPUTS_MAX] = { 0 };
    keel_shape output[KEEL_OUTPUTS_MAX];
    if (!m->finished)
        return keel_fail(KEEL_EARG, "model '%s' is not finished: it has no outputs yet",
                         m->name ? m->name : "");
    clear(&p, 0, m->dtype);
    for (int i = 0; i < m->n_input && i < KEEL_FIELDS_MAX; i++) {
        const keel_spec *own = keel_model_spec(m, m->input[i]);
        p.input_spec[i] = (keel_spec){ fed_type(m, own->dtype, own->dtype), own->shape };
        if (keel_shape_is_open(&own->shape) || (inputs && inputs[i].rank > 0))
            KEEL_TRY(close_input(m, i, inputs, &p.input_spec[i].shape));
    }
    KEEL_TRY(output_shapes(m, p.input_spec, output));
    KEEL_TRY(pair_all_made(&p, m));
    p.scored = true;
    const int n = scored_outputs(m, end);
    for (int i = 0; i < n; i++) {
        const keel_object *o = &m->compiled.loss[end[i]];
        const keel_loss *loss = (const keel_loss *)o->type;
        keel_shape shape = output[end[i]];
        if (loss && keel_target_is_labels(loss->target) && shape.rank > 0) shape.rank--;
        const keel_model *program = m->compiled.values[end[i]];
        const keel_shape *own =
            program ? &keel_model_spec(program, program->input[0])->shape : NULL;
        if (own && !keel_shape_is_open(own)) shape = *own;
        take_target(&p, m, end[i], -1, &shape, m->dtype);
        p.target[end[i]] = 0;
        p.weight_spec[end[i]] = (keel_spec){ .dtype = m->dtype };
    }
    *out = p;
    return KEEL_OK;
}
