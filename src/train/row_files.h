/* The .npy files that predict writes, by one process or by several: each writes the whole pages of
 * its own rows into one file, and process 0 the rest. */
#ifndef KEEL_TRAIN_ROW_FILES_H
#define KEEL_TRAIN_ROW_FILES_H
#include "keel/tensor.h"
#include "train/strategy.h"

typedef struct keel_row_files keel_row_files;

/* All functions are called by all processes. Files for rows like those of t [n] (of which only type
 * and shape are read), `rows` of them. */
keel_status keel_row_files_create(keel_row_files **out, const keel_strategy *s,
                                  const char *const *path, const keel_tensor *t, int n,
                                  int64_t rows);
/* Rows of a step, at data[k] for file k, of which this process has its own; the first is `row` of
 * the file. Process 0 also gets those that it writes for others. */
keel_status keel_row_files_put(keel_row_files *f, int64_t row, int64_t rows, char *const *data);
/* The end, with `rows` rows: once all have written theirs, the files get their names. */
keel_status keel_row_files_commit(keel_row_files *f, int64_t rows);
void keel_row_files_destroy(keel_row_files *f); /* what is not committed is removed */

#endif
