/* Rows of a table; see table.h. */
#include "data/table.h"
#include "base/memory.h"
#include "data/labels.h"
#include "tensor/dtype.h"
#include "tensor/shape.h"
#include <math.h>
#include <stdio.h>
#include <string.h>

#define EXACT 0x1p24 /* float32 holds every whole number up to this one */

keel_status keel_table_init(keel_table *t, const keel_dataset_options *o, const char *name,
                            const char *noun)
{
    *t = (keel_table){ .o = o, .name = name, .noun = noun };
    if ((unsigned)o->missing > KEEL_MISSING_MEAN || !isfinite((float)o->missing_value))
        return keel_fail(KEEL_EARG, "dataset options: missing has an unknown value, or "
                                    "missing_value is no float32");
    if (o->n_vocabulary < 0 || o->n_vocabulary > KEEL_WORDS_MAX ||
        (o->n_vocabulary && !o->vocabularies))
        return keel_fail(KEEL_EARG, "dataset options: n_vocabulary must be 0 to %d",
                         KEEL_WORDS_MAX);
    if (!(t->words = keel_calloc((size_t)o->n_vocabulary + 1, sizeof *t->words)))
        return KEEL_ENOMEM;
    for (int i = 0; i < o->n_vocabulary; i++) {
        const keel_vocabulary *v = &o->vocabularies[i];
        int64_t number;
        if (!v->column || v->n_words < 0 || (v->words && !v->n_words))
            return keel_fail(KEEL_EARG, "dataset options: vocabulary %d has no column or no words",
                             i);
        if (keel_table_words_of(t, v->column) != i)
            return keel_fail(KEEL_EARG, "%s: %s '%s' has two vocabularies", name, noun, v->column);
        t->words[i] = (keel_table_words){ .field = -1, .vocabulary = v };
        for (int64_t k = 0; v->words && k < v->n_words; k++) {
            KEEL_TRY(keel_words_add(&t->words[i].words, v->words[k], &number));
            if (number != k)
                return keel_fail(KEEL_EARG, "%s: the vocabulary of '%s' has '%.60s' twice", name,
                                 v->column, v->words[k]);
        }
    }
    return KEEL_OK;
}

void keel_table_free(keel_table *t)
{
    for (int i = 0; i < t->n_field; i++) {
        keel_free(t->field[i].data);
        keel_free(t->field[i].sum);
        keel_free(t->field[i].count);
        keel_free(t->field[i].missing);
    }
    for (int i = 0; t->words && i < t->o->n_vocabulary; i++) {
        keel_words_free(&t->words[i].words);
        keel_free(t->words[i].joined);
    }
    for (int64_t i = 0; i < t->n_block; i++) keel_free(t->block[i]);
    keel_free(t->words);
    keel_free(t->block);
    keel_free(t->hole);
    *t = (keel_table){ 0 };
}

keel_status keel_table_add(keel_table *t, const keel_table_field *f)
{
    if (t->n_field == KEEL_FIELDS_MAX)
        return keel_fail(KEEL_EARG, "%s: a row has at most %d fields", t->name, KEEL_FIELDS_MAX);
    keel_table_field *own = &t->field[t->n_field++];
    *own = *f;
    own->whole = true;
    own->dtype = KEEL_FLOAT32;
    if (f->cells != KEEL_CELLS_NUMBERS || t->o->missing != KEEL_MISSING_MEAN) return KEEL_OK;
    own->sum = keel_calloc((size_t)f->width, 2 * sizeof *own->sum);
    own->count = keel_calloc((size_t)f->width, sizeof *own->count);
    return own->sum && own->count ? KEEL_OK : KEEL_ENOMEM;
}

/* ---- vocabularies -----------------------------------------------------------------------------
 */

int keel_table_words_of(const keel_table *t, const char *column)
{
    for (int i = 0; i < t->o->n_vocabulary; i++)
        if (!strcmp(t->o->vocabularies[i].column, column)) return i;
    return -1;
}

void keel_table_use_words(keel_table *t, int vocabulary, int field, int64_t at)
{
    t->words[vocabulary].field = field;
    t->words[vocabulary].at = at;
}

keel_status keel_table_check_words(const keel_table *t)
{
    for (int i = 0; i < t->o->n_vocabulary; i++)
        if (t->words[i].field < 0)
            return keel_fail(
                KEEL_EARG,
                "%s: a vocabulary is given for '%s', which is no %s of an input; words of "
                "a label column need none",
                t->name, t->o->vocabularies[i].column, t->noun);
    return KEEL_OK;
}

/* ---- rows -------------------------------------------------------------------------------------
 */

static size_t element_size(const keel_table_field *f)
{
    return f->cells == KEEL_CELLS_LABELS  ? sizeof(char *)
           : f->cells == KEEL_CELLS_TEXTS ? sizeof(keel_string)
                                          : keel_dtype_size(f->dtype);
}

keel_status keel_table_begin_row(keel_table *t)
{
    for (int i = 0; i < t->n_field; i++) {
        keel_table_field *f = &t->field[i];
        const size_t size = (size_t)f->width * element_size(f);
        if (t->n_rows == f->room) {
            const int64_t room = f->room ? 2 * f->room : 1 + 64 / f->width;
            void *more = keel_grow(f->data, (size_t)room, size);
            if (!more) return KEEL_ENOMEM;
            f->data = more;
            f->room = room;
        }
        /* A change of type converts the row that has begun, too. */
        if (f->whole) memset((char *)f->data + (size_t)t->n_rows * size, 0, size);
    }
    return KEEL_OK;
}

void keel_table_end_row(keel_table *t)
{
    if (t->drop)
        t->dropped++;
    else
        t->n_rows++;
    t->drop = false;
}

void keel_table_end_part(keel_table *t)
{
    for (int i = 0; i < t->n_field; i++)
        for (int64_t k = 0, n = t->field[i].width; t->field[i].sum && k < n; k++) {
            t->field[i].sum[n + k] += t->field[i].sum[k];
            t->field[i].sum[k] = 0;
        }
}

/* ---- cells ------------------------------------------------------------------------------------
 */

/* A whole number becomes float32 by way of its double, as it does when it is read: so the value
 * does not depend on what was read before it. */
keel_status keel_table_change_type(keel_table_field *f, keel_dtype to, int64_t rows)
{
    void *more = keel_calloc((size_t)f->room, (size_t)f->width * keel_dtype_size(to));
    if (!more) return KEEL_ENOMEM;
    if (to == KEEL_FLOAT32 && f->dtype == KEEL_INT64)
        for (int64_t i = 0; i < rows * f->width; i++)
            ((float *)more)[i] = (float)(double)((const int64_t *)f->data)[i];
    else
        keel_convert(more, to, f->data, f->dtype, rows * f->width);
    keel_free(f->data);
    f->data = more;
    f->dtype = to;
    return KEEL_OK;
}

keel_status keel_table_whole(keel_table *t, keel_table_field *f, int64_t at, double v, int64_t n)
{
    const int64_t i = t->n_rows * f->width + at;
    f->whole = fabs(v) < 0x1p63 && (double)n == v;
    if (f->dtype == KEEL_INT64 && !f->whole)
        KEEL_TRY(keel_table_change_type(f, KEEL_FLOAT32, t->n_rows + 1));
    if (f->dtype == KEEL_FLOAT32 && f->whole && fabs(v) > EXACT)
        KEEL_TRY(keel_table_change_type(f, KEEL_INT64, t->n_rows + 1));
    if (f->dtype == KEEL_INT64)
        ((int64_t *)f->data)[i] = n;
    else
        ((float *)f->data)[i] = (float)v;
    return KEEL_OK;
}

/* A copy of a text that lives as long as the table. */
static char *keep(keel_table *t, const char *text, size_t n)
{
    enum { LEAST = 1 << 12, MOST = 1 << 22 };
    if (n >= t->size - t->used) {
        if (t->n_block == t->block_room) {
            const int64_t room = t->block_room ? 2 * t->block_room : 16;
            char **more = keel_grow(t->block, (size_t)room, sizeof *more);
            if (!more) return NULL;
            t->block = more;
            t->block_room = room;
        }
        size_t size = t->size < LEAST ? LEAST : t->size < MOST ? 2 * t->size : MOST;
        if (size <= n) size = n + 1;
        char *block = keel_grow(NULL, size, 1);
        if (!block) return NULL;
        t->block[t->n_block++] = block;
        t->size = size;
        t->used = 0;
    }
    char *copy = t->block[t->n_block - 1] + t->used;
    memcpy(copy, text, n);
    copy[n] = 0;
    t->used += n + 1;
    return copy;
}

keel_status keel_table_text(keel_table *t, keel_table_field *f, int64_t at, const char *text,
                            size_t n_bytes)
{
    const char *copy = keep(t, text, n_bytes);
    if (!copy) return KEEL_ENOMEM;
    ((keel_string *)f->data)[t->n_rows * f->width + at] = (keel_string){ copy, (int64_t)n_bytes };
    return KEEL_OK;
}

keel_status keel_table_label(keel_table *t, keel_table_field *f, const keel_cell *cell)
{
    const bool empty = !cell->text || !*cell->text;
    if (empty || keel_table_is_missing(cell->text)) {
        if (t->o->missing == KEEL_MISSING_DROP) return keel_table_missing(t, f, 0, cell);
        if (empty)
            return keel_fail(KEEL_EFORMAT,
                             "%s:%lld: no label in %s '%s'; rows without label are left out with "
                             "--missing drop",
                             cell->path, (long long)cell->line, t->noun, cell->column);
        if (!f->missing) { /* a class name, or among numbers a missing one: seen at the end */
            char where[512];
            snprintf(where, sizeof where, "%.400s:%lld", cell->path, (long long)cell->line);
            if (!(f->missing = keel_strdup(where))) return KEEL_ENOMEM;
        }
    }
    const char *copy = keep(t, cell->text, strlen(cell->text));
    if (!copy) return KEEL_ENOMEM;
    ((const char **)f->data)[t->n_rows] = copy;
    return KEEL_OK;
}

keel_status keel_table_word(keel_table *t, int vocabulary, const keel_cell *cell)
{
    keel_table_words *w = &t->words[vocabulary];
    keel_table_field *f = &t->field[w->field];
    int64_t number = cell->text ? keel_words_find(&w->words, cell->text) : -1;
    if (number < 0 && (!cell->text || keel_table_is_missing(cell->text)))
        return keel_table_missing(t, f, w->at, cell);
    if (number < 0 && w->vocabulary->words)
        return keel_fail(KEEL_EDATA,
                         "%s:%lld: %s '%s' has '%.40s', which is not one of the %lld words of its "
                         "vocabulary",
                         cell->path, (long long)cell->line, t->noun, cell->column, cell->text,
                         (long long)w->words.n);
    if (number < 0) {
        const keel_status s = keel_words_add(&w->words, cell->text, &number);
        if (s < 0) return keel_fail_within(s, "%s: %s '%s'", t->name, t->noun, cell->column);
    }
    return keel_table_number(t, f, w->at, (double)number, number);
}

/* What most texts begin with is none of the words' first two characters. */
static bool may_be_missing(const char *text)
{
    switch (text[0]) {
    case 0:
    case '#':
    case '<':
    case 'N':
    case 'n':
        return true;
    case '-':
        return text[1] == '1' || text[1] == 'N' || text[1] == 'n';
    default:
        return text[0] == '1' && text[1] == '.';
    }
}

bool keel_table_is_missing(const char *text)
{
    static const char *const words[] = {
        "",     "#N/A",   "#N/A N/A", "#NA",     "-1.#IND", "-1.#QNAN", "-NaN",
        "-nan", "1.#IND", "NULL",     "1.#QNAN", "<NA>",    "N/A",      "NA",
        "NaN",  "None",   "n/a",      "nan",     "null",
    };
    if (!may_be_missing(text)) return false;
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        if (!strcmp(text, words[i])) return true;
    return false;
}

static keel_status add_hole(keel_table *t, int field, int64_t at)
{
    if (t->n_hole == t->hole_room) {
        const int64_t room = t->hole_room ? 2 * t->hole_room : 64;
        keel_hole *more = keel_grow(t->hole, (size_t)room, sizeof *more);
        if (!more) return KEEL_ENOMEM;
        t->hole = more;
        t->hole_room = room;
    }
    t->hole[t->n_hole++] = (keel_hole){ t->n_rows, at, field };
    const int64_t i = t->n_rows * t->field[field].width + at;
    if (t->field[field].dtype == KEEL_INT64)
        ((int64_t *)t->field[field].data)[i] = 0;
    else
        ((float *)t->field[field].data)[i] = 0;
    return KEEL_OK;
}

static bool has_words(const keel_table *t, const keel_table_field *f, int64_t at)
{
    for (int i = 0; i < t->o->n_vocabulary; i++)
        if (t->words[i].field == f - t->field && t->words[i].at == at) return true;
    return false;
}

/* Missing values that are not left out; "" if they may be filled. */
static const char *why_not_filled(const keel_table *t, const keel_table_field *f, int64_t at)
{
    if (f->role == KEEL_ROLE_TARGET)
        return "; targets are not filled; such rows are left out with "
               "--missing drop";
    if (f->role == KEEL_ROLE_WEIGHT)
        return "; weights are not filled; such rows are left out with "
               "--missing drop";
    if (f->cells == KEEL_CELLS_TEXTS)
        return "; texts are not filled; such rows are left out with "
               "--missing drop";
    if (has_words(t, f, at))
        return "; words are not filled; such rows are left out with --missing "
               "drop";
    return "";
}

keel_status keel_table_missing(keel_table *t, keel_table_field *f, int64_t at,
                               const keel_cell *cell)
{
    const keel_missing what = t->o->missing;
    const char *not_filled = why_not_filled(t, f, at);
    char has[96] = "no value";
    if (cell->text)
        snprintf(has, sizeof has, "'%.40s', a missing value, which is not a number", cell->text);
    if (!*t->first)
        snprintf(t->first, sizeof t->first, "%.80s:%lld, %s '%.40s'", cell->path,
                 (long long)cell->line, t->noun, cell->column);
    if (what == KEEL_MISSING_DROP) {
        t->drop = true;
        return KEEL_OK;
    }
    if (what == KEEL_MISSING_REFUSE || *not_filled)
        return keel_fail(KEEL_EFORMAT, "%s:%lld: %s '%s' has %s%s", cell->path,
                         (long long)cell->line, t->noun, cell->column, has,
                         *not_filled ? not_filled
                                     : "; such rows are left out with --missing drop, and values "
                                       "filled with --missing mean or a number");
    t->filled++;
    if (what == KEEL_MISSING_MEAN) return add_hole(t, (int)(f - t->field), at);
    const double v = t->o->missing_value;
    return keel_table_number(t, f, at, v, fabs(v) < 0x1p63 ? (int64_t)v : 0);
}
