/* A table that is read row by row: its cells become the fields of a dataset of arrays. The readers
 * of CSV and of JSON lines share it, so both treat types, missing values, labels and words alike.
 *
 * Numbers are stored as float32; a field of whole numbers becomes int64 at the first number that
 * float32 cannot hold. */
#ifndef KEEL_DATA_TABLE_H
#define KEEL_DATA_TABLE_H
#include "data/source.h"
#include "data/words.h"

typedef enum keel_cells {
    KEEL_CELLS_NUMBERS,
    KEEL_CELLS_TEXTS,
    KEEL_CELLS_LABELS /* one per row: a number or a class name */
} keel_cells;

typedef struct keel_cell { /* where a cell is, for messages */
    const char *path;
    int64_t line;
    const char *column;
    const char *text; /* what it has; NULL: it is not there */
} keel_cell;

typedef struct keel_table_field {
    const char *path;   /* borrowed until the dataset is made, as the next one */
    const char *column; /* its first one */
    keel_data_role role;
    const char *target; /* of weights, borrowed as `path`; NULL: all */
    keel_cells cells;
    keel_shape shape; /* of a row */
    int64_t width;    /* elements of a row */
    bool whole;       /* numbers: has only whole ones so far */
    keel_dtype dtype; /* numbers, so far: float32 or int64 */
    void *data;       /* of that type; keel_string; of labels const char * */
    int64_t room;     /* rows */
    double *sum;    /* [2][width]: of the values of this part, and of the parts before it; NULL: */
    int64_t *count; /* [width]; no mean is asked for */
    char *missing;  /* labels: "path:line" of the first that is one of the words for missing */
} keel_table_field;

typedef struct keel_table_words { /* one element of a field that holds numbers of words */
    int field;
    int64_t at;
    const keel_vocabulary *vocabulary;
    keel_words words;
    int64_t *joined; /* [n_joined] of a part: the numbers that its words have in the whole */
    int64_t n_joined, joined_room;
} keel_table_words;

typedef struct keel_hole { /* a cell that gets the mean */
    int64_t row, at;
    int field;
} keel_hole;

typedef struct keel_table {
    const keel_dataset_options *o;
    const char *name; /* of the data, for messages */
    const char *noun; /* "column" or "key" */
    int n_field;
    keel_table_field field[KEEL_FIELDS_MAX]; /* targets before inputs */
    int64_t n_rows;
    keel_table_words *words; /* [o->n_vocabulary] */
    bool drop;               /* the row that is being read is left out */
    int64_t dropped, filled;
    char first[160]; /* where the first missing value was */
    keel_hole *hole;
    int64_t n_hole, hole_room;
    char **block; /* memory of texts */
    int64_t n_block, block_room;
    size_t used, size; /* of the last block */
} keel_table;

/* KEEL_EARG: an option of tables has an unknown value. */
keel_status keel_table_init(keel_table *t, const keel_dataset_options *o, const char *name,
                            const char *noun);
void keel_table_free(keel_table *t);

/* Add a field of known cells and shape. */
keel_status keel_table_add(keel_table *t, const keel_table_field *f);

/* The vocabulary of a column; -1: it has none. keel_table_use_words: element `at` of a field holds
 * its numbers. keel_table_check_words, after all fields: KEEL_EARG: a vocabulary is of no column of
 * an input. */
int keel_table_words_of(const keel_table *t, const char *column);
void keel_table_use_words(keel_table *t, int vocabulary, int field, int64_t at);
keel_status keel_table_check_words(const keel_table *t);

/* A row: begin, its cells in any order, end. */
keel_status keel_table_begin_row(keel_table *t);
void keel_table_end_row(keel_table *t);

/* Cells. `n` is v as a whole number, if it is one that int64 holds. */
keel_status keel_table_whole(keel_table *t, keel_table_field *f, int64_t at, double v, int64_t n);
keel_status keel_table_text(keel_table *t, keel_table_field *f, int64_t at, const char *text,
                            size_t n_bytes);
keel_status keel_table_label(keel_table *t, keel_table_field *f, const keel_cell *cell);
keel_status keel_table_word(keel_table *t, int vocabulary, const keel_cell *cell);
keel_status keel_table_missing(keel_table *t, keel_table_field *f, int64_t at,
                               const keel_cell *cell);

static inline keel_status keel_table_number(keel_table *t, keel_table_field *f, int64_t at,
                                            double v, int64_t n)
{
    if (f->sum) {
        f->sum[at] += v;
        f->count[at]++;
    }
    if (f->whole) return keel_table_whole(t, f, at, v, n);
    ((float *)f->data)[t->n_rows * f->width + at] = (float)v;
    return KEEL_OK;
}

/* True for an empty text and the words that pandas.read_csv reads as missing. */
bool keel_table_is_missing(const char *text);

/* The rows of a file are summed in parts, so that a mean does not depend on who has read which
 * part: what follows is another one. */
void keel_table_end_part(keel_table *t);

/* Make an empty table of the fields of `of`, for another thread. `of` must stay and may grow
 * meanwhile; its words must be checked. */
keel_status keel_table_begin_parts(keel_table *part, const keel_table *of);
/* About so many rows will come in all: make room for them, if there is the memory. */
void keel_table_expect(keel_table *t, int64_t rows);
/* Append the rows of a part, which is empty then and takes others. Words get the numbers that one
 * reader of all rows would have given them. After a failure both can only be freed. */
keel_status keel_table_join(keel_table *t, keel_table *part);

/* Make the dataset and tell the notes. The table is left empty. KEEL_EDATA: it has no rows. */
keel_status keel_table_dataset(keel_dataset **out, keel_table *t);

/* Of keel_table_dataset (table_fill.c): means into holes, sorted words, notes. */
keel_status keel_table_fill(keel_table *t);
keel_status keel_table_sort_words(keel_table *t);
void keel_table_tell(const keel_table *t);
keel_status keel_table_change_type(keel_table_field *f, keel_dtype to, int64_t rows);

#endif
