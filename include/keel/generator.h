/* Rows from callbacks: generators and sequences. Included by <keel/dataset.h>. */
#ifndef KEEL_GENERATOR_H
#define KEEL_GENERATOR_H
#include <keel/data_field.h>
#include <keel/status.h>
#include <stdbool.h>
#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct keel_dataset keel_dataset;

/* Rows that a callback yields batch by batch, as a Python generator does for Keras. Callbacks are
 * called from one thread at a time, which may differ from the caller's. Of several processes that
 * train together (keel/process_group.h) process 0 calls them for all. A row is x, y and weight;
 * or, if n_field is not 0, the fields, and then x_shape to has_weight and `next` are not used. */
typedef struct keel_generator {
    size_t size; /* sizeof(keel_generator) */
    void *context;
    keel_shape x_shape, y_shape; /* of one row, without the batch, as `next` writes it */
    keel_dtype x_dtype, y_dtype; /* KEEL_FLOAT32 is 0 */
    bool has_y, has_weight;      /* if false, `next` gets NULL for it */
    int64_t max_rows;            /* most rows of one call of `next`, >= 1 */
    int64_t rows;                /* rows until the end; 0: not known */
    bool endless;                /* `next` never ends: steps_per_epoch must be given */
    const char *name;            /* in messages; NULL: "generator" */
    /* Write up to `capacity` (= max_rows) rows and set *rows. KEEL_END: there are no more, and
     * *rows is ignored; < 0: a failure, which ends the step before anything was trained;
     * keel_error_set says why. */
    keel_status (*next)(void *context, void *x, void *y, float *weight, int64_t capacity,
                        int64_t *rows);
    keel_status (*reset)(void *context); /* begin again; NULL: it serves one pass */
    void (*release)(void *context);      /* called once by the last destroy; may be NULL */
    int n_field;                         /* number of fields; 0: x, y and weight */
    const keel_data_field *field;        /* copied */
    /* As `next`; field[i] has room for `capacity` rows of field i in its dtype. */
    keel_status (*next_fields)(void *context, void *const *field, int64_t capacity, int64_t *rows);
    /* Replaces next_fields: one row; data[i] must point to field i until the next call, shape[i]
     * gets its open dims. Rows are padded: see keel_fit_options.bucket. max_rows is not used. */
    keel_status (*next_row)(void *context, const void **data, keel_shape *shape);
} keel_generator;

/* A dataset over a generator. Without `reset` it serves one pass: a further epoch is refused before
 * it begins.
 *
 * Returns  KEEL_OK; KEEL_EARG: no next, max_rows < 1, fields as in keel_dataset_from_fields;
 *          KEEL_ESHAPE: a wrong row shape; KEEL_ENOMEM
 * Owns     *g is copied; its context is borrowed until `release`; the caller destroys *out
 * Threads  any; one feed (fit, evaluate, predict) at a time may use the dataset */
keel_status keel_dataset_from_generator(keel_dataset **out, const keel_generator *g);

/* Batches that are read by number, as keras.utils.Sequence (PyDataset). Without a batch size each
 * batch is a step, a short one too; fit shuffles their order. */
typedef struct keel_sequence {
    size_t size; /* sizeof(keel_sequence) */
    void *context;
    keel_shape x_shape, y_shape;
    keel_dtype x_dtype, y_dtype;
    bool has_y, has_weight;
    int64_t max_rows; /* most rows of one batch, >= 1 */
    int64_t rows;     /* of all batches, if all but the last have max_rows; 0: not known */
    const char *name; /* in messages; NULL: "sequence" */
    int64_t (*length)(void *context); /* number of batches; called before every pass */
    keel_status (*get)(void *context, int64_t i, void *x, void *y, float *weight, int64_t capacity,
                       int64_t *rows);
    keel_status (*on_epoch_end)(void *context); /* after the last batch of a pass; may be NULL */
    void (*release)(void *context);
    int n_field; /* number of fields, as in keel_generator */
    const keel_data_field *field;
    keel_status (*get_fields)(void *context, int64_t i, void *const *field, int64_t capacity,
                              int64_t *rows);
    /* Replaces get_fields: a batch of rows of one shape, as by next_row; it is one step. */
    keel_status (*get_shaped)(void *context, int64_t i, const void **data, keel_shape *shape,
                              int64_t *rows);
    /* How many threads may call `get` (or get_fields) at once, for different batches, as
     * PyDataset's `workers`; -1: one for each core. Batches keep their order. 0 and 1: one thread
     * at a time, as all other callbacks always; while length or on_epoch_end runs there is no get.
     * Not with get_shaped. */
    int workers;
} keel_sequence;

/* A dataset over a sequence.
 *
 * Returns  KEEL_OK; KEEL_EARG: no length or get, max_rows < 1, workers not -1 to 64 or with
 *          get_shaped, fields as in keel_dataset_from_fields; KEEL_ESHAPE: a row shape is wrong;
 * KEEL_ENOMEM
 * Owns     *s is copied; the context is borrowed until `release`; the caller destroys *out
 * Threads  any; one feed at a time may use the dataset; callbacks come from one thread at a time,
 *          except for `get` with workers
 * Source   keras.utils.PyDataset */
keel_status keel_dataset_from_sequence(keel_dataset **out, const keel_sequence *s);

#ifdef __cplusplus
}
#endif
#endif
