/* Stages of pipelines that call functions of a program, beside map and filter: take_while, scan,
 * flat_map, interleave and group_by_window of tf.data.
 *
 * As in <keel/pipeline.h>, each function makes *out of a dataset that the caller still destroys, in
 * any order, and the result is the same for any number of threads. A struct is copied; its context
 * is borrowed until `release`, which the last destroy calls; after a failure the caller keeps it.
 */
#ifndef KEEL_PIPELINE_CALLS_H
#define KEEL_PIPELINE_CALLS_H
#include <keel/pipeline.h>

#ifdef __cplusplus
extern "C" {
#endif

/* The elements before the first that the function does not keep. Elements behind it may be looked
 * at, too, since they are made ahead.
 *
 * Returns  as keel_dataset_filter
 * Owns     as keel_dataset_filter
 * Threads  any
 * Source   tf.data.Dataset.take_while */
keel_status keel_dataset_take_while(keel_dataset **out, keel_dataset *d, const keel_filter *keep);

/* A function of an element and of a state. */
typedef struct keel_scan {
    size_t size; /* sizeof(keel_scan) */
    void *context;
    const char *name;             /* in messages; borrowed; NULL: "scan" */
    int n_field;                  /* of the result; 0: those of the input */
    const keel_data_field *field; /* copied; shapes are those of a row, without open dims */
    int n_state;
    const keel_tensor *state; /* that each pass begins with; copied; no texts */
    /* Change `state` and compute `out`, as in keel_map.call. Called in order, by one thread at a
     * time. The state of a call that fails is that from before it. */
    keel_status (*call)(void *context, keel_tensor *state, const keel_tensor *in, keel_tensor *out,
                        const keel_element_place *at);
    bool random; /* it uses keel_element_uniform */
    void (*release)(void *context);
} keel_scan;

/* A dataset of what the function makes of each element and the state. It is a stream.
 *
 * Returns  KEEL_OK; KEEL_EARG: no call, or a state without data; KEEL_EUNSUP: open dims, or a state
 *          of texts; KEEL_ESHAPE; KEEL_ENOMEM
 * Owns     *scan and its state are copied; as above
 * Threads  any
 * Source   tf.data.Dataset.scan */
keel_status keel_dataset_scan(keel_dataset **out, keel_dataset *d, const keel_scan *scan);

/* A function that makes a dataset of an element. */
typedef struct keel_flat_map {
    size_t size; /* sizeof(keel_flat_map) */
    void *context;
    const char *name; /* in messages; borrowed; NULL: that of the stage */
    /* A dataset with the fields of those that are made, and with batches of at most as many rows;
     * borrowed for the call. NULL: those of d. */
    const keel_dataset *like;
    /* Make the dataset of an element, which the stage destroys. Called in order, by one thread at a
     * time. */
    keel_status (*call)(void *context, const keel_tensor *in, keel_dataset **out,
                        const keel_element_place *at);
    /* interleave: datasets that are open at once, at most 1024, and elements taken from one in its
     * turn; 0: 1. */
    int64_t cycle_length, block_length;
    bool random; /* it uses keel_element_uniform, or random stages: a cache behind it is refused */
    bool sequential; /* it has a state of its own that stays from pass to pass */
    void (*release)(void *context);
} keel_flat_map;

/* flat_map: all elements of the dataset of the first element, then of the second, and so on.
 * interleave: cycle_length of these datasets are open; each gives block_length elements in its
 * turn, and one that has ended gives its place to the next. The order is tf.data's with
 * num_parallel_calls=None. Both are streams. Random stages of a made dataset draw other numbers for
 * each element.
 *
 * Returns  KEEL_OK; KEEL_EARG: no call, or a length out of range; KEEL_ENOMEM
 * Owns     as above
 * Threads  any
 * Source   tf.data.Dataset.flat_map, tf.data.Dataset.interleave */
keel_status keel_dataset_flat_map(keel_dataset **out, keel_dataset *d, const keel_flat_map *map);
keel_status keel_dataset_interleave(keel_dataset **out, keel_dataset *d, const keel_flat_map *map);

/* How rows are grouped. */
typedef struct keel_group {
    size_t size; /* sizeof(keel_group) */
    void *context;
    const char *name; /* in messages; borrowed; NULL: "group_by_window" */
    /* Set *key, the group of a row. Called in order, by one thread at a time, as the others. */
    keel_status (*key)(void *context, const keel_tensor *in, int64_t *key,
                       const keel_element_place *at);
    /* Rows of a group that are given together. With window_size_of, which then sets *size for each
     * key once, the most that it may say; 0: any, where there is a `reduce`. */
    int64_t window_size;
    keel_status (*window_size_of)(void *context, int64_t key, int64_t *size);
    /* Make a dataset of the rows of a window, which the stage destroys, as it does the window.
     * NULL: one batch of all its rows, padded to the longest. */
    keel_status (*reduce)(void *context, int64_t key, keel_dataset *window, keel_dataset **out);
    const keel_dataset *like; /* of reduce: as in keel_flat_map */
    bool random;              /* a function uses keel_element_uniform */
    void (*release)(void *context);
} keel_group;

/* Rows grouped by a key: a group that has window_size rows is given, and what is left at the end of
 * the data is given in the order of the keys. It is a stream.
 *
 * Returns  KEEL_OK; KEEL_EARG: no key, or no window_size; KEEL_EUNSUP: elements of d are batches; KEEL_ENOMEM
 * Owns     as above
 * Threads  any
 * Source   tf.data.Dataset.group_by_window */
keel_status keel_dataset_group_by_window(keel_dataset **out, keel_dataset *d,
                                         const keel_group *group);

#ifdef __cplusplus
}
#endif
#endif
