/* What interleave and flat_map share; see interleave.c. */
#ifndef KEEL_DATA_STAGES_INTERLEAVE_H
#define KEEL_DATA_STAGES_INTERLEAVE_H
#include "data/inner.h"
#include "keel/pipeline_calls.h"

enum { KEEL_INTERLEAVE_MOST = 1024 /* datasets that are open at once */ };

typedef struct keel_interleave_args {
    int64_t cycle_length, block_length;
    bool calls;
    keel_flat_map f; /* if it calls; `like` is not used after infer */
} keel_interleave_args;

typedef struct keel_interleave_place {
    keel_inner inner;
    keel_iter *it; /* of the inner dataset, or of a parent; NULL: the place is free */
} keel_interleave_place;

typedef struct keel_interleave_iter {
    keel_interleave_place *at; /* [cycle] */
    int64_t cycle, k, given, open;
    int64_t taken;    /* elements that name a dataset, or parents */
    keel_element *in; /* whose dataset could not be made */
    bool ended;       /* there are no further datasets */
    bool told;        /* an open dataset has failed, not the making of one */
} keel_interleave_iter;

/* The functions of a keel_stage. */
bool keel_interleave_is_random(const keel_applied *s);
bool keel_interleave_is_sequential(const keel_applied *s);
keel_status keel_interleave_infer(keel_applied *s, keel_data_spec *spec);
keel_status keel_interleave_begin(keel_iter *it);
keel_status keel_interleave_next(keel_iter *it, keel_element **out);
void keel_interleave_pass(keel_iter *it);
void keel_interleave_end(keel_iter *it);
void keel_interleave_release_args(void *args);

/* The dataset of a stage with a callback; `cycles`: cycle_length and block_length are its. */
keel_status keel_interleave_apply(keel_dataset **out, const keel_stage *stage, keel_dataset *d,
                                  const keel_flat_map *map, bool cycles);

/* Where the elements of the parent are names of files: s->made has the options that they are opened
 * with, and the fields are those of the first. */
keel_status keel_files_infer(keel_applied *s, keel_data_spec *spec);
keel_status keel_files_open(keel_dataset **out, const keel_applied *s, const keel_element *name);
void keel_files_release(keel_applied *s);

/* All members of a stage that are for this. */
#define KEEL_INTERLEAVE_STAGE                                                                      \
    .no_index = true, .is_random = keel_interleave_is_random,                                      \
    .is_sequential = keel_interleave_is_sequential, .infer = keel_interleave_infer,                \
    .iter_size = sizeof(keel_interleave_iter), .begin = keel_interleave_begin,                     \
    .next = keel_interleave_next, .end = keel_interleave_end, .pass = keel_interleave_pass,        \
    .release = keel_files_release

#endif
