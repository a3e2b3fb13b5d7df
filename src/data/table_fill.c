/* What is known of a table only after its last row: means of columns, the order of words, and what
 * the user is told. */
#include "base/memory.h"
#include "base/text.h"
#include "data/ranges.h"
#include "data/table.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* ---- means ------------------------------------------------------------------------------------
 */

/* A field of whole numbers becomes float32 if a mean that it gets is none. */
static keel_status make_real(keel_table *t)
{
    for (int64_t i = 0; i < t->n_hole; i++) {
        const keel_hole *h = &t->hole[i];
        keel_table_field *f = &t->field[h->field];
        if (!f->count[h->at])
            return keel_fail(KEEL_EDATA,
                             "%s: nothing to take the mean of: no row has a value where %s has "
                             "none",
                             t->name, t->first);
        const double mean = f->sum[f->width + h->at] / (double)f->count[h->at];
        if (f->dtype == KEEL_INT64 && (mean != floor(mean) || fabs(mean) >= 0x1p63))
            KEEL_TRY(keel_table_change_type(f, KEEL_FLOAT32, t->n_rows));
    }
    return KEEL_OK;
}

keel_status keel_table_fill(keel_table *t)
{
    keel_table_end_part(t);
    KEEL_TRY(make_real(t));
    for (int64_t i = 0; i < t->n_hole; i++) {
        const keel_hole *h = &t->hole[i];
        keel_table_field *f = &t->field[h->field];
        const double mean = f->sum[f->width + h->at] / (double)f->count[h->at];
        if (f->dtype == KEEL_INT64)
            ((int64_t *)f->data)[h->row * f->width + h->at] = (int64_t)mean;
        else
            ((float *)f->data)[h->row * f->width + h->at] = (float)mean;
    }
    return KEEL_OK;
}

/* ---- words ------------------------------------------------------------------------------------
 */

typedef struct named {
    char *word;
    int64_t number;
} named;

static int by_word(const void *a, const void *b)
{
    return strcmp(((const named *)a)->word, ((const named *)b)->word);
}

static int64_t number_at(const keel_table_field *f, int64_t i)
{
    return f->dtype == KEEL_INT64 ? ((const int64_t *)f->data)[i]
                                  : (int64_t)((const float *)f->data)[i];
}

/* Words of one element of a field, and the number that each gets. */
typedef struct renumbering {
    const keel_table_field *field;
    int64_t at;
    int64_t *number;
} renumbering;

/* Number the words that rows have, in sorted order: those of rows that were left out are dropped.
 */
static keel_status sort_words(const keel_table *t, keel_table_words *w, renumbering *to)
{
    const keel_table_field *f = &t->field[w->field];
    named *list = keel_calloc((size_t)w->words.n + 1, sizeof *list);
    int64_t *number = keel_calloc((size_t)w->words.n + 1, sizeof *number), n = 0;
    if (!list || !number) {
        keel_free(list);
        keel_free(number);
        return KEEL_ENOMEM;
    }
    for (int64_t r = 0; t->dropped && r < t->n_rows; r++)
        number[number_at(f, r * f->width + w->at)] = 1;
    for (int64_t i = 0; i < w->words.n; i++)
        if (number[i] || !t->dropped)
            list[n++] = (named){ w->words.word[i], i };
        else
            keel_free(w->words.word[i]);
    qsort(list, (size_t)n, sizeof *list, by_word);
    for (int64_t i = 0; i < n; i++) number[list[i].number] = i;
    for (int64_t i = 0; i < n; i++) w->words.word[i] = list[i].word; /* its slots are stale now */
    w->words.n = n;
    keel_free(list);
    *to = (renumbering){ f, w->at, number };
    return KEEL_OK;
}

typedef struct renumberings {
    int n;
    renumbering *at; /* [n] */
} renumberings;

/* All words of a row while it is in the cache. */
static void renumber_rows(void *context, int64_t begin, int64_t end)
{
    const renumberings *all = context;
    for (int64_t r = begin; r < end; r++)
        for (int i = 0; i < all->n; i++) {
            const keel_table_field *f = all->at[i].field;
            const int64_t at = r * f->width + all->at[i].at;
            const int64_t to = all->at[i].number[number_at(f, at)];
            if (f->dtype == KEEL_INT64)
                ((int64_t *)f->data)[at] = to;
            else
                ((float *)f->data)[at] = (float)to;
        }
}

keel_status keel_table_sort_words(keel_table *t)
{
    renumberings all = { 0 };
    keel_status s = KEEL_OK;
    if (!t->o->n_vocabulary) return KEEL_OK;
    if (!(all.at = keel_calloc((size_t)t->o->n_vocabulary, sizeof *all.at))) return KEEL_ENOMEM;
    for (int i = 0; i < t->o->n_vocabulary && s >= 0; i++)
        if (t->words[i].field >= 0 && !t->words[i].vocabulary->words)
            if ((s = sort_words(t, &t->words[i], &all.at[all.n])) >= 0) all.n++;
    if (s >= 0 && all.n) s = keel_ranges(t->n_rows, renumber_rows, &all);
    for (int i = 0; i < all.n; i++) keel_free(all.at[i].number);
    keel_free(all.at);
    return s;
}

/* ---- notes ------------------------------------------------------------------------------------
 */

static void tell_words(const keel_table *t, const keel_table_words *w)
{
    enum { SHOWN = 12 };
    char shown[64];
    keel_text line = { 0 };
    keel_text_add(&line, "%s: words of %s '%s':", t->name, t->noun, w->vocabulary->column);
    for (int64_t i = 0; i < w->words.n && i < SHOWN; i++)
        keel_text_add(&line, "%s %lld %s", i ? "," : "", (long long)i,
                      keel_printable(shown, sizeof shown, w->words.word[i]));
    if (w->words.n > SHOWN) keel_text_add(&line, ", ... (%lld in all)", (long long)w->words.n);
    if (line.data && !line.failed) t->o->note(t->o->note_context, line.data);
    keel_text_free(&line);
}

void keel_table_tell(const keel_table *t)
{
    char shown[200];
    keel_text line = { 0 };
    if (!t->o->note) return;
    keel_printable(shown, sizeof shown, t->first);
    if (t->dropped)
        keel_text_add(&line, "%s: %lld %s left out, %lld kept: a value is missing (first: %s)",
                      t->name, (long long)t->dropped, t->dropped == 1 ? "row" : "rows",
                      (long long)t->n_rows, shown);
    if (t->filled)
        keel_text_add(&line, "%s: %lld missing %s filled (first: %s)", t->name,
                      (long long)t->filled, t->filled == 1 ? "value" : "values", shown);
    if (line.data && !line.failed) t->o->note(t->o->note_context, line.data);
    keel_text_free(&line);
    for (int i = 0; i < t->o->n_vocabulary; i++)
        if (t->words[i].field >= 0 && !t->words[i].vocabulary->words) tell_words(t, &t->words[i]);
}
