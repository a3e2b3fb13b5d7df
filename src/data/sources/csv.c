/* CSV: columns become the fields of a row; by default one column is the label and all others are
 * features. Values may be quoted, lines may end in CR LF, empty lines are skipped.
 *
 * The whole text is read and split in place. Numbers are stored as float32; a field of whole
 * numbers becomes int64 at the first number that float32 cannot hold. */
#define _GNU_SOURCE /* locale_t */
#include "data/sources/csv.h"
#include "base/memory.h"
#include "base/text.h"
#include "data/choice.h"
#include "data/features.h"
#include "data/labels.h"
#include "data/spec.h"
#include "io/file.h"
#include "tensor/dtype.h"
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { COLUMNS_MAX = 1 << 20 };
#define CSV_BYTES_MAX ((size_t)1 << 34)
#define EXACT         0x1p24 /* float32 holds every whole number up to this one */

typedef struct group { /* the columns that become one field */
    const char *path;
    keel_data_role role;
    int32_t width;
    int64_t column;   /* its first column */
    bool labels;      /* one column of labels: numbers or class names */
    bool may_be_text; /* requested by name */
    bool whole;       /* has only whole numbers so far */
    keel_dtype dtype; /* so far: float32, int64 or string */
    void *data;       /* of that type; for labels const char * */
    int64_t room;     /* capacity in rows */
} group;

typedef struct place { /* where a column goes; group -1: it is not used */
    int32_t group, at;
} place;

typedef struct table {
    const char *path;
    const keel_dataset_options *o;
    char *at, *end; /* the text that is still to be parsed */
    int64_t line;   /* line number of the current record, from 1 */
    int64_t next_line;
    char separator;
    char **field; /* values of the current record; point into the text */
    int64_t n_fields, field_room;
    char **name;   /* of the columns */
    char *numbers; /* storage of the names of numbered columns */
    int64_t n_columns, n_rows;
    place *column;
    int n_group;
    group group[KEEL_FIELDS_MAX];
    locale_t c_locale;
} table;

/* ---- records ----------------------------------------------------------------------------------
 */

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

/* Take one value at t->at and unquote it in place; *last: the record ends with it. */
static keel_status cut_field(table *t, bool *last)
{
    char *from = t->at, *to = t->at, *const begin = t->at;
    const char separator = t->separator;
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
        if (from < t->end && *from != separator && *from != '\n' && *from != '\r')
            return keel_fail(KEEL_EFORMAT, "%s:%lld: something follows a closed quote", t->path,
                             (long long)t->line);
    } else {
        while (from < t->end && *from != separator && *from != '\n' && *from != '\r') from++;
        to = from;
    }
    *last = from == t->end || *from != separator;
    if (from < t->end && *from == '\r') {
        from++;
        if (from < t->end && *from != '\n')
            return keel_fail(KEEL_EFORMAT, "%s:%lld: a carriage return inside a line", t->path,
                             (long long)t->line);
    }
    if (from < t->end) from++;
    if (*last) t->next_line++;
    *to = 0; /* the text has a zero byte after its end */
    t->at = from;
    return add_field(t, begin);
}

/* Split the next record, skipping empty lines. KEEL_END: there is none. */
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

/* The separator of the first line: a comma, or without one a semicolon or a tab. */
static char find_separator(const table *t)
{
    int64_t semicolons = 0, tabs = 0;
    bool quoted = false;
    for (const char *p = t->at; p < t->end && (quoted || *p != '\n'); p++) {
        if (*p == '"') quoted = !quoted;
        if (quoted) continue;
        if (*p == ',') return ',';
        semicolons += *p == ';';
        tabs += *p == '\t';
    }
    return semicolons > tabs ? ';' : tabs ? '\t' : ',';
}

/* ---- the header -------------------------------------------------------------------------------
 */

/* The column names as "'a', 'b', ..." for messages; the caller frees it. */
static keel_text list_columns(const table *t)
{
    enum { SHOWN = 12 };
    keel_text list = { 0 };
    char name[64];
    for (int64_t i = 0; i < t->n_columns && i < SHOWN; i++)
        keel_text_add(&list, "%s'%s'", i ? ", " : "",
                      keel_printable(name, sizeof name, t->name[i]));
    if (t->n_columns > SHOWN)
        keel_text_add(&list, ", ... '%s' (%lld in all)",
                      keel_printable(name, sizeof name, t->name[t->n_columns - 1]),
                      (long long)t->n_columns);
    return list;
}

static keel_status no_column(const table *t, const char *name)
{
    keel_text list = list_columns(t);
    const keel_status s = keel_fail(KEEL_EARG, "%s: no column '%s'; there are %s", t->path, name,
                                    list.data ? list.data : "");
    keel_text_free(&list);
    return s;
}

static bool all_numbers(const table *t)
{
    double v;
    for (int64_t i = 0; i < t->n_columns; i++)
        if (!keel_read_number(t->name[i], t->c_locale, &v)) return false;
    return true;
}

static keel_status number_columns(table *t)
{
    enum { DIGITS = 8 };
    t->name = keel_calloc((size_t)t->n_columns, sizeof *t->name);
    t->numbers = keel_calloc((size_t)t->n_columns, DIGITS);
    if (!t->name || !t->numbers) return KEEL_ENOMEM;
    for (int64_t i = 0; i < t->n_columns; i++) {
        t->name[i] = t->numbers + i * DIGITS;
        snprintf(t->name[i], DIGITS, "%d", (int)i);
    }
    return KEEL_OK;
}

/* Read the column names. Without a header the first record stays in t->field as the first row. */
static keel_status read_header(table *t)
{
    if (t->end - t->at >= 3 && !memcmp(t->at, "\xef\xbb\xbf", 3)) t->at += 3;
    t->separator = t->o->separator ? t->o->separator : find_separator(t);
    const keel_status s = cut_record(t);
    if (s < 0) return s;
    if (s == KEEL_END)
        return keel_fail(KEEL_EFORMAT, "%s: the file is empty%s", t->path,
                         t->o->no_header ? "" : "; it needs a header line");
    t->n_columns = t->n_fields;
    if (t->o->no_header) return number_columns(t);
    t->name = t->field;
    t->field = NULL;
    t->n_fields = t->field_room = 0;
    if (all_numbers(t))
        return keel_fail(KEEL_EARG,
                         "%s: its first line has only numbers, so it seems to have no "
                         "header; give --no-header and name columns by number, 0 to %lld, or "
                         "add a header",
                         t->path, (long long)t->n_columns - 1);
    return KEEL_OK;
}

/* ---- which column goes where -------------------------------------------------------------------
 */

/* The number of a column; -1: none. KEEL_EARG: two columns have this name. */
static keel_status find_column(const table *t, const char *name, int64_t *at)
{
    *at = -1;
    for (int64_t i = 0; i < t->n_columns; i++) {
        if (strcmp(t->name[i], name)) continue;
        if (*at >= 0) return keel_fail(KEEL_EARG, "%s: two columns are called '%s'", t->path, name);
        *at = i;
    }
    return KEEL_OK;
}

static keel_status take_column(table *t, int64_t i, int g)
{
    if (t->column[i].group >= 0)
        return keel_fail(KEEL_EARG, "%s: column '%s' is requested twice", t->path, t->name[i]);
    if (!t->group[g].width) t->group[g].column = i;
    t->column[i] = (place){ g, t->group[g].width++ };
    return KEEL_OK;
}

/* Take a column by its name, or of numbered columns a range such as "2-5". */
static keel_status take_part(table *t, const char *part, int g)
{
    int64_t i;
    char *end;
    const long first = strtol(part, &end, 10);
    if (t->o->no_header && end > part && *end == '-') {
        const char *second = end + 1;
        const long last = strtol(second, &end, 10);
        if (end == second || *end || first < 0 || last < first || last >= t->n_columns)
            return no_column(t, part);
        for (i = first; i <= last; i++) KEEL_TRY(take_column(t, i, g));
        return KEEL_OK;
    }
    KEEL_TRY(find_column(t, part, &i));
    return i < 0 ? no_column(t, part) : take_column(t, i, g);
}

static keel_status add_group(table *t, const char *path, keel_data_role role, bool may_be_text)
{
    if (t->n_group == KEEL_FIELDS_MAX)
        return keel_fail(KEEL_EARG, "%s: a row has at most %d fields", t->path, KEEL_FIELDS_MAX);
    t->group[t->n_group++] =
        (group){ .path = path, .role = role, .whole = true, .may_be_text = may_be_text };
    return KEEL_OK;
}

/* Take the fields of a list. *none: there is no list, or it has a model's names and no columns of
 * this file. */
static keel_status take_list(table *t, const keel_choice *c, int n, keel_data_role role, bool *none)
{
    bool plain = true, here = true;
    for (int i = 0; i < n; i++) {
        int64_t at = 0;
        if (c[i].plain && (find_column(t, c[i].name, &at) < 0 || at < 0)) here = false;
        plain &= c[i].plain;
    }
    *none = n == 0 || (plain && !here);
    for (int i = 0; !*none && i < n; i++) {
        const int g = t->n_group;
        KEEL_TRY(add_group(t, c[i].name, role, role == KEEL_ROLE_INPUT));
        for (int k = 0; k < c[i].n_part; k++) KEEL_TRY(take_part(t, c[i].part[k], g));
        t->group[g].labels = role == KEEL_ROLE_TARGET && t->group[g].width == 1;
    }
    return KEEL_OK;
}

/* Targets are taken first, since the columns that remain may be the only input. */
static keel_status choose_targets(table *t, const char *label, const keel_choice *targets)
{
    bool none = true;
    if (label && t->o->n_target == 0) {
        KEEL_TRY(add_group(t, "y", KEEL_ROLE_TARGET, false));
    } else {
        KEEL_TRY(take_list(t, targets, t->o->n_target, KEEL_ROLE_TARGET, &none));
        if (!none && label)
            return keel_fail(KEEL_EARG, "%s: give either a label or a list of targets, not both",
                             t->path);
        if (!none || !label) return KEEL_OK;
        if (t->o->n_target > 1)
            return keel_fail(KEEL_EARG,
                             "%s: %d targets and one label '%s'; give the column of each, as "
                             "%s=COLUMN",
                             t->path, t->o->n_target, label, targets[0].name);
        KEEL_TRY(add_group(t, targets[0].name, KEEL_ROLE_TARGET, false));
    }
    t->group[t->n_group - 1].labels = true;
    return take_part(t, label, t->n_group - 1);
}

static keel_status choose_inputs(table *t, const keel_choice *inputs)
{
    bool none = true;
    KEEL_TRY(take_list(t, inputs, t->o->n_input, KEEL_ROLE_INPUT, &none));
    if (!none) return KEEL_OK;
    if (t->o->n_input > 1)
        return keel_fail(KEEL_EARG, "%s: %d inputs; give the columns of each, as %s=COLUMN,COLUMN",
                         t->path, t->o->n_input, inputs[0].name);
    KEEL_TRY(add_group(t, t->o->n_input ? inputs[0].name : "x", KEEL_ROLE_INPUT, false));
    for (int64_t i = 0; i < t->n_columns; i++)
        if (t->column[i].group < 0) KEEL_TRY(take_column(t, i, t->n_group - 1));
    if (t->group[t->n_group - 1].width) return KEEL_OK;
    return keel_fail(KEEL_EFORMAT, "%s: no column except the label '%s'", t->path, t->name[0]);
}

static keel_status choose_columns(table *t, const char *label, const keel_choice *inputs,
                                  const keel_choice *targets)
{
    t->column = keel_calloc((size_t)t->n_columns, sizeof *t->column);
    if (!t->column) return KEEL_ENOMEM;
    for (int64_t i = 0; i < t->n_columns; i++) t->column[i].group = -1;
    KEEL_TRY(choose_targets(t, label, targets));
    return choose_inputs(t, inputs);
}

/* ---- rows --------------------------------------------------------------------------------------
 */

static keel_status not_a_number(const table *t, int64_t column)
{
    const char *text = t->field[column];
    const bool comma = t->separator != ',' && strchr(text, ',');
    return keel_fail(KEEL_EFORMAT, "%s:%lld: column '%s' has '%.40s', which is not a number%s",
                     t->path, (long long)t->line, t->name[column], text,
                     comma ? " (the decimal separator is a point)" : "");
}

/* Convert all numbers of a group so far, including this row's up to `column`, to another type. */
static keel_status change_type(const table *t, group *g, keel_dtype to, int64_t column)
{
    const size_t size = keel_dtype_size(to), old = keel_dtype_size(g->dtype);
    char *more = keel_calloc((size_t)(g->room * g->width), size), *from = g->data;
    const int64_t done = t->n_rows * g->width;
    if (!more) return KEEL_ENOMEM;
    keel_convert(more, to, from, g->dtype, done);
    for (int64_t i = 0; i < column; i++) {
        if (t->column[i].group < 0 || &t->group[t->column[i].group] != g) continue;
        const size_t at = (size_t)(done + t->column[i].at);
        keel_convert(more + at * size, to, from + at * old, g->dtype, 1);
    }
    keel_free(g->data);
    g->data = more;
    g->dtype = to;
    return KEEL_OK;
}

/* The whole number v, from the text if it is a plain integer, so that all digits count. */
static int64_t whole_number(const char *text, double v)
{
    char *end;
    errno = 0;
    const long long n = strtoll(text, &end, 10);
    return !errno && !end[strspn(end, " \t")] ? n : (int64_t)v;
}

static keel_status add_number(const table *t, group *g, int64_t column, int64_t at)
{
    const char *text = t->field[column];
    double v;
    if (!keel_read_number(text, t->c_locale, &v) || !isfinite((float)v))
        return not_a_number(t, column);
    g->whole &= v == floor(v) && fabs(v) < 0x1p63;
    if (g->dtype == KEEL_INT64 && !g->whole) KEEL_TRY(change_type(t, g, KEEL_FLOAT32, column));
    if (g->dtype == KEEL_FLOAT32 && g->whole && fabs(v) > EXACT)
        KEEL_TRY(change_type(t, g, KEEL_INT64, column));
    if (g->dtype == KEEL_INT64)
        ((int64_t *)g->data)[at] = whole_number(text, v);
    else
        ((float *)g->data)[at] = (float)v;
    return KEEL_OK;
}

static size_t element_size(const group *g)
{
    return g->labels ? sizeof(char *) : keel_dtype_size(g->dtype);
}

static keel_status add_cell(table *t, int64_t column)
{
    group *g = &t->group[t->column[column].group];
    char *text = t->field[column];
    const int64_t at = t->n_rows * g->width + t->column[column].at;
    if (g->labels) {
        if (!*text)
            return keel_fail(KEEL_EFORMAT, "%s:%lld: no label in column '%s'", t->path,
                             (long long)t->line, t->name[column]);
        ((const char **)g->data)[at] = text;
        return KEEL_OK;
    }
    if (g->dtype != KEEL_STRING) return add_number(t, g, column, at);
    ((keel_string *)g->data)[at] = (keel_string){ text, (int64_t)strlen(text) };
    return KEEL_OK;
}

/* A field that was requested by name has texts if its first row is not a number. */
static void find_texts(table *t)
{
    double v;
    for (int64_t i = 0; i < t->n_columns; i++) {
        group *g = t->column[i].group < 0 ? NULL : &t->group[t->column[i].group];
        if (g && g->may_be_text && !keel_read_number(t->field[i], t->c_locale, &v))
            g->dtype = KEEL_STRING;
    }
}

static keel_status add_row(table *t)
{
    if (t->n_fields != t->n_columns)
        return keel_fail(KEEL_EFORMAT, "%s:%lld: %lld fields, but the %s has %lld", t->path,
                         (long long)t->line, (long long)t->n_fields,
                         t->o->no_header ? "first line" : "header", (long long)t->n_columns);
    if (!t->n_rows) find_texts(t);
    for (int i = 0; i < t->n_group; i++) {
        group *g = &t->group[i];
        if (t->n_rows < g->room) continue;
        const int64_t room = g->room ? 2 * g->room : 1 + 64 / g->width;
        void *more = keel_grow(g->data, (size_t)room, (size_t)g->width * element_size(g));
        if (!more) return KEEL_ENOMEM;
        g->data = more;
        g->room = room;
    }
    for (int64_t i = 0; i < t->n_columns; i++)
        if (t->column[i].group >= 0) KEEL_TRY(add_cell(t, i));
    t->n_rows++;
    return KEEL_OK;
}

/* ---- fields ------------------------------------------------------------------------------------
 */

static keel_status own_labels(const table *t, const group *g, keel_tensor *y, keel_classes *classes)
{
    char what[256];
    keel_classes these = { 0 };
    snprintf(what, sizeof what, "%.180s: column '%.60s'", t->path, t->name[g->column]);
    const int target = t->o->n_target ? (int)(g - t->group) : -1; /* targets come first */
    const keel_dataset_options o = keel_labels_options(t->o, target);
    KEEL_TRY(keel_labels_from_texts(y, &these, g->data, t->n_rows, &o, o.label_mode, what));
    if (!these.n) return KEEL_OK;
    if (classes->n) {
        keel_classes_free(&these);
        keel_tensor_free(y);
        return keel_fail(KEEL_EUNSUP,
                         "%s: class names as labels in more than one target; use numbers", what);
    }
    *classes = these;
    return KEEL_OK;
}

/* Make a dataset of all fields, inputs first. */
static keel_status make_dataset(keel_dataset **out, table *t)
{
    keel_array_field f[KEEL_FIELDS_MAX];
    keel_classes classes = { 0 };
    keel_status s = KEEL_OK;
    int n = 0;
    for (int role = KEEL_ROLE_INPUT; role <= KEEL_ROLE_TARGET; role++)
        for (int i = 0; s >= 0 && i < t->n_group; i++) {
            group *g = &t->group[i];
            if ((int)g->role != role) continue;
            if (role == KEEL_ROLE_TARGET && t->o->label_mode == KEEL_LABEL_NONE) continue;
            f[n] = (keel_array_field){ .path = g->path, .role = g->role };
            if (g->labels) {
                s = own_labels(t, g, &f[n].array, &classes);
            } else if (g->dtype == KEEL_STRING) {
                s = keel_strings_create(&f[n].array, &(keel_shape){ 2, { t->n_rows, g->width } },
                                        g->data);
            } else {
                f[n].array = (keel_tensor){ g->dtype, { 2, { t->n_rows, g->width } }, g->data };
                g->data = NULL;
            }
            n += s >= 0;
        }
    if (s >= 0) return keel_dataset_adopt_fields(out, f, n, classes.n, classes.name, t->path);
    for (int i = 0; i < n; i++) keel_tensor_free(&f[i].array);
    keel_classes_free(&classes);
    return s;
}

keel_status keel_csv_decode(keel_dataset **out, char *text, size_t n_bytes, const char *label,
                            const keel_dataset_options *o, const char *path)
{
    table t = { .path = path, .o = o, .at = text, .end = text + n_bytes, .next_line = 1 };
    keel_choice *inputs = NULL, *targets = NULL;
    keel_status s;
    if (!(t.c_locale = newlocale(LC_ALL_MASK, "C", NULL)))
        return keel_fail(KEEL_ENOMEM, "%s: out of memory", path);
    if (memchr(text, 0, n_bytes)) {
        s = keel_fail(KEEL_EFORMAT, "%s: not a text file", path);
        goto out;
    }
    if ((s = keel_choices_read(&inputs, o->inputs, o->n_input, "inputs")) < 0) goto out;
    if ((s = keel_choices_read(&targets, o->targets, o->n_target, "targets")) < 0) goto out;
    if ((s = read_header(&t)) < 0) goto out;
    if ((s = choose_columns(&t, label, inputs, targets)) < 0) goto out;
    if (o->no_header && (s = add_row(&t)) < 0) goto out;
    while ((s = cut_record(&t)) == KEEL_OK)
        if ((s = add_row(&t)) < 0) goto out;
    if (s < 0) goto out;
    if (t.n_rows)
        s = make_dataset(out, &t);
    else
        s = keel_fail(KEEL_EDATA, "%s: no rows after the header line", path);
out:
    for (int i = 0; i < t.n_group; i++) keel_free(t.group[i].data);
    keel_choices_free(inputs, o->n_input);
    keel_choices_free(targets, o->n_target);
    keel_free(t.column);
    keel_free(t.name);
    keel_free(t.numbers);
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
    KEEL_TRY(keel_feature_types_refuse(o, spec));
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
    if (!out || !path) return keel_fail(KEEL_EARG, "csv: out and path must not be NULL");
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
