/* Gradients that processes exchange in buckets, while backward still computes those of the layers
 * before. The flat range is in the order in which gradients are complete, so a bucket is a range of
 * it. Each bucket goes through these stages, and several are on their way at once:
 *
 *     arrive   each worker has its gradients of the bucket
 *     fold     workers make the nodes of this process, each for a part of the bucket
 *     scatter  each process receives its part of the nodes of all
 *     add      in the order of the tree, as a single process adds
 *     share    each part goes to everybody
 *
 * Afterwards each process has the sums of all rows, and goes on as if it were alone. Workers look
 * after buckets where a segment ends, and worker 0 also between two calls and while it waits for
 * another exchange; it alone exchanges, as some MPIs want it.
 *
 * With options.shard_optimizer a process keeps the sums of its part, by which it moves the weights
 * there. What it shares are these, once the step is sure: see train/sharded.h.
 *
 * Gradients may travel as bfloat16: see compressed.c. */
#ifndef KEEL_GRAPH_BUCKETS_H
#define KEEL_GRAPH_BUCKETS_H
#include "device/team.h"
#include "graph/gradients.h"
#include "tensor/bfloat16.h"

enum { KEEL_BUCKETS_MAX = 24 };

typedef enum keel_bucket_stage {
    KEEL_BUCKET_FOLD,
    KEEL_BUCKET_SCATTER,
    KEEL_BUCKET_SHARE,
    KEEL_BUCKET_DONE
} keel_bucket_stage;

typedef struct keel_bucket {
    int begin, end;              /* of keel_buckets.tile */
    int segment;                 /* after which a worker has its gradients */
    int64_t *first;              /* [n_process + 1] elements of the flat range */
    char *received;              /* [all_most][own part] as they travel */
    _Atomic int arrived, folded; /* workers, in this step */
    keel_bucket_stage stage;
    int round;         /* of the scatter: one for the first node of each process, and so on */
    const void **send; /* [n_process], as the next three */
    void **receive;
    size_t *send_bytes, *receive_bytes;
} keel_bucket;

/* What a worker has done in this step. */
typedef struct keel_bucket_cursor {
    int arrived, folded;
    char apart[56]; /* each worker has a cache line of its own */
} keel_bucket_cursor;

typedef struct keel_buckets {
    keel_tile *tile; /* [n_tile] of all trained weights, in flat order */
    int n_tile, n;
    int begun, done; /* buckets that are on their way, or over */
    keel_bucket *bucket;
    keel_bucket_cursor *cursor;  /* [n_worker] */
    _Atomic bool broken;         /* a worker has failed: its gradients are not to be read */
    keel_failure failure;        /* of an exchange */
    int own_most, all_most;      /* nodes of this process, and of all, in any step */
    int64_t own_part;            /* elements of the flat range that this process adds */
    char *more;                  /* [own_most - 1][n_grad] nodes of this process; the first is in
                                    the workspace of worker 0 */
    int64_t element;             /* bytes of a number on its way */
    int64_t looked_ns;           /* when worker 0 looked last, between two calls */
    const keel_program *program; /* of the step that runs, as the next */
    const keel_bound *bound;
    keel_bf16 *narrow; /* [n_grad] what travels: of this process, then the sums; NULL: gradients
                          travel as they are */
    float *sum;        /* [sum_count] of a tile, while its nodes are added */
    int64_t sum_count;
} keel_buckets;

/* For a training program whose gradients have their places. */
keel_status keel_buckets_create(keel_program *p);
void keel_buckets_destroy(keel_buckets *x);

/* What a step with so many rows sends from this process, in bytes, and in how many exchanges. */
int64_t keel_buckets_bytes(const keel_program *p, const keel_bound *b);
int keel_buckets_exchanges(const keel_program *p, const keel_bound *b);
/* Bytes that buckets keep in memory, besides the gradients. */
int64_t keel_buckets_memory(const keel_program *p);

/* By worker 0, first of all: buckets move on also while it waits for another exchange. */
void keel_buckets_begin(const keel_program *p, const keel_bound *b);
/* By each worker, when it has its gradients of a segment. */
void keel_buckets_arrive(const keel_program *p, int worker, int segment);
/* By each worker after that, behind a meeting if there is one; and once statistics that others wait
 * for are on their way, since they would queue behind gradients that are begun before them. */
void keel_buckets_pass(const keel_program *p, const keel_bound *b, int worker);
/* By worker 0, between two calls of a segment: buckets and statistics move on, since most MPIs move
 * bytes only while somebody looks. */
void keel_buckets_look(const keel_program *p, const keel_bound *b);
/* By each worker, behind the last one: all meet, and fold what is left. */
void keel_buckets_fold(const keel_program *p, const keel_bound *b, keel_team *team, int worker);
/* By worker 0 after that, while all others wait; in every step, also in one that failed. The
 * buckets of the next step begin anew. */
keel_status keel_buckets_finish(const keel_program *p, const keel_bound *b);
/* By the owner of a tile after that, before it reads the sums of all rows. */
void keel_buckets_take(const keel_program *p, const keel_tile *t);

/* The process that adds a tile. It is the same for all programs over one store that train the same
 * weights. */
int keel_buckets_owner(const keel_program *p, const keel_tile *t);
/* By worker 0: each process has its own tiles at their place in the gradients of worker 0, and gets
 * those of all others there. KEEL_EREMOTE: a process is lost, and some may not have come. */
keel_status keel_buckets_share(const keel_program *p);

/* ---- within the above ------------------------------------------------------------------------ */

/* Bytes of a gradient's number in memory. */
static inline int64_t keel_bucket_element(const keel_program *p)
{
    return (int64_t)keel_dtype_size(p->options.real);
}
/* Elements of a bucket that this process adds. */
static inline int64_t keel_bucket_part(const keel_program *p, const keel_bucket *k)
{
    const int me = p->lanes->process;
    return k->first[me + 1] - k->first[me];
}
/* Rounds of the scatter: the most nodes that one process has. */
int keel_bucket_rounds(const keel_process_nodes *x);

/* ---- compressed.c: within the above ---------------------------------------------------------- */

/* Once the buckets are known. */
keel_status keel_compressed_create(keel_buckets *x, const keel_program *p);
/* Rounds a tile of this process. */
void keel_compressed_round(const keel_program *p, const keel_tile *t);
/* Adds the nodes of all for a tile in the part of this process, and rounds the sum. */
void keel_compressed_add(const keel_program *p, const keel_bound *b, const keel_bucket *k,
                         const keel_tile *t);

#endif
