/* A pipeline that is a stream, as the source of a feed: see keel_source.begin and next. */
#ifndef KEEL_DATA_FLOW_H
#define KEEL_DATA_FLOW_H
#include "data/source.h"

typedef struct keel_flow keel_flow;

typedef struct keel_flow_options {
    uint64_t seed;
    int threads;            /* that read ahead; 0: the caller's alone */
    bool leaves_early;      /* a pass may be begun anew before its end */
    int64_t keep;           /* elements whose texts stay valid behind the one that is given */
    struct keel_work *work; /* borrowed; may be NULL, as the account */
    struct keel_account *account;
} keel_flow_options;

keel_status keel_flow_create(keel_flow **out, const keel_dataset *d, const keel_flow_options *o);
void keel_flow_destroy(keel_flow *f); /* NULL is allowed */

struct keel_run *keel_flow_run(keel_flow *f);

/* `state` is a keel_flow. */
keel_status keel_flow_begin(void *state, uint32_t pass, const keel_chance *order);
keel_status keel_flow_next(void *state, void *const *field, int64_t *rows);
keel_status keel_flow_next_shaped(void *state, const void **data, keel_shape *shape, int64_t *rows);

#endif
