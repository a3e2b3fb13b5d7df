/* Joins tables that threads have read of one text, in its order: see table.h. What a value is does
 * not depend on the part that it was read in. Whole numbers are exact in float32 up to 2^24, and in
 * int64 beyond, and a number that is none makes float32 of all. */
#include "base/memory.h"
#include "data/table.h"
#include "tensor/dtype.h"
#include <string.h>

static keel_status begin_words(keel_table *part, const keel_table *of)
{
    part->words = keel_calloc((size_t)of->o->n_vocabulary + 1, sizeof *part->words);
    if (!part->words) return KEEL_ENOMEM;
    for (int i = 0; i < of->o->n_vocabulary; i++) {
        const keel_table_words *w = &of->words[i];
        part->words[i] =
            (keel_table_words){ .field = w->field, .at = w->at, .vocabulary = w->vocabulary };
        if (w->vocabulary->words) KEEL_TRY(keel_words_borrow(&part->words[i].words, &w->words));
    }
    return KEEL_OK;
}

keel_status keel_table_begin_parts(keel_table *part, const keel_table *of)
{
    *part = (keel_table){ .o = of->o, .name = of->name, .noun = of->noun };
    KEEL_TRY(begin_words(part, of));
    for (int i = 0; i < of->n_field; i++) {
        keel_table_field f = of->field[i];
        f.data = f.sum = NULL;
        f.count = NULL;
        f.missing = NULL;
        f.room = 0;
        KEEL_TRY(keel_table_add(part, &f));
    }
    return KEEL_OK;
}

/* ---- words ------------------------------------------------------------------------------------
 */

/* Give new words of a part their numbers in the whole. Those that it had in earlier parts came
 * before them in the text, too. */
static keel_status number_words(keel_table *t, keel_table_words *to, keel_table_words *from)
{
    if (from->words.n > from->joined_room) {
        int64_t *more = keel_grow(from->joined, (size_t)from->words.room, sizeof *more);
        if (!more) return KEEL_ENOMEM;
        from->joined = more;
        from->joined_room = from->words.room;
    }
    for (; from->n_joined < from->words.n; from->n_joined++) {
        const char *word = from->words.word[from->n_joined];
        const keel_status s = keel_words_add(&to->words, word, &from->joined[from->n_joined]);
        if (s < 0)
            return keel_fail_within(s, "%s: %s '%s'", t->name, t->noun, to->vocabulary->column);
    }
    return KEEL_OK;
}

static void renumber(const keel_table *part, const keel_table_words *w)
{
    const keel_table_field *f = &part->field[w->field];
    float *real = f->data;
    int64_t *whole = f->data;
    if (f->dtype == KEEL_INT64)
        for (int64_t i = w->at; i < part->n_rows * f->width; i += f->width)
            whole[i] = w->joined[whole[i]];
    else
        for (int64_t i = w->at; i < part->n_rows * f->width; i += f->width)
            real[i] = (float)w->joined[(int64_t)real[i]];
}

static keel_status join_words(keel_table *t, keel_table *part)
{
    for (int i = 0; i < t->o->n_vocabulary; i++) {
        if (part->words[i].field < 0 || part->words[i].vocabulary->words) continue;
        KEEL_TRY(number_words(t, &t->words[i], &part->words[i]));
        renumber(part, &part->words[i]);
    }
    return KEEL_OK;
}

/* ---- rows -------------------------------------------------------------------------------------
 */

static size_t row_size(const keel_table_field *f)
{
    const size_t element = f->cells == KEEL_CELLS_LABELS  ? sizeof(char *)
                           : f->cells == KEEL_CELLS_TEXTS ? sizeof(keel_string)
                                                          : keel_dtype_size(f->dtype);
    return (size_t)f->width * element;
}

static keel_status same_type(keel_table *t, keel_table *part, int i)
{
    keel_table_field *f = &t->field[i], *g = &part->field[i];
    const bool wide = f->dtype == KEEL_INT64 || g->dtype == KEEL_INT64;
    f->whole &= g->whole;
    const keel_dtype to = f->whole && wide ? KEEL_INT64 : KEEL_FLOAT32;
    if (f->dtype != to) KEEL_TRY(keel_table_change_type(f, to, t->n_rows));
    if (g->dtype != to) KEEL_TRY(keel_table_change_type(g, to, part->n_rows));
    return KEEL_OK;
}

static keel_status grow(keel_table_field *f, int64_t room)
{
    void *data = keel_grow(f->data, (size_t)room, row_size(f));
    if (!data) return KEEL_ENOMEM;
    f->data = data;
    f->room = room;
    return KEEL_OK;
}

void keel_table_expect(keel_table *t, int64_t rows)
{
    for (int i = 0; i < t->n_field; i++) {
        keel_table_field *f = &t->field[i];
        if (rows <= f->room || grow(f, rows) < 0) continue; /* it grows as rows come */
        keel_want_huge_pages(f->data, (size_t)rows * row_size(f));
    }
}

static keel_status append(keel_table_field *f, int64_t rows, const keel_table_field *g,
                          int64_t more)
{
    const size_t size = row_size(f);
    if (rows + more > f->room)
        KEEL_TRY(grow(f, rows + more > 2 * f->room ? rows + more : 2 * f->room));
    if (more) memcpy((char *)f->data + (size_t)rows * size, g->data, (size_t)more * size);
    return KEEL_OK;
}

static keel_status join_field(keel_table *t, keel_table *part, int i)
{
    keel_table_field *f = &t->field[i], *g = &part->field[i];
    if (f->cells == KEEL_CELLS_NUMBERS) KEEL_TRY(same_type(t, part, i));
    KEEL_TRY(append(f, t->n_rows, g, part->n_rows));
    for (int64_t k = 0; g->sum && k < f->width; k++) { /* texts have none */
        f->sum[f->width + k] += g->sum[k];
        f->count[k] += g->count[k];
        g->sum[k] = 0;
        g->count[k] = 0;
    }
    if (!f->missing) {
        f->missing = g->missing;
        g->missing = NULL;
    }
    keel_free(g->missing);
    g->missing = NULL;
    g->whole = true;
    if (f->cells == KEEL_CELLS_NUMBERS) g->dtype = KEEL_FLOAT32; /* its memory has room for it */
    return KEEL_OK;
}

static keel_status join_holes(keel_table *t, keel_table *part)
{
    if (t->n_hole + part->n_hole > t->hole_room) {
        const int64_t room = 2 * (t->n_hole + part->n_hole);
        keel_hole *more = keel_grow(t->hole, (size_t)room, sizeof *more);
        if (!more) return KEEL_ENOMEM;
        t->hole = more;
        t->hole_room = room;
    }
    for (int64_t i = 0; i < part->n_hole; i++) {
        t->hole[t->n_hole] = part->hole[i];
        t->hole[t->n_hole++].row += t->n_rows;
    }
    part->n_hole = 0;
    return KEEL_OK;
}

/* Texts stay where they are. The last block of the part is the last one now, with its room. */
static keel_status join_blocks(keel_table *t, keel_table *part)
{
    if (!part->n_block) return KEEL_OK;
    if (t->n_block + part->n_block > t->block_room) {
        const int64_t room = 2 * (t->n_block + part->n_block);
        char **more = keel_grow(t->block, (size_t)room, sizeof *more);
        if (!more) return KEEL_ENOMEM;
        t->block = more;
        t->block_room = room;
    }
    memcpy(t->block + t->n_block, part->block, (size_t)part->n_block * sizeof *t->block);
    t->n_block += part->n_block;
    t->used = part->used;
    t->size = part->size;
    part->n_block = 0;
    part->used = part->size = 0;
    return KEEL_OK;
}

keel_status keel_table_join(keel_table *t, keel_table *part)
{
    KEEL_TRY(join_words(t, part));
    for (int i = 0; i < t->n_field; i++) KEEL_TRY(join_field(t, part, i));
    KEEL_TRY(join_holes(t, part));
    KEEL_TRY(join_blocks(t, part));
    if (!*t->first) memcpy(t->first, part->first, sizeof t->first);
    t->n_rows += part->n_rows;
    t->dropped += part->dropped;
    t->filled += part->filled;
    part->n_rows = part->dropped = part->filled = 0;
    *part->first = 0;
    part->drop = false;
    return KEEL_OK;
}
