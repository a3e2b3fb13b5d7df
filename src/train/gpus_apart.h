/* GPUs of processes that see the same ones, as those of one machine mostly do. "cuda" is then a
 * part of them for each process, in the order of the processes: no two give work to one GPU.
 * Processes that see GPUs of their own, as some launchers arrange it, have them all. */
#ifndef KEEL_TRAIN_GPUS_APART_H
#define KEEL_TRAIN_GPUS_APART_H
#include "comm/comm.h"
#include "device/gpus.h"

/* What processes tell each other. */
typedef struct keel_gpus_of {
    uint64_t id[KEEL_GPUS_MAX]; /* [n] of the GPUs that it sees */
    int64_t n;
    uint64_t chosen; /* those that it uses, a bit for each */
    int64_t all;     /* it uses all, or its part of them */
} keel_gpus_of;

/* The same for processes that see the same GPUs; 0: none. */
uint64_t keel_gpus_seen(void);

/* Chooses for each of n processes that uses all. KEEL_EARG: some see fewer GPUs than they are. */
keel_status keel_gpus_choose(keel_gpus_of *of, int n);
/* Finds a GPU that two processes use, and these. False: there is none. */
bool keel_gpus_shared(const keel_gpus_of *of, int n, int *first, int *second);

/* Of a group of processes, by each: *devices becomes what this one opens, in `text`. shared: empty,
 * or a line about a GPU that several use. */
enum { KEEL_GPUS_TEXT_MAX = 512 };
keel_status keel_gpus_apart(keel_comm *c, const char **devices, char text[KEEL_GPUS_TEXT_MAX],
                            char shared[KEEL_GPUS_TEXT_MAX]);

#endif
