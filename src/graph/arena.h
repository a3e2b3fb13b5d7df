/* The memory in which the programs of a model run. Each worker has one buffer of each kind, as
 * large as the largest program needs, and lends it to the program that is running. The contents
 * mean nothing after a run. */
#ifndef KEEL_GRAPH_ARENA_H
#define KEEL_GRAPH_ARENA_H
#include "base/error.h"
#include <stdint.h>

typedef enum keel_arena_kind { /* the pointers of keel_workspace */
                               KEEL_ARENA_ROWS,
                               KEEL_ARENA_SHARD,
                               KEEL_ARENA_SCRATCH,
                               KEEL_ARENA_GRAD,
                               KEEL_ARENA_FOLD,
                               KEEL_ARENA_TILES,
                               KEEL_ARENA_MERGED,
                               KEEL_ARENA_RECORD,
                               KEEL_ARENA_RECORD_LAST,
                               KEEL_ARENA_SUMS,
                               KEEL_ARENA_ROW_RECORDS,
                               KEEL_ARENA_KINDS
} keel_arena_kind;

typedef struct keel_arenas {
    int n_worker;
    int64_t moved; /* how often a buffer has grown, and so moved; owners of pointers into it check
                      this */
    struct keel_arena {
        void *at;
        int64_t bytes;
    } * buffer; /* [n_worker][KEEL_ARENA_KINDS] */
} keel_arenas;

keel_status keel_arenas_create(keel_arenas **out, int n_worker);
void keel_arenas_destroy(keel_arenas *a);

/* A buffer of at least n * size bytes, aligned to 64. A buffer that grows loses its contents. If
 * growing fails, the buffer is gone until the next request. */
keel_status keel_arenas_take(keel_arenas *a, int worker, keel_arena_kind kind, int64_t n,
                             int64_t size, void **out);

int64_t keel_arenas_bytes(const keel_arenas *a); /* of all workers */

#endif
