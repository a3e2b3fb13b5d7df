/* Pipelines: datasets made of datasets, with the names and the meaning of tf.data. An element is a
 * row or, behind keel_dataset_batch, a batch of rows, which is then one step.
 *
 * Stages over data that can be read by row number stay so: shuffling, skipping and resuming cost
 * nothing, and rows are read by several threads. Filters, and all stages behind generators, are
 * streams: their order is the same for any number of threads, too. Random numbers are a function of
 * (seed, pass, element), so a run can be repeated or gone on with anywhere.
 *
 * Each function makes *out of datasets that the caller still destroys, in any order. */
#ifndef KEEL_PIPELINE_H
#define KEEL_PIPELINE_H
#include <keel/args.h>
#include <keel/dataset.h>
#include <keel/model.h>

#ifdef __cplusplus
extern "C" {
#endif

enum { KEEL_CARDINALITY_INFINITE = -1, KEEL_CARDINALITY_UNKNOWN = -2 };

/* The number of elements of one pass.
 *
 * Returns  the number, or KEEL_CARDINALITY_INFINITE or KEEL_CARDINALITY_UNKNOWN
 * Owns     nothing changes hands
 * Threads  any
 * Source   tf.data.Dataset.cardinality */
int64_t keel_dataset_cardinality(const keel_dataset *d);

/* True if elements are batches, each of which is one step.
 *
 * Returns  true behind a batch stage
 * Owns     nothing changes hands
 * Threads  any */
bool keel_dataset_is_batched(const keel_dataset *d);

/* Apply a stage by its name: keel_dataset_apply(&out, "take", KEEL_ARGS(KEEL_ARG_INT("count", 5)),
 * &d, 1). The names and arguments are listed by `keel data --stages`.
 *
 * Returns  KEEL_OK; KEEL_EARG: no such stage or argument; KEEL_ESHAPE, KEEL_EDATA: it does not fit
 *          the datasets; KEEL_EUNSUP; KEEL_ENOMEM
 * Owns     the caller destroys *out and the parents, in any order
 * Threads  any */
keel_status keel_dataset_apply(keel_dataset **out, const char *stage, const keel_arg *args,
                               keel_dataset *const *parent, int n_parent);

/* The names of all stages, and the arguments of one as text.
 *
 * Returns  keel_stage_class: the name, NULL behind the last; keel_stage_help: KEEL_OK, KEEL_EARG: no
 *          such stage, KEEL_ENOMEM
 * Owns     names are static; *out is freed with keel_model_summary_free
 * Threads  any */
const char *keel_stage_class(int i);
keel_status keel_stage_help(const char *name, char **out);

/* The stage that makes a dataset, and the datasets that it is made of.
 *
 * Returns  keel_dataset_stage: the name, NULL for a source; keel_dataset_parent: parent i, from 0, or
 *          NULL behind the last
 * Owns     both are the dataset's
 * Threads  any */
const char *keel_dataset_stage(const keel_dataset *d);
const keel_dataset *keel_dataset_parent(const keel_dataset *d, int i);

/* The stages of tf.data that people use most, as functions; see keel_dataset_apply. count -1: all
 * (take, skip), for ever (repeat). buffer_size 0: all elements, which costs no memory.
 *
 * Returns  as keel_dataset_apply
 * Owns     the caller destroys *out and d, in any order
 * Threads  any */
keel_status keel_dataset_take(keel_dataset **out, keel_dataset *d, int64_t count);
keel_status keel_dataset_skip(keel_dataset **out, keel_dataset *d, int64_t count);
keel_status keel_dataset_repeat(keel_dataset **out, keel_dataset *d, int64_t count);
keel_status keel_dataset_shuffle(keel_dataset **out, keel_dataset *d, int64_t buffer_size);
keel_status keel_dataset_shard(keel_dataset **out, keel_dataset *d, int64_t num_shards,
                               int64_t index);
keel_status keel_dataset_batch(keel_dataset **out, keel_dataset *d, int64_t batch_size,
                               bool drop_remainder);
keel_status keel_dataset_unbatch(keel_dataset **out, keel_dataset *d);
keel_status keel_dataset_concatenate(keel_dataset **out, keel_dataset *first, keel_dataset *second);

/* Where an element stands, for a callback that draws random numbers or names it. */
typedef struct keel_element_place {
    uint64_t seed;  /* of the run */
    uint64_t pass;  /* of the data, from 0 */
    int64_t index;  /* of the element in it */
    uint16_t stage; /* the number of the stage, so that two draw different numbers */
} keel_element_place;

/* A random number in [0, 1): number `draw` of an element. Any thread may ask in any order.
 *
 * Returns  the number, with 24 random bits
 * Owns     nothing changes hands
 * Threads  any
 * Source   Philox4x32-10 */
double keel_element_uniform(const keel_element_place *at, uint32_t draw);

/* A function of an element. */
typedef struct keel_map {
    size_t size; /* sizeof(keel_map) */
    void *context;
    const char *name;             /* in messages; borrowed; NULL: "map" */
    int n_field;                  /* fields of the result; 0: those of the input */
    const keel_data_field *field; /* copied; shapes are those of a row; may have open dims */
    /* Compute `out` from `in`, both by field. On entry out[i].data has room for out[i].shape in the
     * type of the field; it is undefined. A status other than KEEL_OK fails the row, with the text
     * of keel_error_set, if it was called. Called by several threads at once, unless `sequential`.
     */
    keel_status (*call)(void *context, const keel_tensor *in, keel_tensor *out,
                        const keel_element_place *at);
    /* If a field has open dims: set the shape of each field of the result from those of the input.
     */
    keel_status (*shapes)(void *context, const keel_shape *in, keel_shape *out);
    bool random;     /* it uses keel_element_uniform: a cache behind it is refused */
    bool sequential; /* it has a state of its own: called in order by one thread at a time; the
                        result is a stream */
    void (*release)(void *context); /* called once, by the last destroy; may be NULL */
} keel_map;

/* A dataset of map(element).
 *
 * Returns  KEEL_OK; KEEL_EARG: no call, or open dims without `shapes`; KEEL_ESHAPE; KEEL_ENOMEM
 * Owns     *map is copied; its context is borrowed until `release`; as above
 * Threads  any
 * Source   tf.data.Dataset.map */
keel_status keel_dataset_map(keel_dataset **out, keel_dataset *d, const keel_map *map);

/* A dataset of rows, or batches, that a model has changed: one of preprocessing and augmentation,
 * or any that sees rows alone. Its inputs are fields of those names, or all inputs in their order;
 * its outputs take their place. A single layer is a stage by its name: see keel_dataset_apply.
 *
 * training  Keras's argument: layers that draw numbers do so
 * Returns  KEEL_OK; KEEL_EARG: it does not fit the fields, or is in use; KEEL_ESHAPE; KEEL_EUNSUP:
 *          a layer needs all rows of a step; KEEL_ENOMEM
 * Owns     m is borrowed, with its weights, which may not change while rows are read; as above
 * Threads  any
 * Source   Keras: ds.map(lambda x, y: (model(x, training=True), y)) */
keel_status keel_dataset_map_model(keel_dataset **out, keel_dataset *d, keel_model *m,
                                   bool training);

/* Which elements stay. */
typedef struct keel_filter {
    size_t size; /* sizeof(keel_filter) */
    void *context;
    const char *name; /* in messages; borrowed; NULL: "filter" */
    /* Set *keep for an element. Called by several threads at once, unless `sequential`. */
    keel_status (*call)(void *context, const keel_tensor *in, bool *keep,
                        const keel_element_place *at);
    void (*release)(void *context); /* as in keel_map */
    bool random, sequential;        /* as in keel_map */
} keel_filter;

/* A dataset of the elements that stay. It is a stream, and their number is not known.
 *
 * Returns  KEEL_OK; KEEL_EARG: no call; KEEL_ENOMEM
 * Owns     as keel_dataset_map
 * Threads  any
 * Source   tf.data.Dataset.filter */
keel_status keel_dataset_filter(keel_dataset **out, keel_dataset *d, const keel_filter *filter);

/* Reading a dataset without training, as a Python loop does. */
typedef struct keel_reader keel_reader;

typedef struct keel_reader_options {
    size_t size;
    uint64_t seed;                 /* of shuffles and other random stages */
    uint64_t pass;                 /* to begin with */
    int64_t index;                 /* element of that pass to begin with */
    int threads;                   /* that read ahead; 0: one for each core, at most 16; -1: none */
    int64_t memory;                /* bytes that elements read ahead may take; 0: no limit */
    const keel_input_watch *watch; /* borrowed until keel_reader_create returns; NULL: none */
} keel_reader_options;

#define KEEL_READER_OPTIONS ((keel_reader_options){ .size = sizeof(keel_reader_options) })

/* Begin to read a dataset. options NULL: the defaults. A stream is read from its begin up to
 * options->index.
 *
 * Returns  KEEL_OK; KEEL_EARG: options; KEEL_END: the pass has fewer elements; KEEL_ENOMEM; and what
 *          reading gives
 * Owns     d must outlive the reader; the caller destroys *out
 * Threads  any; one at a time uses a reader */
keel_status keel_reader_create(keel_reader **out, const keel_dataset *d,
                               const keel_reader_options *options);

/* The next element: field[i] is field i of the dataset, of a batch with the number of rows first.
 *
 * Returns  KEEL_OK; KEEL_END: the pass is over, and the next call gives the first of the next pass;
 *          < 0: the element failed, and the next call tries it again
 * Owns     the memory is the reader's, until the next call
 * Threads  one at a time */
keel_status keel_reader_next(keel_reader *r, const keel_tensor **field);

/* Leave out the element whose failure keel_reader_next gave last; else do nothing.
 *
 * Returns  nothing
 * Owns     nothing changes hands
 * Threads  one at a time */
void keel_reader_pass(keel_reader *r);

/* What the user should know of the passes so far, of all readers of the dataset: elements that were
 * left out or replaced, a cache that had no room, a file that was not written, and why. keel_fit
 * adds it to the note of the history.
 *
 * Returns  one line, or NULL
 * Owns     the string is the reader's, until the next call
 * Threads  one at a time */
const char *keel_reader_note(keel_reader *r);

/* Destroy a reader.
 *
 * Returns  nothing
 * Owns     frees the reader and its elements; NULL is allowed
 * Threads  any, after its last use */
void keel_reader_destroy(keel_reader *r);

#ifdef __cplusplus
}
#endif
#endif
