/* Rows of a CSV: what a cell is, number, text or word, and what it may not be. */
#include "data/sources/csv.h"
#include "base/plural.h"
#include "data/labels.h"
#include "io/number.h"
#include <ctype.h>
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { UNKNOWN_MOST = 1000 }; /* lines; then a column without values is one of texts */

#define FLOAT_END 0x1.ffffffp127 /* from here on, a number rounds to an infinite float32 */

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

/* No number with a unit or a letter too many: without digits, or of several words. */
static bool is_a_word(const keel_cell *cell)
{
    return !strpbrk(cell->text, "0123456789") || strpbrk(cell->text, " \t");
}

static keel_status not_a_number(const keel_csv_reader *r, const keel_cell *cell)
{
    double v;
    const bool large = keel_read_number(cell->text, &v);
    const bool comma = r->cut.separator != ',' && strchr(cell->text, ',');
    if (is_date(cell->text))
        return keel_fail(KEEL_EFORMAT,
                         "%s:%lld: column '%s' has '%.40s', which is not a number and looks like a "
                         "date; make a number of it, such as days since a first day, or leave the "
                         "column out with --inputs",
                         cell->path, (long long)cell->line, cell->column, cell->text);
    if (large)
        return keel_fail(KEEL_EFORMAT,
                         "%s:%lld: column '%s' has '%.40s', which float32 cannot hold", cell->path,
                         (long long)cell->line, cell->column, cell->text);
    return keel_fail(KEEL_EFORMAT, "%s:%lld: column '%s' has '%.40s', which is not a number%s",
                     cell->path, (long long)cell->line, cell->column, cell->text,
                     comma             ? " (the decimal separator is a point)"
                     : is_a_word(cell) ? " (--vocabulary makes numbers of the words of a column, "
                                         "and --inputs COLUMN gives a model its texts)"
                                       : "");
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

/* A column of numbers whose first rows had no value. */
static keel_status refuse_missing(keel_csv_reader *r, const keel_csv_use *u)
{
    const keel_cell cell = { r->cut.path, u->since, r->name[u->column], "" };
    r->table.field[u->field].cells = KEEL_CELLS_NUMBERS;
    return keel_table_missing(&r->table, &r->table.field[u->field], u->at, &cell);
}

/* What a column has that was requested by name: texts, if its first value is not a number. Where
 * missing values are refused, rows without one are texts until a number comes, which shows that
 * they should have been numbers. */
static keel_status find_text(keel_csv_reader *r, keel_csv_use *u, bool *known)
{
    double v;
    const keel_cell cell = cell_of(r, u);
    const bool number = keel_read_number(cell.text, &v), missing = keel_table_is_missing(cell.text);
    keel_table_field *f = &r->table.field[u->field];
    *known = true;
    if (number) return u->since ? refuse_missing(r, u) : KEEL_OK;
    if (missing && r->o->missing == KEEL_MISSING_DROP) /* the next row shows it */
        return keel_table_missing(&r->table, f, u->at, &cell);
    if (missing && r->o->missing != KEEL_MISSING_REFUSE) return KEEL_OK;
    f->cells = KEEL_CELLS_TEXTS;
    if (!missing || f->width > 1)
        u->since = 0;
    else if (!u->since)
        u->since = cell.line;
    *known = !u->since || cell.line - u->since > UNKNOWN_MOST;
    return KEEL_OK;
}

static keel_status find_texts(keel_csv_reader *r)
{
    const bool again = r->known_row > 0;
    bool all = true, known;
    for (int64_t i = 0; i < r->n_use; i++) {
        keel_csv_use *u = &r->use[i];
        if (!r->group[u->field].may_be_text || u->words >= 0 || (again && !u->since)) continue;
        KEEL_TRY(find_text(r, u, &known));
        if (r->table.drop) return KEEL_OK;
        all &= known;
    }
    for (int64_t i = 0; i < r->n_use; i++)
        if (r->use[i].words >= 0 && r->table.field[r->use[i].field].cells == KEEL_CELLS_TEXTS)
            return keel_fail(KEEL_EARG,
                             "%s: column '%s' has a vocabulary, but others of the same input have "
                             "texts; give each a vocabulary, or inputs of their own",
                             r->cut.path, r->name[r->use[i].column]);
    r->known_row++;
    r->undecided = !all;
    return KEEL_OK;
}

keel_status keel_csv_add_row(keel_csv_reader *r)
{
    const keel_csv *c = &r->cut;
    keel_table *t = &r->table;
    if (c->n_values != r->n_columns)
        return keel_fail(KEEL_EFORMAT, "%s:%lld: %lld field%s, but the %s has %lld", c->path,
                         (long long)c->line, (long long)c->n_values, keel_s(c->n_values),
                         r->o->no_header ? "first line" : "header", (long long)r->n_columns);
    if (r->undecided) KEEL_TRY(find_texts(r));
    if (!t->drop) {
        KEEL_TRY(keel_table_begin_row(t));
        KEEL_TRY(add_cells(r));
    }
    keel_table_end_row(t);
    return KEEL_OK;
}
