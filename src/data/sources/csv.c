/* CSV with a header line: one column is the label, every other is a feature. Fields may be quoted,
 * lines may end in CR LF, empty lines are passed over.
 *
 * The text is read whole and cut where it lies; the features become float32, the labels numbers, or
 * the index in their sorted names where one of them is no number. */
#define _GNU_SOURCE /* strtod_l: a number must not depend on the user's locale */
#include "data/sources/csv.h"
#include "base/memory.h"
#include "data/source.h"
#include "data/spec.h"
#include "io/file.h"
#include <locale.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { COLUMNS_MAX = 1 << 20, CLASSES_MAX = 1 << 20 };
#define CSV_BYTES_MAX ((size_t)1 << 34)

typedef struct table {
    const char *path;
    char *at, *end; /* what is not cut yet */
    int64_t line;   /* of the record being cut, from 1 */
    int64_t next_line;
    char **field; /* of the record; point into the text */
    int64_t n_fields, field_room;
    char **name; /* of the columns */
    int64_t n_columns, label;
    float *x;
    int64_t n_x, x_room;
    char **labels;
    int64_t n_rows, label_room;
    locale_t c_locale;
} table;

static keel_status grow(void **p, int64_t *room, int64_t need, size_t size)
{
    if (need <= *room) return KEEL_OK;
    const int64_t n = *room ? 2 * *room : 64;
    void *more = keel_grow(*p, (size_t)(n < need ? need : n), size);
    if (!more) return KEEL_ENOMEM;
    *p = more;
    *room = n < need ? need : n;
    return KEEL_OK;
}

static keel_status add_field(table *t, char *field)
{
    if (t->n_fields == COLUMNS_MAX)
        return keel_fail(KEEL_EFORMAT, "%s:%lld: more than %d fields", t->path, (long long)t->line,
                         COLUMNS_MAX);
    KEEL_TRY(grow((void **)&t->field, &t->field_room, t->n_fields + 1, sizeof *t->field));
    t->field[t->n_fields++] = field;
    return KEEL_OK;
}

/* Cut one field at t->at; *last: the record ends with it. The text is unquoted in place. */
static keel_status cut_field(table *t, bool *last)
{
    char *from = t->at, *to = t->at, *const begin = t->at;
    if (from < t->end && *from == '"') {
        for (from++;; from++) {
            if (from == t->end)
                return keel_fail(KEEL_EFORMAT, "%s:%lld: a quote is never closed", t->path,
                                 (long long)t->line);
            if (*from == '"' && (from + 1 == t->end || from[1] != '"')) break;
            if (*from == '"') from++;
            if (*from == '\n') t->next_line++;
            *to++ = *from;
        }
        from++;
        if (from < t->end && *from != ',' && *from != '\n' && *from != '\r')
            return keel_fail(KEEL_EFORMAT, "%s:%lld: something follows a closed quote", t->path,
                             (long long)t->line);
    } else {
        while (from < t->end && *from != ',' && *from != '\n' && *from != '\r') from++;
        to = from;
    }
    *last = from == t->end || *from != ',';
    if (from < t->end && *from == '\r') {
        from++;
        if (from < t->end && *from != '\n')
            return keel_fail(KEEL_EFORMAT, "%s:%lld: a carriage return inside a line", t->path,
                             (long long)t->line);
    }
    if (from < t->end) from++;
    if (*last) t->next_line++;
    *to = 0; /* the file has one zero byte behind its end */
    t->at = from;
    return add_field(t, begin);
}

/* The next record that is not an empty line; KEEL_END: there is none. */
static keel_status cut_record(table *t)
{
    bool last;
    do {
        if (t->at == t->end) return KEEL_END;
        t->n_fields = 0;
        t->line = t->next_line;
        do KEEL_TRY(cut_field(t, &last));
        while (!last);
    } while (t->n_fields == 1 && !*t->field[0] && (t->n_columns != 1 || t->at == t->end));
    return KEEL_OK;
}

static bool to_number(const table *t, const char *text, double *number)
{
    char *end;
    while (*text == ' ' || *text == '\t') text++;
    if (!*text || text[strspn(text, "0123456789+-.eE \t")]) return false;
    *number = strtod_l(text, &end, t->c_locale);
    if (end == text) return false;
    while (*end == ' ' || *end == '\t') end++;
    return !*end && isfinite(*number);
}

static keel_status read_header(table *t, const char *label)
{
    if (t->end - t->at >= 3 && !memcmp(t->at, "\xef\xbb\xbf", 3)) t->at += 3;
    const keel_status s = cut_record(t);
    if (s < 0) return s;
    if (s == KEEL_END)
        return keel_fail(KEEL_EFORMAT, "%s: the file is empty; it needs a header line", t->path);
    t->name = t->field;
    t->n_columns = t->n_fields;
    t->field = NULL;
    t->n_fields = t->field_room = 0;
    t->label = -1;
    for (int64_t i = 0; label && i < t->n_columns; i++) {
        if (strcmp(t->name[i], label)) continue;
        if (t->label >= 0)
            return keel_fail(KEEL_EARG, "%s: two columns are called '%s'", t->path, label);
        t->label = i;
    }
    if (label && t->label < 0)
        return keel_fail(KEEL_EARG, "%s: no column '%s'; the first is '%s' and the last '%s'",
                         t->path, label, t->name[0], t->name[t->n_columns - 1]);
    if (t->n_columns == 1 && label)
        return keel_fail(KEEL_EFORMAT, "%s: no column but the label '%s'", t->path, label);
    return KEEL_OK;
}

static keel_status add_row(table *t)
{
    if (t->n_fields != t->n_columns)
        return keel_fail(KEEL_EFORMAT, "%s:%lld: %lld fields where the header has %lld", t->path,
                         (long long)t->line, (long long)t->n_fields, (long long)t->n_columns);
    KEEL_TRY(grow((void **)&t->x, &t->x_room, t->n_x + t->n_columns, sizeof *t->x));
    for (int64_t i = 0; i < t->n_columns; i++) {
        double v;
        if (i == t->label) continue;
        if (!to_number(t, t->field[i], &v) || !isfinite((float)v))
            return keel_fail(KEEL_EFORMAT, "%s:%lld: column '%s' has '%.40s', which is no number",
                             t->path, (long long)t->line, t->name[i], t->field[i]);
        t->x[t->n_x++] = (float)v;
    }
    if (t->label >= 0) {
        KEEL_TRY(grow((void **)&t->labels, &t->label_room, t->n_rows + 1, sizeof *t->labels));
        if (!*(t->labels[t->n_rows] = t->field[t->label]))
            return keel_fail(KEEL_EFORMAT, "%s:%lld: no label", t->path, (long long)t->line);
    }
    t->n_rows++;
    return KEEL_OK;
}

static int by_name(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

/* Labels that are numbers: int32 where all are whole, else float32. */
static keel_status number_labels(const table *t, const keel_dataset_options *o, keel_tensor *y,
                                 bool *are_numbers)
{
    bool whole = true;
    double v;
    *are_numbers = true;
    for (int64_t i = 0; i < t->n_rows; i++) {
        if (!(*are_numbers = to_number(t, t->labels[i], &v))) return KEEL_OK;
        whole &= v == floor(v) && fabs(v) <= 1 << 30;
    }
    if (o->label_mode == KEEL_LABEL_CATEGORICAL)
        return keel_fail(KEEL_EARG,
                         "%s: categorical labels need names, and '%s' has numbers; use "
                         "them as they are",
                         t->path, t->name[t->label]);
    const keel_shape shape = { 1, { t->n_rows } };
    KEEL_TRY(keel_tensor_create(y, whole ? KEEL_INT32 : KEEL_FLOAT32, &shape));
    for (int64_t i = 0; i < t->n_rows; i++) {
        to_number(t, t->labels[i], &v);
        if (whole)
            ((int32_t *)y->data)[i] = (int32_t)v;
        else
            ((float *)y->data)[i] = (float)v;
    }
    return KEEL_OK;
}

/* The sorted names that occur; *names and what it holds is the caller's. */
static keel_status collect_names(const table *t, char ***names, int64_t *n_names)
{
    char **all = keel_calloc((size_t)t->n_rows, sizeof *all);
    if (!all) return KEEL_ENOMEM;
    memcpy(all, t->labels, (size_t)t->n_rows * sizeof *all);
    qsort(all, (size_t)t->n_rows, sizeof *all, by_name);
    int64_t n = 0;
    for (int64_t i = 0; i < t->n_rows; i++)
        if (!i || strcmp(all[i], all[n - 1])) all[n++] = all[i];
    keel_status s = KEEL_OK;
    int64_t owned = 0;
    if (n > CLASSES_MAX)
        s = keel_fail(KEEL_EFORMAT, "%s: more than %d different labels", t->path, CLASSES_MAX);
    for (; s >= 0 && owned < n; owned++)
        if (!(all[owned] = keel_strdup(all[owned]))) s = KEEL_ENOMEM;
    if (s < 0) {
        for (int64_t i = 0; i < owned; i++) keel_free(all[i]);
        keel_free(all);
        return s;
    }
    *names = all;
    *n_names = n;
    return KEEL_OK;
}

static keel_status name_labels(const table *t, const keel_dataset_options *o, keel_tensor *y,
                               char ***names, int64_t *n_names)
{
    KEEL_TRY(collect_names(t, names, n_names));
    const bool hot = o->label_mode == KEEL_LABEL_CATEGORICAL;
    const bool binary = o->label_mode == KEEL_LABEL_BINARY;
    const keel_shape shape = { hot || binary ? 2 : 1, { t->n_rows, hot ? *n_names : 1 } };
    if (binary && *n_names != 2)
        return keel_fail(KEEL_EDATA, "%s: binary labels need two names, and '%s' has %lld", t->path,
                         t->name[t->label], (long long)*n_names);
    KEEL_TRY(keel_tensor_create(y, hot || binary ? KEEL_FLOAT32 : KEEL_INT32, &shape));
    for (int64_t i = 0; i < t->n_rows; i++) {
        char **at = bsearch(&t->labels[i], *names, (size_t)*n_names, sizeof **names, by_name);
        const int64_t label = at - *names;
        if (hot)
            ((float *)y->data)[i * *n_names + label] = 1;
        else if (binary)
            ((float *)y->data)[i] = (float)label;
        else
            ((int32_t *)y->data)[i] = (int32_t)label;
    }
    return KEEL_OK;
}

keel_status keel_csv_decode(keel_dataset **out, char *text, size_t n_bytes, const char *label,
                            const keel_dataset_options *o, const char *path)
{
    table t = { .path = path, .at = text, .end = text + n_bytes, .next_line = 1 };
    keel_tensor x = { 0 }, y = { 0 };
    char **names = NULL;
    int64_t n_names = 0;
    keel_status s;
    if (!(t.c_locale = newlocale(LC_ALL_MASK, "C", NULL)))
        return keel_fail(KEEL_ENOMEM, "%s: out of memory", path);
    if (memchr(text, 0, n_bytes)) {
        s = keel_fail(KEEL_EFORMAT, "%s: not a text", path);
        goto out;
    }
    if ((s = read_header(&t, label)) < 0) goto out;
    while ((s = cut_record(&t)) == KEEL_OK)
        if ((s = add_row(&t)) < 0) goto out;
    if (s < 0) goto out;
    if (!t.n_rows) {
        s = keel_fail(KEEL_EDATA, "%s: no rows behind the header line", path);
        goto out;
    }
    if (t.label >= 0 && o->label_mode != KEEL_LABEL_NONE) {
        bool numbers;
        if ((s = number_labels(&t, o, &y, &numbers)) < 0) goto out;
        if (!numbers && (s = name_labels(&t, o, &y, &names, &n_names)) < 0) goto out;
    }
    x = (keel_tensor){ KEEL_FLOAT32, { 2, { t.n_rows, t.n_x / t.n_rows } }, t.x };
    t.x = NULL;
    s = keel_dataset_adopt_arrays(out, &x, &y, NULL, n_names, names, path);
    names = NULL;
    n_names = 0;
out:
    for (int64_t i = 0; names && i < n_names; i++) keel_free(names[i]);
    keel_free(names);
    keel_tensor_free(&y);
    keel_free(t.x);
    keel_free(t.labels);
    keel_free(t.name);
    keel_free(t.field);
    freelocale(t.c_locale);
    return s;
}

static bool claims(const char *spec)
{
    return keel_spec_ends(spec, strlen(spec), ".csv");
}

static keel_status open_csv(keel_dataset **out, const char *spec, const keel_dataset_options *o)
{
    return keel_dataset_from_csv(out, spec, o->label, o);
}

const keel_source keel_source_csv = {
    .name = "csv",
    .help = "a .csv file with a header line (name the label column)",
    .claims = claims,
    .open = open_csv,
};

keel_status keel_dataset_from_csv(keel_dataset **out, const char *path, const char *label,
                                  const keel_dataset_options *options)
{
    keel_dataset_options o;
    void *text = NULL;
    size_t n_bytes = 0;
    keel_dataset *d = NULL;
    if (!out || !path) return keel_fail(KEEL_EARG, "csv: NULL is none");
    KEEL_TRY(keel_dataset_options_read(&o, options));
    KEEL_TRY(keel_file_read(path, CSV_BYTES_MAX, &text, &n_bytes));
    keel_status s = keel_csv_decode(&d, text, n_bytes, label, &o, path);
    keel_free(text);
    if (s >= 0) s = keel_dataset_take_subset(&d, &o);
    if (s < 0)
        keel_dataset_destroy(d);
    else
        *out = d;
    return s;
}
