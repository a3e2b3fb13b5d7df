/* CSV: columns become the fields of a row. Values may be quoted, lines may end in CR LF, empty
 * lines are skipped. Several files of one header, a folder or a pattern, are one table. */
#include "data/sources/csv.h"
#include "base/memory.h"
#include "base/text.h"
#include "data/features.h"
#include "data/file_list.h"
#include "data/labels.h"
#include "io/number.h"
#include "io/text_file.h"
#include <ctype.h>
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define FLOAT_END 0x1.ffffffp127 /* from here on, a number rounds to an infinite float32 */

/* ---- headers ----------------------------------------------------------------------------------
 */

/* Copy the names of the columns: the text that they are in is freed before the next file. */
static keel_status copy_names(keel_csv_reader *r)
{
    enum { DIGITS = 8 };
    const keel_csv *c = &r->cut;
    const bool numbered = r->o->no_header;
    size_t n = 0;
    for (int64_t i = 0; i < c->n_values; i++) n += numbered ? DIGITS : strlen(c->value[i]) + 1;
    r->name = keel_calloc((size_t)c->n_values, sizeof *r->name);
    r->names = keel_calloc(n, 1);
    if (!r->name || !r->names) return KEEL_ENOMEM;
    char *to = r->names;
    for (int64_t i = 0; i < c->n_values; i++) {
        r->name[i] = to;
        if (numbered)
            to += snprintf(to, DIGITS, "%d", (int)i) + 1;
        else
            to = stpcpy(to, c->value[i]) + 1;
    }
    r->n_columns = c->n_values;
    return KEEL_OK;
}

static bool all_numbers(const keel_csv_reader *r)
{
    double v;
    for (int64_t i = 0; i < r->n_columns; i++)
        if (!keel_read_number(r->name[i], &v)) return false;
    return true;
}

/* The header of a further file must be that of the first. */
static keel_status compare_names(const keel_csv_reader *r)
{
    const keel_csv *c = &r->cut;
    if (c->n_values != r->n_columns)
        return keel_fail(KEEL_EFORMAT, "%s: %lld columns, but %s has %lld", c->path,
                         (long long)c->n_values, r->first, (long long)r->n_columns);
    for (int64_t i = 0; !r->o->no_header && i < r->n_columns; i++)
        if (strcmp(c->value[i], r->name[i]))
            return keel_fail(KEEL_EFORMAT,
                             "%s: its header differs from that of %s: column %lld is '%.40s', "
                             "there '%.40s'",
                             c->path, r->first, (long long)i, c->value[i], r->name[i]);
    return KEEL_OK;
}

/* Take the first record of a file. Without a header it is the first row, too. */
static keel_status take_header(keel_csv_reader *r, const char *label)
{
    keel_csv *c = &r->cut;
    if (r->name) return compare_names(r);
    r->first = c->path;
    KEEL_TRY(copy_names(r));
    c->n_columns = r->n_columns;
    if (!r->o->no_header && all_numbers(r))
        return keel_fail(KEEL_EARG,
                         "%s: its first line has only numbers, so it seems to have no "
                         "header; give --no-header and name columns by number, 0 to %lld, or "
                         "add a header",
                         c->path, (long long)r->n_columns - 1);
    return keel_csv_choose(r, label);
}

/* ---- cells ------------------------------------------------------------------------------------
 */

static size_t digits(const char *p)
{
    return strspn(p, "0123456789");
}

/* 2024-01-31, 31.1.2024, 1/31/24 and with a time behind it, 31-Jan-2024, 12:30. */
static bool is_date(const char *p)
{
    p += strspn(p, " ");
    size_t n = digits(p);
    if (n < 1 || n > 4 || !p[n]) return false;
    const char mark = p[n];
    if (!strchr("-/.:", mark)) return false;
    p += n + 1;
    n = digits(p);
    if (mark == ':') return n == 2;
    while (!digits(p) && n < 3 && isalpha((unsigned char)p[n])) n++;
    if (n < 1 || n > 3 || p[n] != mark) return false;
    p += n + 1;
    n = digits(p);
    return n >= 1 && n <= 4 && (!p[n] || strchr(" T", p[n]));
}

static keel_status not_a_number(const keel_csv_reader *r, const keel_cell *cell)
{
    const bool comma = r->cut.separator != ',' && strchr(cell->text, ',');
    if (is_date(cell->text))
        return keel_fail(KEEL_EFORMAT,
                         "%s:%lld: column '%s' has '%.40s', which is not a number and looks like a "
                         "date; make a number of it, such as days since a first day, or leave the "
                         "column out with --inputs",
                         cell->path, (long long)cell->line, cell->column, cell->text);
    return keel_fail(KEEL_EFORMAT, "%s:%lld: column '%s' has '%.40s', which is not a number%s",
                     cell->path, (long long)cell->line, cell->column, cell->text,
                     comma                               ? " (the decimal separator is a point)"
                     : strpbrk(cell->text, "0123456789") ? ""
                                                         : " (--vocabulary makes numbers of the "
                                                           "words of a column)");
}

static keel_cell cell_of(const keel_csv_reader *r, const keel_csv_use *u)
{
    return (keel_cell){ r->cut.path, r->cut.line, r->name[u->column], r->cut.value[u->column] };
}

/* The whole number v, from the text if it is a plain integer, so that all digits count. */
static int64_t whole_number(const char *text, double v)
{
    char *end;
    if (fabs(v) < 0x1p53) return (int64_t)v;
    if (!(fabs(v) < 0x1p63)) return 0;
    errno = 0;
    const long long n = strtoll(text, &end, 10);
    return !errno && !end[strspn(end, " \t")] ? n : (int64_t)v;
}

static int truth_of(const char *text)
{
    static const char *const words[] = { "false", "true", "False", "True", "FALSE", "TRUE" };
    for (int i = 0; i < 6; i++)
        if (!strcmp(text, words[i])) return i % 2;
    return -1;
}

/* What is no bare number: spaces around it, true and false, a missing value. */
static keel_status add_other(keel_csv_reader *r, const keel_csv_use *u, keel_table_field *f)
{
    const keel_cell cell = cell_of(r, u);
    double v = truth_of(cell.text);
    if (v < 0 && !keel_read_number(cell.text, &v)) {
        if (keel_table_is_missing(cell.text)) return keel_table_missing(&r->table, f, u->at, &cell);
        return not_a_number(r, &cell);
    }
    if (!(fabs(v) < FLOAT_END)) return not_a_number(r, &cell);
    return keel_table_number(&r->table, f, u->at, v, whole_number(cell.text, v));
}

static keel_status add_text(keel_csv_reader *r, const keel_csv_use *u, keel_table_field *f)
{
    const keel_cell cell = cell_of(r, u);
    if (u->words >= 0) return keel_table_word(&r->table, u->words, &cell);
    if (f->cells == KEEL_CELLS_LABELS) return keel_table_label(&r->table, f, &cell);
    if (r->o->missing == KEEL_MISSING_DROP && keel_table_is_missing(cell.text))
        return keel_table_missing(&r->table, f, u->at, &cell);
    return keel_table_text(&r->table, f, u->at, cell.text, strlen(cell.text));
}

static keel_status add_cells(keel_csv_reader *r)
{
    keel_table *t = &r->table;
    for (int64_t i = 0; i < r->n_use; i++) {
        const keel_csv_use *u = &r->use[i];
        keel_table_field *f = &t->field[u->field];
        const char *text = r->cut.value[u->column];
        double v;
        if (f->cells != KEEL_CELLS_NUMBERS || u->words >= 0) {
            KEEL_TRY(add_text(r, u, f));
            continue;
        }
        const char *end = keel_number_scan(text, r->end, &v);
        if (end == text || *end || !(fabs(v) < FLOAT_END))
            KEEL_TRY(add_other(r, u, f));
        else
            KEEL_TRY(keel_table_number(t, f, u->at, v, f->whole ? whole_number(text, v) : 0));
    }
    return KEEL_OK;
}

/* A field that was requested by name has texts if its first row is not a number. */
static keel_status find_texts(keel_csv_reader *r)
{
    double v;
    for (int64_t i = 0; i < r->n_use; i++) {
        const keel_csv_use *u = &r->use[i];
        const keel_cell cell = cell_of(r, u);
        if (!r->group[u->field].may_be_text || u->words >= 0) continue;
        if (keel_read_number(cell.text, &v)) continue;
        keel_table_field *f = &r->table.field[u->field];
        if (r->o->missing != KEEL_MISSING_REFUSE && keel_table_is_missing(cell.text)) {
            if (r->o->missing == KEEL_MISSING_DROP) /* the next row shows it */
                return keel_table_missing(&r->table, f, u->at, &cell);
            continue;
        }
        f->cells = KEEL_CELLS_TEXTS;
    }
    for (int64_t i = 0; i < r->n_use; i++)
        if (r->use[i].words >= 0 && r->table.field[r->use[i].field].cells == KEEL_CELLS_TEXTS)
            return keel_fail(KEEL_EARG,
                             "%s: column '%s' has a vocabulary, but others of the same input have "
                             "texts; give each a vocabulary, or inputs of their own",
                             r->cut.path, r->name[r->use[i].column]);
    r->undecided = false;
    return KEEL_OK;
}

static keel_status add_row(keel_csv_reader *r)
{
    const keel_csv *c = &r->cut;
    keel_table *t = &r->table;
    if (c->n_values != r->n_columns)
        return keel_fail(KEEL_EFORMAT, "%s:%lld: %lld fields, but the %s has %lld", c->path,
                         (long long)c->line, (long long)c->n_values,
                         r->o->no_header ? "first line" : "header", (long long)r->n_columns);
    if (r->undecided) KEEL_TRY(find_texts(r));
    if (!t->drop) {
        KEEL_TRY(keel_table_begin_row(t));
        KEEL_TRY(add_cells(r));
    }
    keel_table_end_row(t);
    return KEEL_OK;
}

/* ---- files ------------------------------------------------------------------------------------
 */

static keel_status init(keel_csv_reader *r, const keel_dataset_options *o, const char *name)
{
    *r = (keel_csv_reader){ .o = o };
    KEEL_TRY(keel_table_init(&r->table, o, name, "column"));
    KEEL_TRY(keel_choices_read(&r->inputs, o->inputs, o->n_input, "inputs"));
    return keel_choices_read(&r->targets, o->targets, o->n_target, "targets");
}

static void reader_free(keel_csv_reader *r)
{
    keel_table_free(&r->table);
    keel_csv_free(&r->cut);
    keel_choices_free(r->inputs, r->o->n_input);
    keel_choices_free(r->targets, r->o->n_target);
    keel_free(r->name);
    keel_free(r->names);
    keel_free(r->use);
}

/* Add the records that are at hand. */
static keel_status add_records(keel_csv_reader *r, const char *label, bool *begun)
{
    keel_status s;
    while ((s = keel_csv_next(&r->cut)) == KEEL_OK) {
        if (!*begun) KEEL_TRY(take_header(r, label));
        if (*begun || r->o->no_header) KEEL_TRY(add_row(r));
        *begun = true;
    }
    return s < 0 ? s : KEEL_OK;
}

static keel_status add_file(keel_csv_reader *r, const char *path, keel_lines *lines,
                            const char *label)
{
    bool last = false, begun = false;
    keel_csv *c = &r->cut;
    keel_csv_begin(c, path, r->o->separator);
    while (!last) {
        char *text;
        size_t n;
        KEEL_TRY(keel_lines_more(lines, &text, &n, &last));
        keel_csv_give(c, text, n, last);
        r->end = text + n + KEEL_TEXT_PAD;
        KEEL_TRY(add_records(r, label, &begun));
        keel_lines_pass(lines, (size_t)(c->at - text));
    }
    if (begun) return KEEL_OK;
    return keel_fail(KEEL_EFORMAT, "%s: the file is empty%s", path,
                     r->o->no_header ? "" : "; it needs a header line");
}

keel_status keel_csv_decode(keel_dataset **out, const char *text, size_t n_bytes, const char *label,
                            const keel_dataset_options *o, const char *path)
{
    keel_csv_reader r;
    keel_lines *lines = NULL;
    KEEL_TRY(keel_lines_open_memory(&lines, text, n_bytes, path));
    keel_status s = init(&r, o, path);
    if (s >= 0) s = add_file(&r, path, lines, label);
    if (s >= 0) s = keel_table_dataset(out, &r.table);
    reader_free(&r);
    keel_lines_close(lines);
    return s;
}

static const char *const endings[] = { ".csv", ".csv.gz", ".tsv", ".tsv.gz", NULL };

static bool claims(const char *spec)
{
    return keel_file_list_claims(spec, endings);
}

static keel_status read_files(keel_csv_reader *r, const keel_file_list *files, const char *label)
{
    for (int64_t i = 0; i < files->n; i++) {
        keel_lines *lines = NULL;
        KEEL_TRY(keel_lines_open(&lines, files->path[i]));
        const keel_status s = add_file(r, files->path[i], lines, label);
        keel_lines_close(lines);
        if (s < 0) return s;
    }
    return KEEL_OK;
}

keel_status keel_dataset_from_csv(keel_dataset **out, const char *path, const char *label,
                                  const keel_dataset_options *options)
{
    keel_dataset_options o;
    keel_csv_reader r;
    keel_file_list files = { 0 };
    keel_dataset *d = NULL;
    if (!out || !path) return keel_fail(KEEL_EARG, "csv: out and path must not be NULL");
    KEEL_TRY(keel_dataset_options_read(&o, options));
    KEEL_TRY(keel_file_list_find(&files, path, endings));
    keel_status s = init(&r, &o, path);
    if (s >= 0) s = read_files(&r, &files, label);
    if (s >= 0) s = keel_table_dataset(&d, &r.table);
    reader_free(&r);
    keel_file_list_free(&files);
    if (s >= 0) s = keel_dataset_take_subset(&d, &o);
    if (s < 0)
        keel_dataset_destroy(d);
    else
        *out = d;
    return s;
}

static keel_status open_csv(keel_dataset **out, const char *spec, const keel_dataset_options *o)
{
    KEEL_TRY(keel_feature_types_refuse(o, spec));
    return keel_dataset_from_csv(out, spec, o->label, o);
}

const keel_source keel_source_csv = {
    .name = "csv",
    .help = "a .csv file with a header line (name the label column; .gz too), or a folder or "
            "pattern of them",
    .claims = claims,
    .open = open_csv,
};
