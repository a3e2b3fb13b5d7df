/* The networks that keel bench trains, each with data of the right kind. */
#ifndef KEEL_CLI_WORKS_H
#define KEEL_CLI_WORKS_H
#include "architecture.h"

typedef struct keel_work {
    const char *name, *what, *architecture; /* NULL: build */
    keel_symbol (*build)(keel_net *n, keel_symbol x);
    keel_shape input;
    int64_t classes, rows, batch_size;
    int64_t vocabulary; /* rows are so many different tokens; 0: numbers in [0, 1) */
    keel_shape places;  /* that have a label each; rank 0: the row has one */
} keel_work;

/* Finds a network by name. Returns -1, or complains and returns the exit code. */
int keel_work_find(const keel_work **out, const char *name);
const keel_work *keel_work_at(int i); /* number i of all; NULL: there are fewer */
/* The compiled model, whose weights follow from the seed; the caller destroys *out, also after a
 * failure. policy: a dtype policy of keel_setup_policy; NULL: float32. */
keel_status keel_work_build(const keel_work *w, const char *policy, uint64_t seed,
                            keel_model **out);
/* x [rows, input] and y: random numbers in [0, 1) or tokens, and random labels, which are enough to
 * measure speed. The caller frees both, also after a failure. */
keel_status keel_work_data(const keel_work *w, int64_t rows, uint64_t seed, keel_tensor *x,
                           keel_tensor *y);

#endif
