/* Lanes and workers: which logical devices take part, and which threads run them.
 *
 * A lane is a device of the user: "cpu:0" one core, "cpu:0+1" one device of two cores, "cpu:0-3"
 * four lanes. A worker is a thread bound to one core. Lanes may outnumber cores: then a worker runs
 * several lanes as one. A lane of k cores is run by k workers, each with its part of the lane's
 * rows: the sums are the same algebra, and no team of threads ever waits inside a kernel (measured:
 * two threads with half the rows each beat a team of two on convolutions). */
#ifndef KEEL_DEVICE_LANES_H
#define KEEL_DEVICE_LANES_H
#include "base/error.h"
#include "base/tree.h"
#include "device/discover.h"
#include <stdbool.h>
#include <stdint.h>

enum { KEEL_LANES_MAX = 256, KEEL_LANE_CORES_MAX = 64 };

typedef struct keel_lane {
    int n_core;
    int first_part;              /* index of its first part in keel_lanes.part */
    int id[KEEL_LANE_CORES_MAX]; /* as the user numbered them */
} keel_lane;

/* A part of a lane: what one worker runs of it. Most lanes of one core have one part. */
typedef struct keel_lane_part {
    int lane, worker;
} keel_lane_part;

typedef struct keel_lanes {
    int n_lane, n_part, n_worker;
    bool shared; /* lanes outnumber cores: workers cut the rows evenly, across lanes */
    int shards;  /* of a step: lanes and workers have whole ones; 0: they cut rows */
    keel_lane lane[KEEL_LANES_MAX];
    keel_lane_part part[KEEL_LANES_MAX]; /* in lane order; a worker's parts ascend */
    int core[KEEL_LANES_MAX];            /* [n_worker] the operating system's number of its core */
} keel_lanes;

/* Read "cpu:0-3", "cpu:0,cpu:1", "cpu:0+1", "cpu" (every core a lane; NULL the same). Numbers
 * beyond the machine's cores are logical devices, spread over the cores in blocks. KEEL_EARG: what
 * is wrong with the text; KEEL_EDEVICE: a kind of device that is not there, by name. */
keel_status keel_lanes_parse(keel_lanes *out, const char *text);
/* The same as if the machine had these cores: a test has more workers than cores by naming one
 * several times. */
keel_status keel_lanes_parse_on(keel_lanes *out, const char *text, const keel_cores *cores);
void keel_lane_name(char out[64], const keel_lane *lane); /* "cpu:0+1" */

/* A piece: the rows of a step that one worker runs at once. Rows 0: the part sits the step out. */
typedef struct keel_piece {
    int lane, worker, part; /* part: index into keel_lanes.part */
    int64_t row, rows;      /* within the step */
    int64_t local_row;      /* within the worker's own rows */
} keel_piece;

/* Shards of a step of n rows: where there are fewer rows than shards, each row is one. */
static inline int64_t keel_lanes_shards(const keel_lanes *l, int64_t n)
{
    return n < l->shards ? n : l->shards;
}

/* The most rows that the pieces of one worker have in any step of up to n rows (a smaller step can
 * give one lane a row more than a larger one does). */
int64_t keel_cut_most(const keel_lanes *lanes, int64_t n);

/* Join neighbouring pieces of one worker into runs, leaving out those without rows; returns how
 * many there are. run [n] */
int keel_pieces_join(const keel_piece *piece, int n, keel_piece *run);

/* Fill piece[lanes->n_part] for a step of n rows. Returns the number of pieces with rows. */
int keel_cut(const keel_lanes *lanes, int64_t n, keel_piece *piece);

#endif
