/* Made-up rows of a step, for measuring how long steps take. */
#ifndef KEEL_TRAIN_MADE_ROWS_H
#define KEEL_TRAIN_MADE_ROWS_H
#include "graph/graph.h"
#include "train/step.h"

typedef struct keel_made_rows {
    keel_pairing pairing;
    int n_field;
    keel_data_field field[KEEL_FIELDS_MAX];
    void *data[KEEL_FIELDS_MAX];
    int batches, at; /* in memory, and the one that is `batch` */
    int64_t batch_bytes[KEEL_FIELDS_MAX];
    keel_batch batch;
} keel_made_rows;

/* A batch of `rows` rows for the model, of which the first `present` are in memory. Call
 * keel_made_rows_free also after a failure. inputs: as for keel_pairing_guess. */
keel_status keel_made_rows_make(keel_made_rows *out, const keel_model *m, int64_t rows,
                                int64_t present, const keel_shape *inputs);
/* The same with so many batches that they take about `bytes`, at most KEEL_MADE_MOST:
 * keel_made_rows_next goes from each to the next, and then begins anew. Rows of a batch that was
 * used long ago come from memory, as those of a fit do, and not from a cache. */
enum { KEEL_MADE_MOST = 1024 };
keel_status keel_made_rows_make_many(keel_made_rows *out, const keel_model *m, int64_t rows,
                                     int64_t present, const keel_shape *inputs, int64_t bytes);
void keel_made_rows_next(keel_made_rows *x);
/* KEEL_EUNSUP: the graph reads what look-up layers make of rows, which nobody has made. */
keel_status keel_made_rows_check(const keel_graph *g);
/* A step that trains, to be timed. Losses that are finite for real rows may not be so for made-up
 * ones, as of a logarithm; such a step is timed as well, though nothing moves at its end. */
keel_status keel_made_rows_step(const keel_made_rows *x, keel_trainer *t, keel_tally *tally);
void keel_made_rows_free(keel_made_rows *x);

#endif
