/* Datasets: the part that is common to all sources. */
#include "base/memory.h"
#include "base/text.h"
#include "data/quarantine.h"
#include "data/stage.h"
#include "data/unknown.h"
#include "data/warnings.h"
#include "data/watchdog.h"
#include "tensor/dtype.h"
#include "tensor/shape.h"
#include <math.h>
#include <string.h>

keel_status keel_spec_add_all(keel_data_spec *s, int n, const keel_data_field *fields,
                              const char *name)
{
    if (n < 0 || n > KEEL_FIELDS_MAX - s->n_field)
        return keel_fail(KEEL_EARG, "%s: a row has at most %d fields", name, KEEL_FIELDS_MAX);
    for (int i = 0; i < n; i++) s->field[s->n_field++] = fields[i];
    return KEEL_OK;
}

void keel_spec_add_xy(keel_data_spec *s, const keel_data_field *x, const keel_data_field *y,
                      bool has_weight)
{
    keel_data_field *f = s->field;
    *f = *x;
    f->path = "x";
    f->role = KEEL_ROLE_INPUT;
    if (y) {
        *++f = *y;
        f->path = "y";
        f->role = KEEL_ROLE_TARGET;
    }
    if (has_weight) *++f = (keel_data_field){ .path = "sample_weight", .role = KEEL_ROLE_WEIGHT };
    s->n_field = (int)(f - s->field) + 1;
}

bool keel_spec_is_open(const keel_data_spec *s)
{
    for (int i = 0; i < s->n_field; i++)
        if (keel_shape_is_open(&s->field[i].shape)) return true;
    return false;
}

int keel_spec_first(const keel_data_spec *s, keel_data_role role)
{
    for (int i = 0; i < s->n_field; i++)
        if (s->field[i].role == role) return i;
    return -1;
}

static void spec_free(keel_data_spec *s)
{
    for (int i = 0; i < s->n_field; i++) {
        keel_free((char *)s->field[i].path);
        keel_free((char *)s->field[i].target);
    }
    for (int64_t i = 0; s->class_names && i < s->n_classes; i++) keel_free(s->class_names[i]);
    keel_free(s->class_names);
}

static void origin_release(keel_data_origin *o)
{
    if (!o || atomic_fetch_sub(&o->references, 1) > 1) return;
    if (o->state && o->source->close) o->source->close(o->state);
    spec_free(&o->spec);
    keel_free(o->name);
    keel_free(o->gone);
    keel_free(o->note);
    keel_warnings_destroy(o->warnings);
    keel_free(o);
}

/* Before row gone[i] there are gone[i] - i rows that stay. */
int64_t keel_dataset_kept(const keel_data_origin *o, int64_t k)
{
    int64_t low = 0, high = o->n_gone;
    while (low < high) {
        const int64_t middle = low + (high - low) / 2;
        if (o->gone[middle] - middle <= k)
            low = middle + 1;
        else
            high = middle;
    }
    return k + low;
}

static keel_status check_target(const keel_data_spec *s, int i, const char *name)
{
    const keel_data_field *w = &s->field[i];
    bool found = !w->target;
    for (int k = 0; k < s->n_field; k++) {
        const keel_data_field *f = &s->field[k];
        if (f->role == KEEL_ROLE_TARGET && w->target && !strcmp(f->path, w->target)) found = true;
        if (f->role != KEEL_ROLE_WEIGHT || k >= i) continue;
        if (!f->target || !w->target || !strcmp(f->target, w->target))
            return keel_fail(KEEL_EARG, "%s: '%s' and '%s' are weights of the same target", name,
                             f->path, w->path);
    }
    if (!found)
        return keel_fail(KEEL_EARG, "%s: '%s' has weights for '%s', but there is no such target",
                         name, w->path, w->target);
    return KEEL_OK;
}

static keel_status check_field(const keel_data_spec *s, int i, bool may_open, const char *name)
{
    const keel_data_field *f = &s->field[i];
    if ((unsigned)f->role > KEEL_ROLE_WEIGHT)
        return keel_fail(KEEL_EARG, "%s: the role of field '%s' must be input, target or weight",
                         name, f->path);
    if ((unsigned)f->dtype >= KEEL_DTYPE_COUNT)
        return keel_fail(KEEL_EARG, "%s: %s has no known dtype", name, f->path);
    for (int k = 0; k < i; k++)
        if (s->field[k].role == f->role && !strcmp(s->field[k].path, f->path))
            return keel_fail(KEEL_EARG, "%s: two fields are called '%s'", name, f->path);
    const keel_shape least = may_open ? keel_shape_closed(&f->shape, 1) : f->shape;
    const keel_status shape = keel_shape_check(&least, keel_dtype_size(f->dtype));
    if (shape < 0) return keel_fail_within(shape, "%s: %s", name, f->path);
    if (keel_shape_count(&least) < 1)
        return keel_fail(KEEL_ESHAPE, "%s: a row of %s has no element", name, f->path);
    if (f->role != KEEL_ROLE_WEIGHT) return KEEL_OK;
    if (f->dtype == KEEL_STRING)
        return keel_fail(KEEL_EARG, "%s: '%s' has texts as weights", name, f->path);
    return check_target(s, i, name);
}

static keel_status check_spec(const keel_data_spec *s, bool may_open, const char *name)
{
    for (int i = 0; i < s->n_field; i++) KEEL_TRY(check_field(s, i, may_open, name));
    if (keel_spec_first(s, KEEL_ROLE_INPUT) < 0)
        return keel_fail(KEEL_EARG, "%s: no field is an input", name);
    return KEEL_OK;
}

/* Copy a spec with all strings; the class names are moved, not copied. */
static keel_status spec_own(keel_data_spec *s, const keel_data_spec *from, bool may_open,
                            const char *name)
{
    *s = *from;
    for (int i = 0; i < s->n_field; i++) s->field[i].path = s->field[i].target = NULL;
    for (int i = 0; i < s->n_field; i++) {
        const keel_data_field *f = &from->field[i];
        if (!f->path || !*f->path) return keel_fail(KEEL_EARG, "%s: field %d has no name", name, i);
        if (!(s->field[i].path = keel_strdup(f->path)) ||
            (f->target && !(s->field[i].target = keel_strdup(f->target))))
            return KEEL_ENOMEM;
    }
    return check_spec(s, may_open, name);
}

keel_status keel_dataset_create(keel_dataset **out, const keel_source *source, void *state,
                                const keel_data_spec *spec, const char *name)
{
    keel_status s = KEEL_ENOMEM;
    keel_dataset *d = NULL;
    keel_data_origin *o = keel_calloc(1, sizeof *o);
    if (!o) {
        keel_data_spec lost = { .n_classes = spec->n_classes, .class_names = spec->class_names };
        if (state && source->close) source->close(state);
        spec_free(&lost);
        return s;
    }
    *o = (keel_data_origin){ .source = source, .state = state, .references = 1 };
    if ((s = spec_own(&o->spec, spec, source->length || spec->shaped, name)) < 0) goto out;
    s = KEEL_ENOMEM;
    o->name = keel_strdup(name);
    d = keel_calloc(1, sizeof *d);
    if (!o->name || !d) goto out;
    d->origin = o;
    d->rows = spec->rows;
    o = NULL;
    *out = d;
    d = NULL;
    s = KEEL_OK;
out:
    origin_release(o);
    keel_free(d);
    return s;
}

void keel_dataset_destroy(keel_dataset *d)
{
    if (!d) return;
    origin_release(d->origin);
    keel_split_order_release(d->order);
    keel_free(d);
}

keel_dataset *keel_dataset_share(const keel_dataset *d)
{
    keel_dataset *part = keel_calloc(1, sizeof *part);
    if (!part) return NULL;
    *part = *d;
    atomic_fetch_add(&d->origin->references, 1);
    keel_split_order_share(d->order);
    return part;
}

/* Rows of a pipeline stay where they are, or one that validates would also train. */
static keel_status check_order(const keel_dataset *d)
{
    const char *name = d->origin->name, *stage = keel_stage_reorders(d);
    const char *repeats = keel_stage_repeats(d);
    if (repeats)
        return keel_fail(KEEL_EUNSUP,
                         "%s: %s gives rows more than once, so the rows for validation would also "
                         "be trained with: leave it out, or give a second dataset for validation",
                         name, repeats);
    if (stage)
        return keel_fail(KEEL_EUNSUP,
                         "%s: %s gives rows another order in each pass, so the rows for validation "
                         "would also be trained with: give it reshuffle_each_iteration = false, or "
                         "a second dataset for validation",
                         name, stage);
    if (d->origin->applied && keel_stage_by_folder(d))
        return keel_fail(KEEL_EUNSUP,
                         "%s: a directory comes folder by folder, so validation would have the "
                         "last classes alone: put shuffle with reshuffle_each_iteration = false "
                         "behind it, or give a second dataset for validation",
                         name);
    return KEEL_OK;
}

/* As in Keras, the rows of a directory are shuffled once, by seed, and both parts are ranges of
 * that order. A part of a directory is in that order already. */
keel_status keel_dataset_split(const keel_dataset *dataset, double split, uint64_t seed,
                               keel_dataset **training, keel_dataset **validation)
{
    if (!dataset || !training || !validation)
        return keel_fail(KEEL_EARG, "split: dataset and both results must not be NULL");
    const char *name = dataset->origin->name;
    if (!(split > 0 && split < 1))
        return keel_fail(KEEL_EARG, "%s: the validation split must be between 0 and 1, not %g",
                         name, split);
    if (!dataset->origin->source->read)
        return keel_fail(KEEL_EUNSUP,
                         "%s: only rows that have an index can be split; give a second dataset for "
                         "validation",
                         name);
    KEEL_TRY(check_order(dataset));
    const int64_t n = dataset->rows;
    /* As Keras: of a directory int(split * n) rows are for validation; of arrays
     * floor(n * (1 - split)) rows are for training. */
    const int64_t part = dataset->origin->source->shuffled_split
                             ? (int64_t)(split * (double)n)
                             : n - (int64_t)floor((double)n * (1.0 - split));
    if (part < 1 || part >= n)
        return keel_fail(KEEL_EDATA,
                         "%s: a validation split of %g of %lld rows leaves one part without rows",
                         name, split, (long long)n);
    keel_dataset *t = keel_dataset_share(dataset), *v = keel_dataset_share(dataset);
    keel_status s = t && v ? KEEL_OK : KEEL_ENOMEM;
    if (s >= 0 && dataset->origin->source->shuffled_split && !dataset->order)
        s = keel_split_order_create(&t->order, n, seed);
    if (s < 0) {
        keel_dataset_destroy(t);
        keel_dataset_destroy(v);
        return s == KEEL_ENOMEM ? s : keel_fail_within(s, "%s", name);
    }
    if (!v->order) v->order = keel_split_order_share(t->order);
    t->rows = n - part;
    v->first += n - part;
    v->rows = part;
    *training = t;
    *validation = v;
    return KEEL_OK;
}

keel_status keel_dataset_take_subset(keel_dataset **d, const keel_dataset_options *o)
{
    if (o->subset == KEEL_SUBSET_ALL) return KEEL_OK;
    keel_dataset *t = NULL, *v = NULL;
    KEEL_TRY(keel_dataset_split(*d, o->validation_split, o->seed, &t, &v));
    const bool training = o->subset == KEEL_SUBSET_TRAINING;
    keel_dataset_destroy(*d);
    keel_dataset_destroy(training ? v : t);
    *d = training ? t : v;
    return KEEL_OK;
}

keel_status keel_dataset_options_read(keel_dataset_options *out, const keel_dataset_options *o)
{
    *out = KEEL_DATASET_OPTIONS;
    if (!o) return KEEL_OK;
    if (o->size < sizeof(size_t) || o->size > 4096)
        return keel_fail(KEEL_EARG, "dataset options: size must be sizeof(keel_dataset_options)");
    memcpy(out, o, o->size < sizeof *out ? o->size : sizeof *out);
    out->size = sizeof *out;
    if (out->height < 0 || out->width < 0)
        return keel_fail(KEEL_EARG, "dataset options: height and width must not be negative");
    if ((unsigned)out->color_mode > KEEL_COLOR_GRAYSCALE ||
        (unsigned)out->label_mode > KEEL_LABEL_NONE ||
        (unsigned)out->interpolation > KEEL_NEAREST ||
        (unsigned)out->subset > KEEL_SUBSET_VALIDATION)
        return keel_fail(KEEL_EARG, "dataset options: color_mode, label_mode, interpolation or "
                                    "subset has an unknown value");
    if (out->separator == '"' || out->separator == '\n' || out->separator == '\r' ||
        out->separator < 0)
        return keel_fail(KEEL_EARG,
                         "dataset options: separator must be ASCII, not a quote or line end");
    if (out->class_count < 0 || out->class_count > 1 << 20 || out->class_name_count < 0 ||
        out->class_name_count > 1 << 20 || (out->class_name_count && !out->class_names))
        return keel_fail(KEEL_EARG,
                         "dataset options: class_count and class_name_count must be 0 "
                         "to %d",
                         1 << 20);
    if (out->n_numbered < 0 || out->n_numbered > KEEL_FIELDS_MAX)
        return keel_fail(KEEL_EARG, "dataset options: n_numbered must be 0 to %d", KEEL_FIELDS_MAX);
    const int n_mode = out->n_target ? out->n_target : out->n_numbered;
    for (int i = 0; i < n_mode && i < KEEL_FIELDS_MAX; i++)
        if ((out->target_modes && (unsigned)out->target_modes[i] > KEEL_LABEL_NONE) ||
            (out->target_class_counts &&
             (out->target_class_counts[i] < 0 || out->target_class_counts[i] > 1 << 20)))
            return keel_fail(KEEL_EARG,
                             "dataset options: target_modes or target_class_counts has an unknown "
                             "value for target %d",
                             i);
    if (out->class_count && out->class_name_count > out->class_count)
        return keel_fail(KEEL_EARG, "dataset options: %lld class_names for %lld classes",
                         (long long)out->class_name_count, (long long)out->class_count);
    return KEEL_OK;
}

/* A directory leaves files out itself, before it looks into them; a pipeline, at its sources. */
static keel_status open_with(keel_dataset **out, const keel_source *source, const char *spec,
                             const keel_dataset_options *o)
{
    keel_dataset *d = NULL;
    KEEL_TRY(source->open(&d, spec, o));
    const bool done = d->origin->applied || d->origin->n_gone || d->origin->source->shuffled_split;
    const keel_status s = o->skip_list && !done ? keel_skip_list_apply(d, o->skip_list) : KEEL_OK;
    if (s < 0)
        keel_dataset_destroy(d);
    else
        *out = d;
    return s;
}

static keel_status open_watched(keel_dataset **out, const keel_source *source, const char *spec,
                                keel_dataset_options *o)
{
    keel_watchdog *w;
    keel_dataset *d = NULL;
    KEEL_TRY(keel_watchdog_create(&w, o->watch, NULL, spec, NULL, NULL));
    o->watch = NULL; /* the sources of a pipeline are opened within this */
    keel_watchdog_begin(w);
    keel_status s = open_with(&d, source, spec, o);
    if (s >= 0 && keel_watchdog_is_over(w)) s = keel_watchdog_fail(w);
    keel_watchdog_destroy(w);
    if (s < 0)
        keel_dataset_destroy(d);
    else
        *out = d;
    return s;
}

static bool is_prefixed(const keel_source *s, const char *spec)
{
    const size_t n = s->prefix ? strlen(s->prefix) : 0;
    return n && !strncmp(spec, s->prefix, n) && (spec[n] == ':' || spec[n] == '(') &&
           s->claims(spec);
}

keel_status keel_dataset_open(keel_dataset **out, const char *spec,
                              const keel_dataset_options *options)
{
    if (!out || !spec || !*spec) return keel_fail(KEEL_EARG, "data: give a path");
    keel_dataset_options o;
    KEEL_TRY(keel_dataset_options_read(&o, options));
    KEEL_TRY(keel_data_no_url(spec));
    for (int i = 0; keel_sources[i]; i++)
        if (is_prefixed(keel_sources[i], spec)) return open_watched(out, keel_sources[i], spec, &o);
    for (int i = 0; keel_sources[i]; i++)
        if (keel_sources[i]->claims && keel_sources[i]->claims(spec))
            return open_watched(out, keel_sources[i], spec, &o);
    return keel_data_unknown(spec);
}

int64_t keel_dataset_rows(const keel_dataset *d)
{
    if (d->origin->spec.endless) return -1;
    return d->origin->spec.batched ? keel_stage_rows(d) : d->rows;
}

int keel_dataset_field_count(const keel_dataset *d)
{
    return d->origin->spec.n_field;
}

keel_status keel_dataset_field(const keel_dataset *d, int i, keel_data_field *out)
{
    const keel_data_spec *s = &d->origin->spec;
    if (i < 0 || i >= s->n_field)
        return keel_fail(KEEL_EARG, "%s: field number %d of rows that have %d", d->origin->name, i,
                         s->n_field);
    *out = s->field[i];
    return KEEL_OK;
}

static const keel_data_field *first(const keel_dataset *d, keel_data_role role)
{
    const int i = keel_spec_first(&d->origin->spec, role);
    return i < 0 ? NULL : &d->origin->spec.field[i];
}

keel_shape keel_dataset_x_shape(const keel_dataset *d)
{
    return first(d, KEEL_ROLE_INPUT)->shape;
}

keel_shape keel_dataset_y_shape(const keel_dataset *d)
{
    const keel_data_field *y = first(d, KEEL_ROLE_TARGET);
    return y ? y->shape : (keel_shape){ .rank = -1 };
}

keel_dtype keel_dataset_x_dtype(const keel_dataset *d)
{
    return first(d, KEEL_ROLE_INPUT)->dtype;
}

keel_dtype keel_dataset_y_dtype(const keel_dataset *d)
{
    const keel_data_field *y = first(d, KEEL_ROLE_TARGET);
    return y ? y->dtype : KEEL_FLOAT32;
}

bool keel_dataset_has_weight(const keel_dataset *d)
{
    return first(d, KEEL_ROLE_WEIGHT) != NULL;
}

int64_t keel_dataset_class_count(const keel_dataset *d)
{
    return d->origin->spec.n_classes;
}

const char *keel_dataset_class_name(const keel_dataset *d, int64_t i)
{
    return i >= 0 && i < d->origin->spec.n_classes ? d->origin->spec.class_names[i] : NULL;
}

int64_t keel_dataset_largest_label(const keel_dataset *d)
{
    const keel_data_origin *o = d->origin;
    const int field = keel_spec_first(&o->spec, KEEL_ROLE_TARGET);
    keel_dtype want[KEEL_FIELDS_MAX];
    keel_scratch none = { 0 }; /* a copy uses no scratch */
    double label, most = -1;
    if (field < 0 || !o->source->read || !o->source->in_memory || o->spec.endless) return -1;
    if (keel_shape_count(&o->spec.field[field].shape) != 1) return -1;
    for (int i = 0; i < KEEL_FIELDS_MAX; i++) want[i] = KEEL_FLOAT64;
    int64_t counts[KEEL_FIELDS_MAX] = { 0 };
    keel_row row = { .want = want, .count = counts };
    counts[field] = 1;
    row.at[field] = &label;
    for (int64_t i = 0; i < d->rows; i++) {
        if (o->source->read(o->state, keel_dataset_index(d, i), &row, &none) < 0) return -1;
        if (!(label >= 0 && label < 0x1p53) || label != floor(label)) return -1;
        if (label > most) most = label;
    }
    return (int64_t)most;
}

const char *keel_dataset_name(const keel_dataset *d)
{
    return d->origin->name;
}

/* Of batches, row i of all of them; NULL where stages have moved or left out batches. */
static const char *name_in_batches(const keel_dataset *d, int64_t i)
{
    const keel_applied *s = d->origin->applied;
    if (s && s->stage->ahead) return name_in_batches(s->parent[0], i);
    if (!s || !s->by_index || !s->stage->batch_row || i < 0) return NULL;
    const int64_t size = d->origin->spec.max_rows, batch = i / size;
    if (batch >= d->rows) return NULL;
    const keel_position at = { .index = keel_dataset_index(d, batch) };
    if (i % size >= s->stage->batch_rows(s, at)) return NULL;
    keel_position row = s->stage->batch_row(s, at, i % size);
    const keel_data_origin *o = keel_dataset_origin_at(s->parent[0], &row);
    return o->source->row_name ? o->source->row_name(o->state, row.index) : NULL;
}

const char *keel_dataset_row_name(const keel_dataset *d, int64_t i)
{
    if (d->origin->spec.batched) return name_in_batches(d, i);
    if (i < 0 || i >= d->rows || !d->origin->source->row_name) return NULL;
    return d->origin->source->row_name(d->origin->state, keel_dataset_index(d, i));
}
