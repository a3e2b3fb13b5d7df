/* NumPy archives, as numpy.savez and keras.datasets write them: x, y and sample_weight, or x_0, x_1
 * and so on, or arrays with the names of a model's inputs and targets. */
#include "io/npz.h"
#include "base/memory.h"
#include "base/plural.h"
#include "base/text.h"
#include "data/choice.h"
#include "data/features.h"
#include "data/labels.h"
#include "data/sources/npy_texts.h"
#include "data/spec.h"
#include "tensor/dtype.h"
#include "tensor/shape.h"
#include <stdio.h>
#include <string.h>

enum { NAME = 512 };

typedef struct archive {
    keel_zip *zip;
    const char *path;
    const char *part; /* suffix of x and y: "", "_train" or "_test" */
    keel_array_field field[KEEL_FIELDS_MAX];
    char *name[KEEL_FIELDS_MAX];   /* owns field[i].path */
    char *member[KEEL_FIELDS_MAX]; /* its array, as the archive calls it: what messages name */
    int choice[KEEL_FIELDS_MAX];   /* its index in the options' inputs or targets; -1: in neither */
    int n;
} archive;

static keel_status read_any(keel_tensor *out, keel_zip *z, const char *name)
{
    keel_npy_header h;
    keel_npy_texts texts = { 0 };
    KEEL_TRY(keel_npz_header(&h, z, name));
    if (!h.is_text) return keel_npz_read(out, z, name);
    KEEL_TRY(keel_npz_read_texts(&texts, z, name));
    const keel_status s = keel_strings_from_npy(out, &texts);
    keel_npy_texts_free(&texts);
    return s;
}

/* Fail: there is no array `name`; the text lists the arrays of the archive and says how to choose
 * another one. */
static keel_status no_array(const archive *a, const char *name, keel_data_role role)
{
    enum { SHOWN = 12 };
    keel_text list = { 0 };
    char member[NAME], shown[80];
    const int64_t n = keel_npz_count(a->zip);
    for (int64_t i = 0; i < n && i < SHOWN; i++)
        if (keel_npz_name(a->zip, i, member, sizeof member) >= 0)
            keel_text_add(&list, "%s'%s'", i ? ", " : "",
                          keel_printable(shown, sizeof shown, member));
    const keel_status s =
        keel_fail(KEEL_EFORMAT, "%s: has no array named %s; there %s %s%s%s", a->path, name,
                  n == 1 ? "is" : "are", n ? list.data : "none", n > SHOWN ? " and more" : "",
                  !n                         ? ""
                  : role == KEEL_ROLE_INPUT  ? " (--inputs chooses)"
                  : role == KEEL_ROLE_TARGET ? " (--label chooses)"
                                             : "");
    keel_text_free(&list);
    return s;
}

/* Read a member with whole numbers as int64. */
static keel_status read_whole(const archive *a, const char *member, keel_tensor *out)
{
    keel_npy_header h;
    keel_tensor stored = { 0 };
    keel_status s = keel_npz_header(&h, a->zip, member);
    if (s < 0) return s;
    if (h.is_text || keel_dtype_is_real(h.dtype) || h.shape.rank != 1)
        return keel_fail(KEEL_EFORMAT, "%s: array '%s' must be a list of whole numbers", a->path,
                         member);
    if ((s = keel_npz_read(&stored, a->zip, member)) < 0) return s;
    s = keel_tensor_create(out, KEEL_INT64, &stored.shape);
    if (s >= 0) keel_convert(out->data, KEEL_INT64, stored.data, stored.dtype, stored.shape.dim[0]);
    keel_tensor_free(&stored);
    return s;
}

/* Read NAME_row_splits, or NAME_row_lengths as splits; without them rows have one shape. */
static keel_status add_splits(archive *a, const char *member, keel_array_field *f)
{
    char name[NAME];
    keel_tensor lengths = { 0 };
    snprintf(name, sizeof name, "%.400s_row_splits", member);
    if (keel_npz_has(a->zip, name)) return read_whole(a, name, &f->row_splits);
    snprintf(name, sizeof name, "%.400s_row_lengths", member);
    if (!keel_npz_has(a->zip, name)) return KEEL_OK;
    KEEL_TRY(read_whole(a, name, &lengths));
    const int64_t n = lengths.shape.dim[0], *length = lengths.data;
    const keel_shape shape = KEEL_SHAPE(n + 1);
    keel_status s = keel_tensor_create(&f->row_splits, KEEL_INT64, &shape);
    int64_t *at = f->row_splits.data;
    for (int64_t i = 0; i < n && s >= 0; i++)
        if (length[i] < 0 || __builtin_add_overflow(at[i], length[i], &at[i + 1]))
            s = keel_fail(KEEL_EFORMAT, "%s: array '%s' has the length %lld at row %lld", a->path,
                          name, (long long)length[i], (long long)i);
    keel_tensor_free(&lengths);
    return s;
}

/* Read one array as the next field, under `name`; `choice` is its index in the list of its role. */
static keel_status add(archive *a, const char *member, const char *name, keel_data_role role,
                       int choice)
{
    if (a->n == KEEL_FIELDS_MAX)
        return keel_fail(KEEL_EARG, "%s: a row has at most %d fields", a->path, KEEL_FIELDS_MAX);
    keel_array_field *f = &a->field[a->n];
    a->name[a->n] = keel_strdup(name);
    a->member[a->n] = keel_strdup(member);
    *f = (keel_array_field){ .path = a->name[a->n], .role = role };
    a->choice[a->n] = choice;
    a->n++; /* also after a failure, so that its names are freed */
    if (!f->path || !a->member[a->n - 1]) return KEEL_ENOMEM;
    KEEL_TRY(read_any(&f->array, a->zip, member));
    return add_splits(a, member, f);
}

/* The number of arrays stem_0, stem_1, ... */
static int count_numbered(const archive *a, const char *stem)
{
    char member[NAME];
    for (int n = 0;; n++) {
        snprintf(member, sizeof member, "%s_%d", stem, n);
        if (n == KEEL_FIELDS_MAX || !keel_npz_has(a->zip, member)) return n;
    }
}

/* Read the fields of one role: those of the list by name if the archive has them, else `stem`, or
 * stem_0 and so on, in the order of the list. Only inputs must exist; of targets those that do, and
 * where none does, `stem` may be that of the only output that has a loss. */
static keel_status add_role(archive *a, const keel_choice *c, int n, const char *stem,
                            keel_data_role role)
{
    char member[NAME];
    bool here = n > 0, plain = true;
    const int before = a->n;
    for (int i = 0; i < n; i++) {
        if (c[i].n_part != 1)
            return keel_fail(KEEL_EARG, "%s: '%s' is one array, not several", a->path, c[i].name);
        plain &= c[i].plain;
        here &= keel_npz_has(a->zip, c[i].part[0]);
        if (!c[i].plain && !keel_npz_has(a->zip, c[i].part[0]))
            return no_array(a, c[i].part[0], role);
    }
    if (here || (n && !plain)) {
        for (int i = 0; i < n; i++) {
            if (!keel_npz_has(a->zip, c[i].part[0])) return no_array(a, c[i].part[0], role);
            KEEL_TRY(add(a, c[i].part[0], c[i].name, role, i));
        }
        return KEEL_OK;
    }
    snprintf(member, sizeof member, "%s%s", stem, a->part);
    if (n < 2 && keel_npz_has(a->zip, member))
        return add(a, member, n ? c[0].name : stem, role, n ? 0 : -1);
    const int count = count_numbered(a, stem);
    if (count && (!n || count == n)) {
        for (int i = 0; i < count; i++) {
            snprintf(member, sizeof member, "%s_%d", stem, i);
            KEEL_TRY(add(a, member, n ? c[i].name : member, role, i));
        }
        return KEEL_OK;
    }
    for (int i = 0; i < n; i++) /* some but not all exist */
        if (role == KEEL_ROLE_INPUT && !keel_npz_has(a->zip, c[i].name))
            return no_array(a, n > 1 ? c[i].name : stem, role);
        else if (role == KEEL_ROLE_TARGET && keel_npz_has(a->zip, c[i].name))
            KEEL_TRY(add(a, c[i].name, c[i].name, role, i)); /* others may have no loss */
    if (role == KEEL_ROLE_INPUT) return no_array(a, stem, role);
    snprintf(member, sizeof member, "%s%s", stem, a->part);
    return a->n == before && keel_npz_has(a->zip, member) ? add(a, member, stem, role, -1)
                                                          : KEEL_OK;
}

/* Read the weights that were asked for target by target. */
static keel_status add_each_weight(archive *a, const keel_choice *c, int n)
{
    for (int i = 0; i < n; i++) {
        const char *target = NULL;
        for (int k = 0; k < a->n; k++)
            if (a->field[k].role == KEEL_ROLE_TARGET && !strcmp(a->field[k].path, c[i].target))
                target = a->field[k].path;
        if (!target) return keel_choice_no_target(&c[i], a->path);
        if (!keel_npz_has(a->zip, c[i].part[0])) return no_array(a, c[i].part[0], KEEL_ROLE_WEIGHT);
        KEEL_TRY(add(a, c[i].part[0], c[i].name, KEEL_ROLE_WEIGHT, 0));
        a->field[a->n - 1].target = target;
    }
    return KEEL_OK;
}

/* Read the weights that were asked for, else sample_weight, or sample_weight_ and the number or
 * name of a target. */
static keel_status add_weights(archive *a, const char *asked)
{
    const char *const all = "sample_weight";
    char member[NAME];
    int k = 0;
    const char *one = asked ? asked : all;
    if (keel_npz_has(a->zip, one)) return add(a, one, all, KEEL_ROLE_WEIGHT, 0);
    if (asked) return no_array(a, asked, KEEL_ROLE_WEIGHT);
    for (int i = 0, n = a->n; i < n; i++) {
        const char *target = a->field[i].path;
        if (a->field[i].role != KEEL_ROLE_TARGET) continue;
        snprintf(member, sizeof member, "%s_%.400s", all, target);
        if (!keel_npz_has(a->zip, member)) snprintf(member, sizeof member, "%s_%d", all, k);
        k++;
        if (!keel_npz_has(a->zip, member)) continue;
        KEEL_TRY(add(a, member, member, KEEL_ROLE_WEIGHT, 0));
        a->field[a->n - 1].target = target;
    }
    return KEEL_OK;
}

/* An array that seems to hold weights must not be left out in silence, if there are targets. */
static keel_status check_weights(const archive *a)
{
    char member[NAME], shown[80];
    int targets = 0;
    for (int i = 0; i < a->n; i++) targets += a->field[i].role == KEEL_ROLE_TARGET;
    for (int64_t i = 0; targets && i < keel_npz_count(a->zip); i++) {
        bool used = false;
        KEEL_TRY(keel_npz_name(a->zip, i, member, sizeof member));
        if (!strstr(member, "sample_weight")) continue;
        for (int k = 0; k < a->n; k++) used = used || !strcmp(a->member[k], member);
        if (!used)
            return keel_fail(KEEL_EFORMAT,
                             "%s: array '%s' is not used: weights are sample_weight, or "
                             "sample_weight_ and the name or number of a target",
                             a->path, keel_printable(shown, sizeof shown, member));
    }
    return KEEL_OK;
}

static int64_t rows_of(const keel_array_field *f)
{
    const keel_shape *s = &f->array.shape;
    return f->row_splits.data ? f->row_splits.shape.dim[0] - 1 : s->rank ? s->dim[0] : -1;
}

static keel_status check_rows(const archive *a)
{
    for (int i = 0; i < a->n; i++) {
        const int64_t first = rows_of(&a->field[0]), rows = rows_of(&a->field[i]);
        if (rows < 0)
            return keel_fail(KEEL_EARG, "%s: array '%s' is one number: its first dim must be rows",
                             a->path, a->member[i]);
        if (rows != first)
            return keel_fail(KEEL_ESHAPE, "%s: array '%s' has %lld row%s but '%s' has %lld",
                             a->path, a->member[0], (long long)first, keel_s(first), a->member[i],
                             (long long)rows);
    }
    return KEEL_OK;
}

/* Convert labels as label_mode requests. */
static keel_status set_labels(archive *a, keel_classes *classes, const keel_dataset_options *o)
{
    for (int i = 0; i < a->n; i++) {
        keel_array_field *f = &a->field[i];
        keel_classes these = { 0 };
        char what[NAME];
        if (f->role != KEEL_ROLE_TARGET) continue;
        const keel_dataset_options own = keel_labels_options(o, a->choice[i]);
        snprintf(what, sizeof what, "%.400s: array '%.80s'", a->path, a->member[i]);
        KEEL_TRY(keel_labels_from_array(&f->array, &these, &own, what));
        if (these.n && classes->n) {
            keel_classes_free(&these);
            return keel_fail(KEEL_EUNSUP,
                             "%s: class names as labels in more than one target; use numbers",
                             what);
        }
        if (these.n) *classes = these;
    }
    return KEEL_OK;
}

/* If no split is requested, validation uses the archive's own test part (x_test). */
static keel_status read_arrays(keel_dataset **out, const char *path, const keel_dataset_options *o,
                               bool held_out, bool *was_there)
{
    archive a = { .path = path, .part = "" };
    keel_choice *inputs = NULL, *targets = NULL, *weights = NULL;
    keel_classes classes = { 0 };
    int n_target = 0;
    keel_status s = keel_zip_open(&a.zip, path);
    if (s < 0) return s;
    const bool test = held_out && keel_npz_has(a.zip, "x_test");
    if (test)
        a.part = "_test";
    else if (!keel_npz_has(a.zip, "x") && keel_npz_has(a.zip, "x_train"))
        a.part = "_train";
    s = keel_choices_read(&inputs, o->inputs, o->n_input, "inputs");
    if (s >= 0) s = keel_choices_targets(&targets, &n_target, o);
    if (s >= 0) s = add_role(&a, inputs, o->n_input, "x", KEEL_ROLE_INPUT);
    if (s >= 0) s = add_role(&a, targets, n_target, "y", KEEL_ROLE_TARGET);
    if (s >= 0) s = keel_choices_weights(&weights, o);
    if (s >= 0 && !test)
        s = o->n_sample_weight ? add_each_weight(&a, weights, o->n_sample_weight)
                               : add_weights(&a, o->sample_weight);
    if (s >= 0 && !test) s = check_weights(&a);
    if (s >= 0) s = check_rows(&a);
    if (s >= 0) s = set_labels(&a, &classes, o);
    keel_choices_free(inputs, o->n_input);
    keel_choices_free(targets, n_target);
    keel_choices_free(weights, o->n_sample_weight);
    keel_zip_close(a.zip);
    if (s >= 0) {
        s = keel_dataset_adopt_fields(out, a.field, a.n, classes.n, classes.name, path);
        *was_there = test;
    } else {
        for (int i = 0; i < a.n; i++) {
            keel_tensor_free(&a.field[i].array);
            keel_tensor_free(&a.field[i].row_splits);
        }
        keel_classes_free(&classes);
    }
    for (int i = 0; i < a.n; i++) {
        keel_free(a.name[i]);
        keel_free(a.member[i]);
    }
    return s;
}

static bool claims(const char *spec)
{
    return keel_spec_ends(spec, strlen(spec), ".npz");
}

static keel_status open_archive(keel_dataset **out, const char *spec, const keel_dataset_options *o)
{
    KEEL_TRY(keel_feature_types_refuse(o, spec));
    keel_dataset *d = NULL;
    bool held_out = false;
    const bool wanted = o->subset == KEEL_SUBSET_VALIDATION && o->validation_split == 0;
    keel_status s = read_arrays(&d, spec, o, wanted, &held_out);
    if (s >= 0 && !held_out) s = keel_dataset_take_subset(&d, o);
    if (s < 0)
        keel_dataset_destroy(d);
    else
        *out = d;
    return s;
}

const keel_source keel_source_npz = {
    .name = "npz",
    .help = "an .npz file with x and y",
    .claims = claims,
    .open = open_archive,
};

keel_status keel_dataset_from_npz(keel_dataset **out, const char *path)
{
    bool held_out;
    if (!out || !path) return keel_fail(KEEL_EARG, "npz: out and path must not be NULL");
    return read_arrays(out, path, &KEEL_DATASET_OPTIONS, false, &held_out);
}
