/* Datasets: what all of them share, whatever their source. */
#include "base/memory.h"
#include "base/text.h"
#include "data/source.h"
#include "tensor/dtype.h"
#include "tensor/shape.h"
#include <math.h>
#include <string.h>

static void origin_release(keel_data_origin *o)
{
    if (!o || atomic_fetch_sub(&o->references, 1) > 1) return;
    if (o->state && o->source->close) o->source->close(o->state);
    for (int64_t i = 0; o->spec.class_names && i < o->spec.n_classes; i++)
        keel_free(o->spec.class_names[i]);
    keel_free(o->spec.class_names);
    keel_free(o->name);
    keel_free(o);
}

static keel_status check_spec(const keel_data_spec *s, const char *name)
{
    KEEL_TRY(keel_shape_check(&s->x, keel_dtype_size(s->x_dtype)));
    if (keel_shape_count(&s->x) < 1)
        return keel_fail(KEEL_ESHAPE, "%s: a row of x has no element", name);
    if (!s->has_y) return KEEL_OK;
    KEEL_TRY(keel_shape_check(&s->y, keel_dtype_size(s->y_dtype)));
    if (keel_shape_count(&s->y) < 1)
        return keel_fail(KEEL_ESHAPE, "%s: a row of y has no element", name);
    return KEEL_OK;
}

keel_status keel_dataset_create(keel_dataset **out, const keel_source *source, void *state,
                                const keel_data_spec *spec, const char *name)
{
    keel_status s = KEEL_ENOMEM;
    keel_dataset *d = NULL;
    keel_data_origin *o = keel_calloc(1, sizeof *o);
    if (!o) {
        keel_data_origin lost = { .source = source, .state = state, .spec = *spec };
        if (state && source->close) source->close(state);
        for (int64_t i = 0; lost.spec.class_names && i < lost.spec.n_classes; i++)
            keel_free(lost.spec.class_names[i]);
        keel_free(lost.spec.class_names);
        return s;
    }
    *o = (keel_data_origin){ .source = source, .state = state, .spec = *spec, .references = 1 };
    o->name = keel_strdup(name);
    d = keel_calloc(1, sizeof *d);
    if (!o->name || !d) goto out;
    if ((s = check_spec(spec, name)) < 0) goto out;
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
    keel_free(d);
}

static keel_dataset *share(const keel_dataset *d)
{
    keel_dataset *part = keel_calloc(1, sizeof *part);
    if (!part) return NULL;
    *part = *d;
    atomic_fetch_add(&d->origin->references, 1);
    return part;
}

/* A directory is shuffled once, by seed, and both parts are ranges of that order. */
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
    const bool shuffled = dataset->origin->source->shuffled_split && !dataset->ordered;
    const int64_t n = dataset->rows;
    /* Keras: directories give int(split * n) to validation, arrays keep floor(n * (1 - split)). */
    const int64_t part = dataset->origin->source->shuffled_split
                             ? (int64_t)(split * (double)n)
                             : n - (int64_t)floor((double)n * (1.0 - split));
    if (part < 1 || part >= n)
        return keel_fail(KEEL_EDATA,
                         "%s: a validation split of %g of %lld rows leaves one part without rows",
                         name, split, (long long)n);
    keel_dataset *t = share(dataset), *v = share(dataset);
    if (!t || !v) {
        keel_dataset_destroy(t);
        keel_dataset_destroy(v);
        return KEEL_ENOMEM;
    }
    if (shuffled) {
        const keel_chance c = { .seed = seed, .stream = KEEL_STREAM_SPLIT };
        /* Only a whole directory is not ordered yet, so the order spans all its rows. */
        keel_permutation_init(&t->order, (uint64_t)n, &c);
        v->order = t->order;
        t->ordered = v->ordered = true;
    }
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
                                    "subset is none of its values");
    return KEEL_OK;
}

keel_status keel_dataset_open(keel_dataset **out, const char *spec,
                              const keel_dataset_options *options)
{
    if (!out || !spec || !*spec) return keel_fail(KEEL_EARG, "data: say where it is");
    keel_dataset_options o;
    KEEL_TRY(keel_dataset_options_read(&o, options));
    for (int i = 0; keel_sources[i]; i++)
        if (keel_sources[i]->claims && keel_sources[i]->claims(spec))
            return keel_sources[i]->open(out, spec, &o);
    keel_text known = { 0 };
    for (int i = 0; keel_sources[i]; i++)
        if (keel_sources[i]->claims)
            keel_text_add(&known, "%s%s", known.length ? "; " : "", keel_sources[i]->help);
    const keel_status s =
        keel_fail(KEEL_EARG, "%s: not there, or nothing that is understood as data: %s", spec,
                  known.data ? known.data : "");
    keel_text_free(&known);
    return s;
}

int64_t keel_dataset_rows(const keel_dataset *d)
{
    return d->rows;
}

keel_shape keel_dataset_x_shape(const keel_dataset *d)
{
    return d->origin->spec.x;
}

keel_shape keel_dataset_y_shape(const keel_dataset *d)
{
    return d->origin->spec.has_y ? d->origin->spec.y : (keel_shape){ .rank = -1 };
}

keel_dtype keel_dataset_x_dtype(const keel_dataset *d)
{
    return d->origin->spec.x_dtype;
}

keel_dtype keel_dataset_y_dtype(const keel_dataset *d)
{
    return d->origin->spec.has_y ? d->origin->spec.y_dtype : KEEL_FLOAT32;
}

bool keel_dataset_has_weight(const keel_dataset *d)
{
    return d->origin->spec.has_weight;
}

int64_t keel_dataset_class_count(const keel_dataset *d)
{
    return d->origin->spec.n_classes;
}

const char *keel_dataset_class_name(const keel_dataset *d, int64_t i)
{
    return i >= 0 && i < d->origin->spec.n_classes ? d->origin->spec.class_names[i] : NULL;
}

const char *keel_dataset_name(const keel_dataset *d)
{
    return d->origin->name;
}

const char *keel_dataset_row_name(const keel_dataset *d, int64_t i)
{
    if (i < 0 || i >= d->rows || !d->origin->source->row_name) return NULL;
    return d->origin->source->row_name(d->origin->state, keel_dataset_index(d, i));
}

void *keel_scratch_reserve(keel_scratch *s, int i, size_t n_bytes)
{
    if (s->n_bytes[i] >= n_bytes && s->at[i]) return s->at[i];
    size_t n = s->n_bytes[i] + s->n_bytes[i] / 2;
    if (n < n_bytes) n = n_bytes;
    void *p = keel_calloc(1, n);
    if (!p) return NULL;
    keel_free(s->at[i]);
    s->at[i] = p;
    s->n_bytes[i] = n;
    return p;
}

void keel_scratch_free(keel_scratch *s)
{
    for (int i = 0; i < (int)(sizeof s->at / sizeof *s->at); i++) keel_free(s->at[i]);
    *s = (keel_scratch){ 0 };
}
