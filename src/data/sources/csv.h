/* The reader of CSV: which column goes where, and the reader for a text in memory. */
#ifndef KEEL_DATA_SOURCES_CSV_H
#define KEEL_DATA_SOURCES_CSV_H
#include "data/choice.h"
#include "data/table.h"
#include "io/csv.h"
#include "io/file.h"

typedef struct keel_csv_group { /* the columns that become one field */
    const char *path;
    keel_data_role role;
    int32_t width;
    int64_t column;     /* its first column */
    bool labels;        /* one column of labels: numbers or class names */
    bool may_be_text;   /* requested by name */
    const char *target; /* of weights; NULL: all */
} keel_csv_group;

typedef struct keel_csv_use { /* a column that is read */
    int64_t column;
    int32_t field, at;
    int32_t words; /* its vocabulary; -1: none */
    int64_t since; /* the line from which on it has had no value, so it may be one of numbers; 0: it
                      is known what it has */
} keel_csv_use;

typedef struct keel_csv_reader {
    const keel_dataset_options *o;
    keel_csv cut;
    keel_table table;
    const char *first; /* path of the first file */
    keel_choice *inputs, *targets, *weights;
    char **name; /* [n_columns] */
    char *names; /* their storage */
    int64_t n_columns;
    int64_t known_row; /* rows that have shown what columns have */
    int n_group;
    keel_csv_group group[KEEL_FIELDS_MAX];
    keel_csv_use *use; /* [n_use], by column */
    int64_t n_use;
    bool undecided;  /* whether fields that may be of texts are: no row has shown it yet */
    const char *end; /* of the memory that may be read behind a value */
    int n_threads;
    uint64_t part_bytes; /* of a part of a file: see _csv_parts.c */
    uint64_t part;       /* the one that rows are read of */
} keel_csv_reader;

enum { KEEL_CSV_PART = 1 << 18 }; /* in the cache, with its rows */

/* Choose the columns of each field by the options, from the names that were read. */
keel_status keel_csv_choose(keel_csv_reader *r, const char *label);

/* Add the record that was cut last as a row. */
keel_status keel_csv_add_row(keel_csv_reader *r);

/* Read the rest of a file, of which the next record begins at *place and in line *line, in parts by
 * several threads. KEEL_OK: *place and *line are where one thread has to go on: at the end, or
 * where parts cannot be told. Rows and errors are those of one thread. */
keel_status keel_csv_read_parts(keel_csv_reader *r, const keel_file *file, uint64_t *place,
                                int64_t *line);

/* keel_dataset_from_csv with a number of threads and a size of parts of one's own. */
keel_status keel_csv_open(keel_dataset **out, const char *path, const char *label,
                          const keel_dataset_options *o, int n_threads, uint64_t part_bytes);

/* Read a text, which is copied. `path` names it in messages. */
keel_status keel_csv_decode(keel_dataset **out, const char *text, size_t n_bytes, const char *label,
                            const keel_dataset_options *o, const char *path);

#endif
