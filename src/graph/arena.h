/* The memory in which the programs of a model run. Each worker has one buffer of each kind, as
 * large as the largest program needs, and lends it to the program that is running. The contents
 * mean nothing after a run. If the worker has a device, what calls read and write is the device's
 * memory, and the host has copies of what it reads. */
#ifndef KEEL_GRAPH_ARENA_H
#define KEEL_GRAPH_ARENA_H
#include "device/device.h"

typedef enum keel_arena_kind { /* the pointers of keel_workspace */
                               KEEL_ARENA_ROWS,
                               KEEL_ARENA_SHARD,
                               KEEL_ARENA_SCRATCH,
                               KEEL_ARENA_GRAD,
                               KEEL_ARENA_FOLD,
                               KEEL_ARENA_MERGED,
                               KEEL_ARENA_ROW_RECORDS,
                               /* only with a device: the batch's rows, and the weights */
                               KEEL_ARENA_INPUTS,
                               KEEL_ARENA_WEIGHTS,
                               KEEL_ARENA_FACTS, /* of the step, with the seeds of its losses */
                               KEEL_ARENA_SLOTS, /* what an optimizer keeps for them */
                               /* stacks of records that it folds, as the host's below */
                               KEEL_ARENA_DEVICE_RECORD,
                               KEEL_ARENA_DEVICE_RECORD_LAST,
                               KEEL_ARENA_HOST, /* from here on always the host's memory */
                               KEEL_ARENA_TILES = KEEL_ARENA_HOST,
                               KEEL_ARENA_RECORD,
                               KEEL_ARENA_RECORD_LAST,
                               KEEL_ARENA_SUMS,
                               /* only with a device: what the host has of the above */
                               KEEL_ARENA_HOST_SCRATCH,
                               KEEL_ARENA_HOST_GRAD,
                               KEEL_ARENA_HOST_MERGED,
                               KEEL_ARENA_HOST_ROW_RECORDS,
                               KEEL_ARENA_HOST_ROW_SUMS,
                               KEEL_ARENA_HOST_OUTPUTS,
                               KEEL_ARENA_HOST_FACTS,
                               KEEL_ARENA_HOST_REPORT, /* on weights that live there */
                               KEEL_ARENA_HOST_KEPT,   /* such weights and their slots */
                               KEEL_ARENA_KINDS
} keel_arena_kind;

/* Rows of a batch that a worker has copied to its device before their step begins: see
 * on_device.h. */
typedef struct keel_ahead {
    const void *program; /* whose inputs they are */
    uint64_t batch;      /* 0: there are none */
    int slot;
} keel_ahead;

typedef struct keel_arenas {
    int n_worker;
    keel_device *const *device; /* [n_worker] borrowed; NULL entry: the host computes */
    int64_t moved; /* how often a buffer has grown, and so moved; owners of pointers into it check
                      this */
    struct keel_arena {
        void *at;
        int64_t bytes;
        bool locked;   /* the host's, and the device copies from and to it by itself */
    } * buffer;        /* [n_worker][KEEL_ARENA_KINDS] */
    int64_t unlocked;  /* bytes that should be locked, but the system refused it */
    keel_ahead *ahead; /* [n_worker] */
} keel_arenas;

keel_status keel_arenas_create(keel_arenas **out, keel_device *const *device, int n_worker);
void keel_arenas_destroy(keel_arenas *a);

/* A buffer of at least n * size bytes, aligned to 64. A buffer that grows loses its contents. If
 * growing fails, the buffer is gone until the next request. pointer: of any type, is set to it. */
keel_status keel_arenas_take(keel_arenas *a, int worker, keel_arena_kind kind, int64_t n,
                             int64_t size, void *pointer);

int64_t keel_arenas_bytes(const keel_arenas *a); /* of all workers, of the host's memory */
int64_t keel_arenas_device_bytes(const keel_arenas *a, int worker); /* on its device */
const char *keel_arena_name(keel_arena_kind kind);

#endif
