/* The programs of one kind of step, training or not, by the shapes of the rows they read: so many
 * at most, the one that was not used for longest goes. All run on one store of weights and in the
 * same arenas. Where rows have one shape there is one program. */
#ifndef KEEL_TRAIN_PROGRAMS_H
#define KEEL_TRAIN_PROGRAMS_H
#include "train/scored.h"

enum { KEEL_PROGRAMS_DEFAULT = 8, KEEL_PROGRAMS_MAX = 30 }; /* of a kind; a store has room for 64 */

typedef struct keel_parked {
    keel_scored scored; /* empty while it is the one in use */
    int64_t used;       /* when last, as a number that grows */
    keel_shape *shape;  /* [n_open] of the rows it was compiled for */
} keel_parked;

typedef struct keel_programs {
    keel_pairing pairing; /* as it was made, with dims that batches decide on */
    int64_t rows;         /* of the largest step */
    int n_open, *open;    /* [n_open] the fields whose shape differs from batch to batch */
    int n, most, at;      /* [at] is in use */
    keel_parked *parked;  /* [most] */
    int64_t made, evicted, clock;
} keel_programs;

/* After the first program was compiled for `batch`, the fields of a batch; NULL: rows have one
 * shape. On failure keel_programs_free. */
keel_status keel_programs_begin(keel_programs *p, const keel_pairing *pairing, int64_t rows,
                                int most, const keel_data_field *batch);
void keel_programs_free(keel_programs *p);

/* Is the program in use that of this batch? */
bool keel_programs_fit(const keel_programs *p, const keel_data_field *batch);

/* The program of this batch becomes the one in *s, which is parked; false: there is none. */
bool keel_programs_take(keel_programs *p, keel_scored *s, const keel_data_field *batch);

/* Room for one more: the oldest goes where there is none. Before the next is compiled, so that
 * there are never more. */
void keel_programs_make_room(keel_programs *p);

/* A new program in use, instead of the one in *s, which is parked. */
void keel_programs_add(keel_programs *p, keel_scored *s, keel_scored *made,
                       const keel_data_field *batch);

#endif
