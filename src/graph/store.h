/* The weights of a model during training: one flat range of master weights, the trained ones first,
 * in backward order; and packed copies that kernels have derived from them. A process has one
 * store, which all workers and all programs share; each program says what it trains (program.h).
 * What an optimizer keeps beside the weights is not in the store. */
#ifndef KEEL_GRAPH_STORE_H
#define KEEL_GRAPH_STORE_H
#include "graph/graph.h"

enum { KEEL_TILE = 16384 }; /* elements of a tile: 64 KiB of float32 */

typedef struct keel_store_weight {
    keel_weight_info info;
    int64_t count;
    int64_t offset;             /* elements, into master */
    int n_copy, n_copy_by_tile; /* of `derived`; those that can be made tile by tile */
} keel_store_weight;

/* A tile: a part of one trained weight. Its owner reduces and updates it. */
typedef struct keel_tile {
    keel_variable variable;
    int64_t offset, count; /* elements of the flat range */
} keel_tile;

typedef struct keel_store keel_store;
struct keel_store {
    keel_dtype real;
    int n_weight;
    keel_store_weight *weight;
    int64_t n_master; /* elements, each tensor aligned to 64 bytes */
    char *master;
    uint64_t
        moves; /* how often weights have moved, from 1; copies on devices are compared with it */
    /* These elements have moved on the devices, which have them before the master does, so they are
     * not copied there. None, if both are 0. */
    int64_t resident_first, resident_end;
    int n_derived, derived_capacity;
    uint64_t users; /* one bit for each program that has joined */
    struct keel_store_copy {
        uint64_t users; /* the programs whose kernels read it */
        keel_variable variable;
        keel_derived copy;
    } * *derived; /* each allocated separately: kernels keep pointers to them */
};

/* Lays out `info` [n], which is copied; the names must outlive the store. order: variables in the
 * order in which backward finishes their gradients; the others come last. */
keel_status keel_store_create(keel_store **out, keel_dtype real, const keel_weight_info *info,
                              int n, const keel_variable *order, int n_order);
void keel_store_destroy(keel_store *s);

/* Cuts the weights with trains [n_weight] into tiles, in the order of the flat range, so that an
 * owner's tiles are neighbours. *out [*n]: free it by keel_free. */
int64_t keel_store_tile(const keel_store *s, keel_variable v); /* elements of a tile of it */
keel_status keel_store_tiles(const keel_store *s, const bool *trains, keel_tile **out, int *n);

void *keel_store_data(const keel_store *s, keel_variable v);
int64_t keel_store_bytes(const keel_store *s); /* masters and copies */

/* A program joins with its own bit, for the copies that it asks for, and leaves. Copies that no
 * other program reads are freed. KEEL_EUNSUP: there are already 64 programs. */
keel_status keel_store_join(keel_store *s, uint64_t *user);
void keel_store_leave(keel_store *s, uint64_t user);

/* A packed copy of weight v: the shared one with want->key, or *want, allocated and filled. On
 * failure, want's plan is released. */
keel_status keel_store_derive(keel_store *s, uint64_t user, keel_variable v, keel_derived *want,
                              const keel_derived **got);
/* Makes again what the copies of a weight have of a tile, by the owner who has moved it. Only where
 * all of them can be made so: keel_store_copies_by_tile. */
bool keel_store_copies_by_tile(const keel_store *s, keel_variable v);
void keel_store_copy_tile(const keel_store *s, const keel_tile *tile);
/* Makes a worker's share of the copies again, after the weights have moved. Each copy goes to the
 * worker with the fewest bytes so far. At most KEEL_LANES_MAX workers. made [n_weight]: weights of
 * which owners have made what can be made tile by tile; NULL: none. */
void keel_store_refresh(keel_store *s, int worker, int n_worker, const bool *made);
bool keel_store_has_to_refresh(const keel_store *s, const bool *made); /* any copy */
/* By one worker, when weights have moved: copies on devices are old. Several workers that refresh
 * leave it to one of them; a single one need not call it. */
static inline void keel_store_moved(keel_store *s)
{
    s->moves++;
}

#endif
