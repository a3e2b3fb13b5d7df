/* Lanes and workers: the logical devices of a run, and the threads that run them.
 *
 * A lane is a device as the user names it: "cpu:0" is one core, "cpu:0+1" one device of two cores,
 * "cpu:0-3" four lanes. A worker is a thread bound to one core. If there are more lanes than cores,
 * a worker runs the rows of several lanes together. A lane of k cores is run by k workers, each
 * with its part of the lane's rows; the sums are the same, and no team of threads waits inside a
 * kernel. (On convolutions, two threads with half the rows each were faster than a team of two.)
 *
 * If several processes share a step, their lanes are counted one process after another, and the
 * step is cut among all of them. A process has consecutive rows, so it finds its own without
 * asking.
 *
 * Lanes may have unequal shares of a step. A lane of 3 shares has the rows of three neighbouring
 * lanes of a cut into as many lanes as there are shares, so unequal cuts are as nested as others:
 * a border is where some equal cut has one. With shards, a lane has so many of them. */
#ifndef KEEL_DEVICE_LANES_H
#define KEEL_DEVICE_LANES_H
#include "base/error.h"
#include "base/tree.h"
#include "device/device.h"
#include "device/discover.h"
#include <stdbool.h>
#include <stdint.h>

enum { KEEL_LANES_MAX = 256, KEEL_LANE_CORES_MAX = 64 }; /* of one process */
enum { KEEL_ALL_LANES_MAX = 1 << 16 };                   /* of all processes */
enum { KEEL_SHARE_MAX = 1000 };                          /* of a lane */

typedef struct keel_lane {
    int n_core, first_id; /* keel_lanes.id has the user's numbers of its cores */
    int first_part;       /* index of its first part in keel_lanes.part */
} keel_lane;

/* A part of a lane: the rows of it that one worker runs. Most lanes of one core have one part. */
typedef struct keel_lane_part {
    int lane, worker;
} keel_lane_part;

typedef struct keel_lanes {
    int n_lane, n_part, n_worker;
    bool shared; /* more lanes than cores: workers divide the rows evenly, across lanes */
    int shards;  /* per step, and lanes and workers get whole shards; 0: the cut is by rows */
    int n_id;    /* cores of all lanes; one counts in each lane that has it */
    keel_lane lane[KEEL_LANES_MAX];
    int id[KEEL_LANES_MAX];
    keel_lane_part part[KEEL_LANES_MAX]; /* in lane order; a worker's parts ascend */
    int core[KEEL_LANES_MAX];            /* [n_worker] the operating system's number of its core */
    keel_device *device[KEEL_LANES_MAX]; /* [n_worker] that computes for it; borrowed; NULL: the
                                            core does */
    int shares_before[KEEL_LANES_MAX + 1]; /* [n_lane + 1] of the lanes before each; all 0: lanes
                                              have equal shares */

    int n_process, process;    /* 1 and 0: this process is alone */
    int first_lane, all_lanes; /* of this process among the lanes of all, and their number */
    int first_unit, all_units; /* the same in units, by which a step is cut: the shares of all
                                  lanes, or lanes, if none has another share */
    int all_workers;
    bool devices_elsewhere;  /* another process has lanes on devices */
    const int *units_before; /* [n_process + 1] units of the processes before each; borrowed; NULL
                                if alone */
} keel_lanes;

/* Parse "cpu:0-3", "cpu:0,cpu:1", "cpu:0+1", or "cpu" and NULL (every core is a lane). Numbers
 * beyond the machine's cores are logical devices, spread over the cores in blocks. KEEL_EARG: an
 * invalid text; KEEL_EDEVICE: a kind of device that Keel does not have. */
keel_status keel_lanes_parse(keel_lanes *out, const char *text);
/* The same for the given cores. A test names a core several times to have more workers than cores.
 */
keel_status keel_lanes_parse_on(keel_lanes *out, const char *text, const keel_cores *cores);
void keel_lane_name(char out[64], const keel_lanes *l, int lane); /* "cpu:0+1" */

/* A lane and a worker for each of n devices, which stay the caller's. Workers are bound to the
 * cores in turn. */
keel_status keel_lanes_of_devices(keel_lanes *out, keel_device *const *device, int n,
                                  const keel_cores *cores);
/* The same with the lanes of cores behind them. Workers of devices take cores that compute nothing,
 * if there are any. KEEL_EUNSUP: these lanes are more than the cores. */
keel_status keel_lanes_beside(keel_lanes *out, keel_device *const *device, int n,
                              const keel_lanes *of_cores, const keel_cores *cores);

/* Share each step with other processes, all of whose lanes have equal shares. lanes_before
 * [n_process + 1] of the processes before each stays the caller's. */
void keel_lanes_join(keel_lanes *l, int process, int n_process, const int *lanes_before,
                     int all_workers);

/* Give the lanes unequal shares [n] of each step, 1 to KEEL_SHARE_MAX; share NULL: equal ones
 * again. units_before [n_process + 1], which stays the caller's, has the shares of the processes
 * before each, or their lanes if none has another share; NULL if alone. KEEL_EARG: not one for each
 * lane. */
keel_status keel_lanes_share(keel_lanes *l, const int *share, int n, const int *units_before);
static inline bool keel_lanes_unequal(const keel_lanes *l)
{
    return l->shares_before[l->n_lane] > 0;
}
/* Units of the lanes before lane i, of this process. */
static inline int keel_lanes_units_before(const keel_lanes *l, int i)
{
    return keel_lanes_unequal(l) ? l->shares_before[i] : i;
}
static inline int keel_lanes_share_of(const keel_lanes *l, int lane)
{
    return keel_lanes_unequal(l) ? l->shares_before[lane + 1] - l->shares_before[lane] : 1;
}

/* The first device of a lane; NULL: all lanes are of cores. */
keel_device *keel_lanes_device(const keel_lanes *l);
/* Whether any process has lanes on devices. */
static inline bool keel_lanes_any_device(const keel_lanes *l)
{
    return l->devices_elsewhere || keel_lanes_device(l);
}

/* The part of n equal things, such as shards, that a process has; and its rows in a step of n. */
void keel_lanes_range(const keel_lanes *l, int64_t n, int process, int64_t *first, int64_t *end);
void keel_lanes_rows(const keel_lanes *l, int64_t n, int process, int64_t *first, int64_t *end);

/* A piece: the rows of a part in one step. rows 0: the part has none in this step. */
typedef struct keel_piece {
    int lane, worker, part; /* part: index into keel_lanes.part */
    int64_t row, rows;      /* within the step */
    int64_t local_row;      /* within the worker's own rows */
} keel_piece;

/* Shards of a step of n rows; with fewer rows than shards, each row is a shard. */
static inline int64_t keel_lanes_shards(const keel_lanes *l, int64_t n)
{
    return n < l->shards ? n : l->shards;
}

/* The most rows that one worker has in any step of up to n rows. (In a smaller step a lane can have
 * a row more than in a larger one.) */
int64_t keel_cut_most(const keel_lanes *lanes, int64_t n);

/* Join adjacent pieces of one worker into runs, and drop pieces without rows. run [n]; returns the
 * number of runs. */
int keel_pieces_join(const keel_piece *piece, int n, keel_piece *run);

/* Fill piece[lanes->n_part] for a step of n rows. Returns the number of pieces with rows. */
int keel_cut(const keel_lanes *lanes, int64_t n, keel_piece *piece);

#endif
