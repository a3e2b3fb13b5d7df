/* Fields of records: the choice of parts, and the writing of rows; see records.h. */
#include "data/records.h"
#include "base/memory.h"
#include "data/choice.h"
#include "tensor/dtype.h"
#include "tensor/shape.h"
#include <math.h>
#include <stdio.h>
#include <string.h>

enum { NAME = 512, SHOWN = 400 };

void keel_record_fields_free(keel_record_fields *f)
{
    for (int i = 0; i < f->n; i++) {
        keel_record_field *r = &f->at[i];
        keel_free((char *)r->field.path);
        keel_free((char *)r->field.target);
        keel_free(r->part);
        keel_free(r->splits);
        keel_tensor_free(&r->kept);
    }
    keel_classes_free(&f->classes);
    keel_free(f->bad);
    f->bad = NULL;
    f->n = 0;
}

/* ---- the choice of parts --------------------------------------------------------------------- */

static keel_status no_part(const keel_record_parts *p, const char *part, const char *advice)
{
    char names[SHOWN];
    p->list(p->arg, names, sizeof names);
    return keel_fail(KEEL_EFORMAT, "%s: has no %s '%s'%s; there %s %s", p->what, p->noun, part,
                     advice, strchr(names, ',') ? "are" : "is", *names ? names : "none");
}

/* Append a field that is read from `part`. */
static keel_status add(keel_record_fields *f, const keel_record_parts *p, const char *part,
                       const char *name, keel_data_role role, int choice)
{
    if (f->n == KEEL_FIELDS_MAX)
        return keel_fail(KEEL_EARG, "%s: a row has at most %d fields", p->what, KEEL_FIELDS_MAX);
    keel_record_field *r = &f->at[f->n++];
    *r = (keel_record_field){ .field = { .role = role }, .choice = choice };
    r->part = keel_strdup(part);
    r->field.path = keel_strdup(name);
    return r->part && r->field.path ? KEEL_OK : KEEL_ENOMEM;
}

/* The number of parts stem_0, stem_1, ... */
static int count_numbered(const keel_record_parts *p, const char *stem)
{
    char part[NAME];
    for (int n = 0;; n++) {
        snprintf(part, sizeof part, "%.400s_%d", stem, n);
        if (n == KEEL_FIELDS_MAX || !p->has(p->arg, part)) return n;
    }
}

/* The fields of one role: those of the list by name if the records have them, else the default
 * part, or the numbered ones, in the order of the list. Only inputs must exist; of targets those
 * that do.
 */
static keel_status add_role(keel_record_fields *f, const keel_record_parts *p, const keel_choice *c,
                            int n, keel_data_role role)
{
    const bool input = role == KEEL_ROLE_INPUT;
    const char *stem = input ? p->x : p->y, *name = input ? "x" : "y";
    const char *const advice = input ? "; name one for the input 'x': 'x=NAME'" : "";
    bool here = n > 0, plain = true;
    for (int i = 0; i < n; i++) {
        if (c[i].n_part != 1)
            return keel_fail(KEEL_EARG, "%s: '%s' is one %s, not several", p->what, c[i].name,
                             p->noun);
        plain = plain && c[i].plain;
        here = here && p->has(p->arg, c[i].part[0]);
        if (!c[i].plain && !p->has(p->arg, c[i].part[0])) return no_part(p, c[i].part[0], "");
    }
    if (here || !plain) {
        for (int i = 0; i < n; i++) {
            if (!p->has(p->arg, c[i].part[0])) return no_part(p, c[i].part[0], "");
            KEEL_TRY(add(f, p, c[i].part[0], c[i].name, role, i));
        }
        return KEEL_OK;
    }
    if (n < 2 && stem && p->has(p->arg, stem))
        return add(f, p, stem, n ? c[0].name : name, role, 0);
    const int count = count_numbered(p, name);
    if (count && (!n || count == n)) {
        char part[NAME];
        for (int i = 0; i < count; i++) {
            snprintf(part, sizeof part, "%s_%d", name, i);
            KEEL_TRY(add(f, p, part, n ? c[i].name : part, role, i));
        }
        return KEEL_OK;
    }
    for (int i = 0; n > 1 && i < n; i++) /* some but not all exist */
        if (input && !p->has(p->arg, c[i].name))
            return no_part(p, c[i].name, "");
        else if (!input && p->has(p->arg, c[i].name))
            KEEL_TRY(add(f, p, c[i].name, c[i].name, role, i)); /* others may have no loss */
    return input && n < 2 ? no_part(p, stem ? stem : name, advice) : KEEL_OK;
}

/* The weights that were asked for target by target. */
static keel_status add_each_weight(keel_record_fields *f, const keel_record_parts *p,
                                   const keel_choice *c, int n)
{
    for (int i = 0; i < n; i++) {
        if (!p->has(p->arg, c[i].part[0])) return no_part(p, c[i].part[0], "");
        KEEL_TRY(add(f, p, c[i].part[0], c[i].name, KEEL_ROLE_WEIGHT, 0));
        if (!(f->at[f->n - 1].field.target = keel_strdup(c[i].target))) return KEEL_ENOMEM;
    }
    return KEEL_OK;
}

/* The weights that were asked for, else sample_weight, or sample_weight_ and the name or number of
 * a target. */
static keel_status add_weights(keel_record_fields *f, const keel_record_parts *p, const char *asked)
{
    const char *const all = "sample_weight";
    char part[NAME];
    int k = 0;
    const char *one = asked ? asked : all;
    if (p->has(p->arg, one)) return add(f, p, one, all, KEEL_ROLE_WEIGHT, 0);
    if (asked) return no_part(p, asked, "");
    for (int i = 0, n = f->n; i < n; i++) {
        const char *target = f->at[i].field.path;
        if (f->at[i].field.role != KEEL_ROLE_TARGET) continue;
        snprintf(part, sizeof part, "%s_%.400s", all, target);
        if (!p->has(p->arg, part)) snprintf(part, sizeof part, "%s_%d", all, k);
        k++;
        if (!p->has(p->arg, part)) continue;
        KEEL_TRY(add(f, p, part, part, KEEL_ROLE_WEIGHT, 0));
        if (!(f->at[f->n - 1].field.target = keel_strdup(target))) return KEEL_ENOMEM;
    }
    return KEEL_OK;
}

keel_status keel_records_choose(keel_record_fields *f, const keel_dataset_options *o,
                                const keel_record_parts *p)
{
    keel_choice *inputs = NULL, *targets = NULL, *weights = NULL;
    int n_target = 0;
    keel_status s = keel_choices_read(&inputs, o->inputs, o->n_input, "inputs");
    if (s >= 0) s = keel_choices_targets(&targets, &n_target, o);
    if (s >= 0) s = add_role(f, p, inputs, o->n_input, KEEL_ROLE_INPUT);
    if (s >= 0 && o->label_mode != KEEL_LABEL_NONE)
        s = add_role(f, p, targets, n_target, KEEL_ROLE_TARGET);
    if (s >= 0) s = keel_choices_weights(&weights, o);
    if (s >= 0 && o->label_mode != KEEL_LABEL_NONE)
        s = o->n_sample_weight ? add_each_weight(f, p, weights, o->n_sample_weight)
                               : add_weights(f, p, o->sample_weight);
    keel_choices_free(inputs, o->n_input);
    keel_choices_free(targets, n_target);
    keel_choices_free(weights, o->n_sample_weight);
    return s;
}

/* ---- what a field is ------------------------------------------------------------------------- */

static bool is_open(const keel_record_field *f)
{
    return f->shape.rank > 0 && f->shape.dim[0] == KEEL_DIM_OPEN;
}

void keel_record_take_labels(keel_record_field *f, const keel_dataset_options *o)
{
    const keel_dataset_options own = keel_labels_options(o, o->n_target ? f->choice : -1);
    const bool numbers = f->kind == KEEL_RECORD_NUMBERS || f->kind == KEEL_RECORD_RAW;
    const bool column = f->shape.rank == 0 || (f->shape.rank == 1 && f->shape.dim[0] == 1);
    if (f->field.role == KEEL_ROLE_TARGET && numbers && column) {
        f->classes = own.class_count;
        f->one_hot = own.label_mode == KEEL_LABEL_CATEGORICAL;
        f->unknown = f->one_hot && !f->classes;
    }
    f->shaped = f->shaped || f->classes || f->one_hot;
    f->count = 1;
    for (int i = f->shaped && !is_open(f) ? 0 : 1; i < f->shape.rank; i++)
        f->count *= f->shape.dim[i]; /* of a shape that was checked, or of one dim */
}

bool keel_record_must_scan(const keel_record_field *f)
{
    return f->kind == KEEL_RECORD_TEXT || f->unknown || is_open(f);
}

keel_status keel_record_settle(keel_record_field *f, const keel_photo *photo, const char *what)
{
    const keel_shape least = keel_shape_closed(&f->shape, 1);
    if (f->kind == KEEL_RECORD_IMAGE) {
        keel_photo_field(photo, &f->field);
        return KEEL_OK;
    }
    if (f->kind == KEEL_RECORD_TEXT) return KEEL_OK; /* by the scan */
    const keel_status s = keel_shape_check(&least, sizeof(double));
    if (s < 0) return keel_fail_within(s, "%s: '%s'", what, f->part);
    f->count = keel_shape_count(&least);
    f->field.dtype = f->one_hot ? KEEL_FLOAT32 : f->stored;
    f->field.shape = f->one_hot ? KEEL_SHAPE(f->classes) : f->shape;
    if (f->count > 0) return KEEL_OK;
    return keel_fail(KEEL_EDATA, "%s: '%s' has no values in the first record", what, f->part);
}

/* ---- rows ------------------------------------------------------------------------------------ */

keel_status keel_record_check(const keel_record_field *f, int64_t n, int64_t count)
{
    if (!is_open(f)) {
        if (n == f->count) return KEEL_OK;
        return keel_fail(KEEL_EDATA,
                         "'%s' has %lld values, but %lld in the first record; if rows differ in "
                         "length, say so by a shape of None",
                         f->part, (long long)n, (long long)f->count);
    }
    if (n % f->count)
        return keel_fail(KEEL_EDATA, "'%s' has %lld values, which is not a multiple of %lld",
                         f->part, (long long)n, (long long)f->count);
    if (n <= count) return KEEL_OK;
    return keel_fail(KEEL_EDATA, "'%s' has %lld values, more than when the file was opened",
                     f->part, (long long)n);
}

static keel_status put_class(const keel_record_field *f, const void *from, void *to,
                             keel_dtype want)
{
    const float one = 1;
    double v = 0;
    keel_convert(&v, KEEL_FLOAT64, from, f->stored, 1);
    if (v != floor(v) || !(v >= 0 && v < (double)f->classes))
        return keel_fail(KEEL_EDATA,
                         "'%s': label %g is not a class; classes are whole numbers from 0 to %lld",
                         f->part, v, (long long)f->classes - 1);
    if (!f->one_hot) return keel_field_write(to, want, from, &f->field, 1);
    const size_t size = keel_dtype_size(want);
    memset(to, 0, (size_t)f->classes * size); /* zero bytes are 0 in every type */
    return keel_field_write((char *)to + (size_t)v * size, want, &one, &f->field, 1);
}

keel_status keel_record_put(const keel_record_field *f, const void *from, int64_t n, void *to,
                            keel_dtype want, int64_t count)
{
    if (f->classes) return put_class(f, from, to, want);
    KEEL_TRY(keel_field_write(to, want, from, &f->field, n));
    if (n < count) {
        const size_t size = keel_dtype_size(want);
        memset((char *)to + (size_t)n * size, 0, (size_t)(count - n) * size);
    }
    return KEEL_OK;
}

keel_status keel_record_put_kept(const keel_record_field *f, int64_t row, void *to, keel_dtype want,
                                 int64_t count)
{
    const int64_t begin = (f->splits ? f->splits[row] : row) * f->count;
    const int64_t n = f->splits ? (f->splits[row + 1] - f->splits[row]) * f->count : f->count;
    const size_t from = keel_dtype_size(f->kept.dtype), size = keel_dtype_size(want);
    KEEL_TRY(keel_field_write(to, want, (const char *)f->kept.data + (size_t)begin * from,
                              &f->field, n));
    if (n < count) memset((char *)to + (size_t)n * size, 0, (size_t)(count - n) * size);
    return KEEL_OK;
}
