/* A device that computes by itself, such as a GPU. A lane on one has its rows, its gradients and a
 * copy of the weights in the device's memory, and one worker, the thread that gives it work.
 *
 * Work is enqueued on a stream and runs later, in the order in which it was enqueued there. Streams
 * run at the same time, so work that needs what another stream does must wait for an event that is
 * recorded behind it:
 *
 *     copy_in(d, KEEL_COPY_IN_STREAM, rows, ...)
 *     record(d, KEEL_COPY_IN_STREAM, 0)
 *     wait(d, KEEL_COMPUTE_STREAM, 0)           the compute stream waits, the host does not
 *     ... calls that read rows
 *
 * What fails on the way is kept until the host waits, so a failure belongs to the step in which it
 * was enqueued. After a failure nothing more is enqueued until keel_device_finish.
 *
 * Memory of a device is foreign: the host must not read or write it. Memory of the host that is
 * copied from or to must stay as it is until the host has waited for that copy.
 *
 * Except for opening and closing, a device is used by one thread at a time. */
#ifndef KEEL_DEVICE_DEVICE_H
#define KEEL_DEVICE_DEVICE_H
#include "base/error.h"
#include "device/move.h"
#include <stdbool.h>
#include <stdint.h>

typedef struct keel_device keel_device;

/* What else than Keel's own allocations takes memory of a device. */
typedef enum keel_device_own {
    KEEL_OWN_PRODUCTS,     /* a library of products, for itself: not what calls get as scratch */
    KEEL_OWN_CONVOLUTIONS, /* the same, of convolutions */
    KEEL_OWN_SUMS,         /* the same, of sums among devices */
    KEEL_OWN_KERNELS,      /* code that was loaded */
    KEEL_OWN_BEFORE,       /* taken when it was opened: a context, other programs */
    KEEL_OWN_KINDS
} keel_device_own;

struct keel_call;
struct keel_kernel;

typedef enum keel_device_stream {
    KEEL_COMPUTE_STREAM, /* kernels run here, and all else that names no stream */
    KEEL_COPY_IN_STREAM,
    KEEL_COPY_OUT_STREAM,
    KEEL_DEVICE_STREAMS
} keel_device_stream;

enum { KEEL_DEVICE_EVENTS = 32, KEEL_DEVICE_PATIENCE = 60 };

/* Records of rows are pushed on a stack, in the order of the step's tree: as keel_records_push of
 * the graph, for several rows. */
enum { KEEL_FOLD_ROWS = 512, KEEL_FOLD_STACK = 64 };
typedef struct keel_device_fold {
    const struct keel_node *node;
    bool moments; /* records are {mean [length / 2], sum of squared deviations}; else they are added
                   */
    int64_t length, places;         /* doubles of a record; places of a row, of moments */
    double *stack;                  /* on the device: {rows, record} of each node */
    const double *leaf;             /* on the device: [rows][length] */
    int rows, depth;                /* of the stack, before */
    bool upward;                    /* the first row is pushed first; else the last */
    uint8_t closes[KEEL_FOLD_ROWS]; /* by each push: nodes that become complete */
    int32_t held[KEEL_FOLD_STACK];  /* [depth] rows of the nodes on the stack, before */
} keel_device_fold;

/* Devices that add up numbers among themselves, without the host. What such a sum waits for are the
 * other devices; so a device that fails must give the group up, or they would wait for ever. */
typedef struct keel_device_group {
    const struct keel_device_type *type;
    int broken; /* it was given up, and sums nothing more: keel_device_group_works */
} keel_device_group;

typedef struct keel_device_range {
    void *at;
    int64_t count;
} keel_device_range;

/* A kind of device. */
typedef struct keel_device_type {
    const char *name; /* "cuda" */

    /* At least `bytes`, aligned to 256, all zero. what: for messages. KEEL_ENOMEM: the device has
     * no room. */
    keel_status (*allocate)(keel_device *d, int64_t bytes, const char *what, void **out);
    void (*release)(keel_device *d, void *at); /* after keel_device_finish */

    /* Memory of the host, all zero, aligned to 64, that the device copies from and to by itself
     * (page-locked). KEEL_ENOMEM: the system has no such memory left, and any other works, but the
     * host waits for its copies. NULL: there is none. */
    keel_status (*allocate_host)(keel_device *d, int64_t bytes, void **out);
    void (*release_host)(keel_device *d, void *at);

    /* These enqueue. */
    void (*copy_in)(keel_device *d, keel_device_stream s, void *to, const void *from_host,
                    int64_t bytes);
    void (*copy_out)(keel_device *d, keel_device_stream s, void *to_host, const void *from,
                     int64_t bytes);
    void (*clear)(keel_device *d, void *at, int64_t bytes);
    void (*add)(keel_device *d, keel_dtype real, void *to, const void *from, int64_t count);

    void (*copy)(keel_device *d, void *to, const void *from, int64_t bytes); /* within it */
    /* Moves n different weights that are on the device. m [n] is used until this returns. NULL: the
     * host does, and weights are copied in. */
    void (*move)(keel_device *d, const keel_device_move *m, int n);
    /* The same of penalties of weights. NULL: the host moves weights that have some. */
    void (*measure)(keel_device *d, const keel_device_measure *m);
    /* The same of constraints of weights. NULL: the host moves weights that have some. */
    void (*project)(keel_device *d, const keel_device_project *p);
    /* The same of matrices that an optimizer makes orthogonal. NULL: the host moves weights by such
     * an optimizer. */
    void (*orthogonalize)(keel_device *d, const keel_device_orthogonal *o);
    /* The same of weights whose mean squares are kept by row and by column. NULL: the host moves
     * weights by such an optimizer. */
    void (*factor)(keel_device *d, const keel_device_factored *f);
    /* Divides gradients that are on the device, and votes on them. c->tile, g and vote are the
     * device's memory. NULL: gradients go to the host, which does. */
    void (*check)(keel_device *d, const keel_device_check *c);
    /* f is used until this returns. NULL: the host folds the records of rows. */
    void (*fold)(keel_device *d, const keel_device_fold *f);

    /* An event stands for all that is on the stream when it is recorded, until it is recorded
     * again. One that was never recorded stands for nothing. event: 0 to KEEL_DEVICE_EVENTS - 1. */
    void (*record)(keel_device *d, keel_device_stream s, int event);
    void (*wait)(keel_device *d, keel_device_stream s, int event);
    /* Asks, without a wait, for all that an event stands for. 1: it is done, as if the host had
     * waited; 0: not yet; -1: something has failed, which the host is told when it waits. */
    int (*passed)(keel_device *d, int event);

    /* What the compute stream is given between these two is not done, but kept as a graph, which
     * `replay` enqueues as a whole: the same calls with the same pointers, at the cost of one.
     * Nothing else is asked of the device meanwhile: no other stream, no wait, no memory, and no
     * copy but from and to memory of allocate_host. capture_begin fails with what has failed since
     * the host last waited, which stays. capture_end: KEEL_EUNSUP, with the reason: the device has
     * no graph of such calls. KEEL_ENOMEM. NULL: it has no graphs. */
    keel_status (*capture_begin)(keel_device *d);
    keel_status (*capture_end)(keel_device *d, void **graph);
    void (*replay)(keel_device *d, void *graph);
    void (*forget)(keel_device *d, void *graph); /* no replay of it is under way */

    /* The host waits until all is done that was enqueued: on one stream, and on all. The first
     * failure since the last time. After a failure, reach waits for all streams, too. */
    keel_status (*reach)(keel_device *d, keel_device_stream s);
    keel_status (*finish)(keel_device *d);

    /* Joins n devices of this kind to a group, in which each is `rank`. KEEL_EUNSUP, with the
     * reason: these devices cannot. NULL: this kind cannot. sum: on the stream of copies out, each
     * number becomes the sum of those of all ranks, which call it for ranges of the same sizes in
     * the same order, each in its own thread. The order in which the ranks are added is the kind's
     * own. give_up: sums that wait end, and fail; by any thread, any number of times. A device that
     * has waited for the others as long as for itself gives the group up, and fails with
     * KEEL_EREMOTE. */
    keel_status (*join)(keel_device *const *device, int n, keel_device_group **out);
    void (*sum)(keel_device *d, keel_device_group *g, int rank, keel_dtype real,
                const keel_device_range *range, int n);
    void (*give_up)(keel_device_group *g);
    void (*leave)(keel_device_group *g);

    /* Brings `own` up to date: what libraries and kernels have taken so far. NULL: nothing. */
    void (*look)(keel_device *d);

    /* The host is about to read or write memory of its own that copies may use. Only devices that
     * look for missing waits listen. NULL: nobody does. */
    void (*touches)(keel_device *d, const void *host, int64_t bytes, bool writes);

    /* The kernels of the ops for this kind: as keel_kernels. NULL: none. */
    const struct keel_kernel *const *kernels;
    /* Enqueues a reference of the pass, with so many bytes of scratch, which only a device can do
     * whose processor is the host's. call is used until this returns. NULL: references run on the
     * host, on copies (graph/staged.h). */
    void (*launch)(keel_device *d, void (*run)(const struct keel_call *c),
                   const struct keel_call *call, int pass, int64_t scratch);
    void (*close)(keel_device *d);
} keel_device_type;

/* What every kind has first in its own struct. */
struct keel_device {
    const keel_device_type *type;
    char name[64];               /* "cuda:0" */
    char kind[64];               /* "NVIDIA H100 80GB HBM3": those of one kind are equally fast */
    int64_t memory;              /* bytes that it has for this process */
    int64_t own[KEEL_OWN_KINDS]; /* bytes, of `memory` except the last */
    int64_t bucket_bytes; /* gradients are copied out while backward runs, in pieces of at least so
                             many bytes */
    double patience; /* seconds that the host waits for it, before it counts as lost: what waits
                        then fails at once, and its memory stays as it is */
    bool no_graphs;  /* it could not make one, and is not asked again */
    char lacks[512]; /* what kernels have asked for and did not get, in words; empty: nothing */
};

static inline const char *keel_device_own_name(keel_device_own kind)
{
    static const char *const name[KEEL_OWN_KINDS] = {
        "the library of products (cuBLASLt)", "the library of convolutions (cuDNN)",
        "the library of sums (NCCL)", "loaded kernels", "the context and other programs"
    };
    return name[kind];
}

/* What of its memory is not the program's. */
static inline int64_t keel_device_own_bytes(const keel_device *d)
{
    int64_t sum = 0;
    for (int k = 0; k < KEEL_OWN_BEFORE; k++) sum += d->own[k];
    return sum;
}

static inline bool keel_device_group_works(const keel_device_group *g)
{
    return g && !__atomic_load_n(&g->broken, __ATOMIC_ACQUIRE);
}

static inline keel_status keel_device_finish(keel_device *d)
{
    return d->type->finish(d);
}

static inline keel_status keel_device_reach(keel_device *d, keel_device_stream s)
{
    return d->type->reach(d, s);
}

static inline void keel_device_touches(keel_device *d, const void *host, int64_t bytes, bool writes)
{
    if (d->type->touches && bytes > 0) d->type->touches(d, host, bytes, writes);
}

#endif
