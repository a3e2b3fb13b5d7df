/* Converts labels to targets; see labels.h. */
#include "data/labels.h"
#include "base/memory.h"
#include "base/text.h"
#include "data/ranges.h"
#include "io/number.h"
#include "tensor/dtype.h"
#include "tensor/shape.h"
#include <math.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

enum { CLASSES_MAX = 1 << 20 };
#define ONE_HOT_BYTES_MAX (INT64_C(1) << 30)

void keel_classes_free(keel_classes *c)
{
    for (int64_t i = 0; c->name && i < c->n; i++) keel_free(c->name[i]);
    keel_free(c->name);
    *c = (keel_classes){ 0 };
}

bool keel_read_number(const char *text, double *number)
{
    while (*text == ' ' || *text == '\t') text++;
    const char *end = keel_number_scan(text, text + strlen(text), number);
    if (end == text) return false;
    while (*end == ' ' || *end == '\t') end++;
    return !*end && isfinite(*number);
}

/* ---- numbers ----------------------------------------------------------------------------------
 */

static keel_status one_hot(keel_tensor *y, const int32_t *label, int64_t n, int64_t classes,
                           const char *what)
{
    int64_t bytes;
    const keel_shape shape = { 2, { n, classes } };
    if (!keel_mul_i64(n, classes, &bytes) || !keel_mul_i64(bytes, sizeof(float), &bytes) ||
        bytes > ONE_HOT_BYTES_MAX)
        return keel_fail(KEEL_EDATA,
                         "%s: one-hot rows of %lld classes for %lld rows take %.1f GiB; keep the "
                         "labels as numbers, with sparse_categorical_crossentropy",
                         what, (long long)classes, (long long)n,
                         4.0 * (double)n * (double)classes / 0x1p30);
    KEEL_TRY(keel_tensor_create(y, KEEL_FLOAT32, &shape));
    for (int64_t i = 0; i < n; i++) ((float *)y->data)[i * classes + label[i]] = 1;
    return KEEL_OK;
}

keel_dataset_options keel_labels_options(const keel_dataset_options *o, int target)
{
    keel_dataset_options own = *o;
    if (target >= (o->n_target ? o->n_target : o->n_numbered)) return own;
    if (target >= 0 && o->target_modes) own.label_mode = o->target_modes[target];
    if (target >= 0 && o->target_class_counts) own.class_count = o->target_class_counts[target];
    if (target >= 0 && o->target_modes && own.label_mode == KEEL_LABEL_INT && !own.class_count)
        own.class_name_count = 0; /* numbers, not classes */
    return own;
}

/* True if labels are classes: whole numbers from 0. */
static bool are_classes(const keel_dataset_options *o, keel_label_mode mode)
{
    return o->class_count || mode == KEEL_LABEL_CATEGORICAL;
}

/* Convert labels that must be classes to int32; *classes gets their number. */
static keel_status check_classes(int32_t *label, const double *number, int64_t n,
                                 const keel_dataset_options *o, int64_t *classes, const char *what)
{
    const int64_t most = o->class_count ? o->class_count : CLASSES_MAX;
    int64_t count = o->class_count;
    for (int64_t i = 0; i < n; i++) {
        const double v = number[i];
        if (v != floor(v) || v < 0 || v >= (double)most)
            return keel_fail(
                KEEL_EDATA,
                "%s: label %g of row %lld is not a class; classes are whole numbers from "
                "0 to %lld",
                what, v, (long long)i, (long long)most - 1);
        label[i] = (int32_t)v;
        if (label[i] >= count) count = label[i] + 1;
    }
    *classes = count;
    return KEEL_OK;
}

static keel_status target_of_numbers(keel_tensor *y, const double *number, int64_t n,
                                     const keel_dataset_options *o, keel_label_mode mode,
                                     const char *what)
{
    const keel_shape shape = { 1, { n } };
    bool whole = true;
    for (int64_t i = 0; i < n; i++) {
        whole &= fabs(number[i]) <= 1 << 30 && number[i] == (double)(int32_t)number[i];
        if (mode == KEEL_LABEL_BINARY && !(number[i] >= 0 && number[i] <= 1))
            return keel_fail(KEEL_EDATA, "%s: label %g of row %lld; binary labels must be 0 to 1",
                             what, number[i], (long long)i);
    }
    if (!are_classes(o, mode)) {
        KEEL_TRY(keel_tensor_create(y, whole ? KEEL_INT32 : KEEL_FLOAT32, &shape));
        keel_convert(y->data, y->dtype, number, KEEL_FLOAT64, n);
        return KEEL_OK;
    }
    keel_tensor label = { 0 };
    int64_t classes = 0;
    KEEL_TRY(keel_tensor_create(&label, KEEL_INT32, &shape));
    keel_status s = check_classes(label.data, number, n, o, &classes, what);
    if (s >= 0 && mode != KEEL_LABEL_CATEGORICAL) {
        *y = label;
        return KEEL_OK;
    }
    if (s >= 0) s = one_hot(y, label.data, n, classes, what);
    keel_tensor_free(&label);
    return s;
}

/* ---- names ------------------------------------------------------------------------------------
 */

typedef struct named {
    const char *name;
    int32_t index;
} named;

static int by_text(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

static int by_name(const void *a, const void *b)
{
    return strcmp(((const named *)a)->name, ((const named *)b)->name);
}

static keel_status copy_names(keel_classes *out, const char *const *name, int64_t n)
{
    keel_classes c = { keel_calloc((size_t)n + 1, sizeof *c.name), 0 };
    if (!c.name) return KEEL_ENOMEM;
    for (; c.n < n; c.n++)
        if (!(c.name[c.n] = keel_strdup(name[c.n]))) {
            keel_classes_free(&c);
            return KEEL_ENOMEM;
        }
    *out = c;
    return KEEL_OK;
}

/* Collect the distinct names, sorted. */
static keel_status collect_names(keel_classes *out, const char *const *label, int64_t n,
                                 const char *what)
{
    const char **all = keel_calloc((size_t)n, sizeof *all);
    keel_status s;
    int64_t count = 0;
    if (!all) return KEEL_ENOMEM;
    memcpy(all, label, (size_t)n * sizeof *all);
    qsort(all, (size_t)n, sizeof *all, by_text);
    for (int64_t i = 0; i < n; i++)
        if (!i || strcmp(all[i], all[count - 1])) all[count++] = all[i];
    s = count > CLASSES_MAX
            ? keel_fail(KEEL_EFORMAT, "%s: more than %d different labels", what, CLASSES_MAX)
            : copy_names(out, all, count);
    keel_free(all);
    return s;
}

/* index[i]: the class of label i. KEEL_EDATA: a label is not a class name. */
static keel_status find_names(int32_t *index, const char *const *label, int64_t n,
                              const keel_classes *c, const char *what)
{
    named *sorted = keel_calloc((size_t)c->n + 1, sizeof *sorted);
    if (!sorted) return KEEL_ENOMEM;
    for (int64_t i = 0; i < c->n; i++) sorted[i] = (named){ c->name[i], (int32_t)i };
    qsort(sorted, (size_t)c->n, sizeof *sorted, by_name);
    keel_status s = KEEL_OK;
    for (int64_t i = 0; s >= 0 && i < n; i++) {
        const named want = { label[i], 0 };
        const named *at = bsearch(&want, sorted, (size_t)c->n, sizeof *sorted, by_name);
        if (at)
            index[i] = at->index;
        else
            s = keel_classes_fail_unknown((const char *const *)c->name, c->n, label[i], what);
    }
    keel_free(sorted);
    return s;
}

static keel_status target_of_names(keel_tensor *y, const int32_t *index, int64_t n,
                                   int64_t n_classes, keel_label_mode mode, const char *what)
{
    const bool binary = mode == KEEL_LABEL_BINARY;
    const keel_shape shape = { binary ? 2 : 1, { n, 1 } };
    if (mode == KEEL_LABEL_CATEGORICAL) return one_hot(y, index, n, n_classes, what);
    if (binary && n_classes != 2)
        return keel_fail(KEEL_EDATA, "%s: binary labels need two names, but there are %lld", what,
                         (long long)n_classes);
    KEEL_TRY(keel_tensor_create(y, binary ? KEEL_FLOAT32 : KEEL_INT32, &shape));
    keel_convert(y->data, y->dtype, index, KEEL_INT32, n);
    return KEEL_OK;
}

typedef struct reading {
    double *number;
    const char *const *label;
    atomic_bool failed; /* a label is not a number */
} reading;

static void read_some(void *context, int64_t begin, int64_t end)
{
    reading *r = context;
    bool good = true;
    for (int64_t i = begin; i < end && good; i++)
        good = keel_read_number(r->label[i], &r->number[i]);
    if (!good) atomic_store(&r->failed, true);
}

/* number[i]: label i as a number. KEEL_EDATA: a label is not a number. */
static keel_status read_numbers(double *number, const char *const *label, int64_t n)
{
    reading r = { .number = number, .label = label };
    KEEL_TRY(keel_ranges(n, read_some, &r));
    return r.failed ? KEEL_EDATA : KEEL_OK;
}

keel_status keel_labels_from_texts(keel_tensor *y, keel_classes *classes, const char *const *label,
                                   int64_t n, const keel_dataset_options *o, keel_label_mode mode,
                                   const char *what)
{
    keel_status s = KEEL_ENOMEM;
    keel_classes c = { 0 };
    int32_t *index = keel_calloc((size_t)n + 1, sizeof *index);
    double *number = keel_calloc((size_t)n + 1, sizeof *number);
    if (!index || !number) goto out;
    if (o->class_name_count && (s = copy_names(&c, o->class_names, o->class_name_count)) < 0)
        goto out;
    s = c.n ? find_names(index, label, n, &c, what) : KEEL_EDATA;
    if (s == KEEL_ENOMEM) goto out;
    const keel_status read = s < 0 ? read_numbers(number, label, n) : KEEL_EDATA;
    if (read != KEEL_EDATA) { /* class names go before numbers */
        s = read < 0 ? read : target_of_numbers(y, number, n, o, mode, what);
        goto out;
    }
    if (s < 0 && c.n) goto out;
    if (!c.n) {
        if ((s = collect_names(&c, label, n, what)) < 0) goto out;
        if ((s = find_names(index, label, n, &c, what)) < 0) goto out;
        if (o->class_count && c.n > o->class_count) {
            s = keel_fail(KEEL_EDATA, "%s: %lld different labels for %lld class%s", what,
                          (long long)c.n, (long long)o->class_count,
                          o->class_count == 1 ? "" : "es");
            goto out;
        }
    }
    s = target_of_names(y, index, n, o->class_count ? o->class_count : c.n, mode, what);
    if (s < 0) goto out;
    *classes = c;
    c = (keel_classes){ 0 };
out:
    keel_classes_free(&c);
    keel_free(index);
    keel_free(number);
    return s;
}

static keel_status labels_from_numbers(keel_tensor *y, const keel_dataset_options *o,
                                       const char *what)
{
    const keel_shape *s = &y->shape;
    if (!are_classes(o, o->label_mode)) return KEEL_OK;
    keel_tensor out = { 0 };
    double *number = keel_calloc((size_t)s->dim[0] + 1, sizeof *number);
    if (!number) return KEEL_ENOMEM;
    keel_convert(number, KEEL_FLOAT64, y->data, y->dtype, s->dim[0]);
    const keel_status r = target_of_numbers(&out, number, s->dim[0], o, o->label_mode, what);
    keel_free(number);
    if (r < 0) return r;
    if (o->label_mode != KEEL_LABEL_CATEGORICAL) { /* checked, not changed */
        keel_tensor_free(&out);
        return KEEL_OK;
    }
    keel_tensor_free(y);
    *y = out;
    return KEEL_OK;
}

keel_status keel_labels_from_array(keel_tensor *y, keel_classes *classes,
                                   const keel_dataset_options *o, const char *what)
{
    const keel_shape *s = &y->shape;
    const bool column = s->rank == 1 || (s->rank == 2 && s->dim[1] == 1);
    if (!y->data || (!column && y->dtype != KEEL_STRING)) return KEEL_OK;
    if (y->dtype != KEEL_STRING) return labels_from_numbers(y, o, what);
    if (!column) return keel_fail(KEEL_EUNSUP, "%s: text labels must be one per row", what);
    const int64_t n = s->dim[0];
    keel_tensor out = { 0 };
    const char **text = keel_calloc((size_t)n + 1, sizeof *text);
    if (!text) return KEEL_ENOMEM;
    for (int64_t i = 0; i < n; i++) text[i] = ((const keel_string *)y->data)[i].data;
    const keel_status r = keel_labels_from_texts(&out, classes, text, n, o, o->label_mode, what);
    keel_free(text);
    if (r < 0) return r;
    keel_tensor_free(y);
    *y = out;
    return KEEL_OK;
}

keel_status keel_classes_fail_unknown(const char *const *name, int64_t n, const char *label,
                                      const char *what)
{
    enum { SHOWN = 8 };
    keel_text known = { 0 };
    for (int64_t i = 0; i < n && i < SHOWN; i++)
        keel_text_add(&known, "%s%.40s", i ? ", " : "", name[i]);
    if (n > SHOWN) keel_text_add(&known, ", ... (%lld in all)", (long long)n);
    const keel_status s = keel_fail(KEEL_EDATA, "%s: '%.40s' is not one of the model's classes: %s",
                                    what, label, known.data ? known.data : "");
    keel_text_free(&known);
    return s;
}
