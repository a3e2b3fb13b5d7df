/* A cache of programs for training or for inference, by the shapes of their rows; the least
 * recently used one is dropped. All share one store of weights and one set of arenas. If all rows
 * have one shape, there is one program. */
#ifndef KEEL_TRAIN_PROGRAMS_H
#define KEEL_TRAIN_PROGRAMS_H
#include "train/scored.h"

enum { KEEL_PROGRAMS_DEFAULT = 8, KEEL_PROGRAMS_MAX = 30 }; /* per cache; a store serves up to 64 */

typedef struct keel_parked {
    keel_scored scored; /* empty while the program is in use */
    int64_t used;       /* last use, by a counter */
    keel_shape *shape;  /* [n_open] row shapes that it was compiled for */
} keel_parked;

typedef struct keel_programs {
    keel_pairing pairing; /* with open dims */
    int64_t rows;         /* of the largest step */
    int n_open, *open;    /* [n_open] the fields whose shape differs from batch to batch */
    int n, most, at;      /* programs, their limit, and the index of the one in use */
    keel_parked *parked;  /* [most] */
    int64_t made, evicted, clock;
} keel_programs;

/* Begin after the first program was compiled for `batch`, the fields of a batch; NULL: rows have
 * one shape. After a failure call keel_programs_free. */
keel_status keel_programs_begin(keel_programs *p, const keel_pairing *pairing, int64_t rows,
                                int most, const keel_data_field *batch);
void keel_programs_free(keel_programs *p);

/* True if the program in use is compiled for the shapes of this batch. */
bool keel_programs_fit(const keel_programs *p, const keel_data_field *batch);

/* Exchange the program in *s for that of this batch; false: there is none. */
bool keel_programs_take(keel_programs *p, keel_scored *s, const keel_data_field *batch);

/* Drop the least recently used program if the cache is full. Called before the next is compiled, so
 * that the limit holds at all times. */
void keel_programs_make_room(keel_programs *p);

/* Put a new program into *s and park the one that was there. */
void keel_programs_add(keel_programs *p, keel_scored *s, keel_scored *made,
                       const keel_data_field *batch);

#endif
