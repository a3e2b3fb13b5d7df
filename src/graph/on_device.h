/* Inside the graph room: what a worker does whose rows are on a device, besides its calls. Before a
 * run it copies its rows of the batch there, and the weights, if they have moved; after it come the
 * gradients and outputs to the host, where owners reduce and apply them as for any worker. Records
 * come to the host after their call, and merged records go back.
 *
 * Copies have streams of their own, so most of them cost no time:
 *
 *     copy in    | rows 1 | rows 2 |                  | rows 3 |
 *     compute             | forward 1 | backward 1    | forward 2 | backward 2 ...
 *     copy out                            | gradients |
 *     host                                            | reduce, vote, apply |
 *
 * Rows of the next batch (keel_program.coming) go into the other of two slots while a run goes on,
 * straight from the batch; when the run has ended, they are there, so the batch may go.
 * Gradients go out in buckets as backward completes them. A worker waits for its device where a run
 * ends, and only there, but for what the host itself computes. Of several processes it asks there
 * which buckets have come, and these travel while the device computes. */
#ifndef KEEL_GRAPH_ON_DEVICE_H
#define KEEL_GRAPH_ON_DEVICE_H
#include "graph/bind.h"

enum { KEEL_ROW_SLOTS = 2, KEEL_OUT_BUCKETS = 8 };

/* Events of a device. */
enum {
    KEEL_EVENT_ROWS_THERE,                                      /* [KEEL_ROW_SLOTS] */
    KEEL_EVENT_BUCKET = KEEL_EVENT_ROWS_THERE + KEEL_ROW_SLOTS, /* [KEEL_OUT_BUCKETS] */
    KEEL_EVENT_CAME = KEEL_EVENT_BUCKET + KEEL_OUT_BUCKETS,     /* the same, behind their copies */
    KEEL_EVENT_RUN_ENDS = KEEL_EVENT_CAME + KEEL_OUT_BUCKETS,
    KEEL_EVENTS_USED
};
_Static_assert((int)KEEL_EVENTS_USED <= (int)KEEL_DEVICE_EVENTS, "a device has these events");

/* Gradients that are complete after the same segment. */
typedef struct keel_out_bucket {
    int segment, first, n; /* of keel_on_device.range */
    bool follows;          /* in the running step something goes out */
} keel_out_bucket;

typedef struct keel_out_range {
    int64_t at, bytes; /* in the worker's gradients */
    bool merged;       /* the worker with the first row has it, and no other */
    bool further;      /* of further shards of the worker */
} keel_out_range;

/* Calls that one graph replays, with what happens at the ends of segments between them. */
typedef struct keel_stretch {
    int first, end;              /* of the worker's calls */
    void *graph[KEEL_ROW_SLOTS]; /* for the rows in each slot; NULL: not made */
} keel_stretch;

typedef struct keel_stretches {
    int n;
    keel_stretch *at;
    bool made[KEEL_ROW_SLOTS];
    const void **base; /* [KEEL_ROW_SLOTS][n_input] as keel_on_device.base, in the graphs */
} keel_stretches;

/* What a step's calls read of it, on a device and on its way there. */
typedef struct keel_facts_there {
    keel_step_facts facts;
    double loss_seed[KEEL_LOSS_SEEDS_MAX];
} keel_facts_there;
enum { KEEL_FACTS_BYTES = sizeof(keel_facts_there) };

typedef struct keel_on_device {
    keel_device *device;
    keel_facts_there *facts, *facts_sent; /* on the device, and on the host */
    char *inputs;                         /* [KEEL_ROW_SLOTS][inputs_bytes] on the device */
    char *weights;                        /* on the device */
    char *outputs;                        /* on the host */
    int64_t *input_at;                    /* [n_input] bytes into a slot; -1: no value reads it */
    int64_t *input_bytes;                 /* [n_input] of a row */
    int64_t *output_at;                   /* [n_output] bytes into outputs */
    int64_t inputs_bytes, outputs_bytes;
    double *record[2]; /* on the device, as those of keel_workspace; NULL: the host folds */
    int32_t held[2][KEEL_FOLD_STACK]; /* rows of the nodes on these stacks */
    double *row_sums;     /* on the host: records of sums, which are folded when a run has ended */
    int64_t *row_sums_at; /* [n_node] doubles into row_sums, of row 0 of the worker */
    int64_t sums_doubles; /* 0: they are folded behind their calls */
    void **weight;        /* [weight_at[n_node]] */
    const void **base;    /* [n_input] as p->input, on the device */
    bool *has;            /* [n_input] rows that are ahead have it */
    int slot;             /* of the running step */
    uint64_t seen;        /* the moves of the store's weights that the copy has */
    bool waited_out;      /* the end of the last run has waited for the stream of copies out */
    int sent;             /* the last segment of the run whose gradients have gone out; -1: none */
    keel_stretches *replayed; /* in the running step; NULL: calls are made one by one */
    int stretch;              /* of them: the next, or the one that has begun */
    int n_bucket, n_range;
    int out, came; /* buckets of the run that have gone out, and that the host has */
    keel_out_bucket bucket[KEEL_OUT_BUCKETS];
    keel_out_range *range;
    keel_device_range *summed; /* [n_range] room for those of a bucket */
} keel_on_device;

/* For each worker that has a device. Places are known. */
keel_status keel_on_device_make(keel_program *p);
void keel_on_device_free(keel_program *p);
/* Takes the memory of a worker from the arenas. */
keel_status keel_on_device_settle(keel_program *p, int worker);

/* Whether the worker has copied the rows of this step to its device during the step before. */
bool keel_on_device_has_rows(const keel_program *p, int worker);

/* In a run, by the worker. What fails here may also come with keel_on_device_end. */
keel_status keel_on_device_begin(keel_program *p, const keel_bound *b, int worker);
keel_status keel_on_device_call(const keel_program *p, const keel_bound *b,
                                const keel_bound_call *c, int worker);
/* Behind a segment: gradients that it completes go out, and records that it has folded. */
keel_status keel_on_device_segment(keel_program *p, const keel_bound *b, int worker, int segment);
keel_status keel_on_device_end(keel_program *p, const keel_bound *b, int worker);

/* Before a step, for all its workers: whether their devices add up gradients in it. All must have
 * rows, since each waits for the others. */
void keel_on_device_choose_sums(keel_program *p, const keel_bound *b);
/* Of several processes, by each worker, without a wait: the last segment whose gradients the host
 * has; -1: none. */
int keel_on_device_came(const keel_program *p, const keel_bound *b, int worker);
/* A worker has failed: the devices of others must not wait for it. */
void keel_on_device_give_up(const keel_program *p);

/* Whether the gradients of the running step stay on the devices that have them whole: of the only
 * one, or since devices add them up. What is merged of several still goes to the host. */
static inline bool keel_on_device_stays(const keel_program *p)
{
    return p->checks_there && (p->lanes->n_worker == 1 || p->sums_there);
}

/* Whether the device itself merges the records before this segment: it alone has all rows. */
bool keel_on_device_merges(const keel_program *p, int segment);

/* The host has written so many of its merged records, which go to the device. */
void keel_on_device_merged(const keel_workspace *w, const double *at, int64_t doubles);

static inline const keel_step_facts *keel_on_device_facts(const keel_workspace *w)
{
    return w->on_device ? &w->on_device->facts->facts : NULL;
}

/* Whether a graph makes this call, which is enqueued with its first; on_device_graphs.c. */
bool keel_on_device_replays(keel_on_device *x, int call);
/* Graphs of what is bound, if there are any. */
void keel_on_device_forget(const keel_program *p, const keel_bound *b);

/* Copies out from now on come behind what the compute stream has so far. */
static inline void keel_on_device_follow(keel_device *d, int event)
{
    d->type->record(d, KEEL_COMPUTE_STREAM, event);
    d->type->wait(d, KEEL_COPY_OUT_STREAM, event);
}

/* ---- on_device_out.c: within the above ------------------------------------------------------- */

/* Divides the gradients into buckets, once they have their places. */
keel_status keel_on_device_divide(const keel_program *p, keel_on_device *x);
/* Copies out the bucket that a segment completes, behind what is enqueued, or, if devices add up
 * gradients, enqueues that; then the first worker copies out the sums. False: the segment completes
 * none. */
bool keel_on_device_send(const keel_program *p, const keel_bound *b, int worker, int segment);
/* When all is enqueued: of several processes, what has come goes on to the others while the device
 * computes. It ends when all has come, or the device has failed. */
void keel_on_device_pass(const keel_program *p, const keel_bound *b, int worker);
/* Before the host reads the gradients. */
void keel_on_device_read_gradients(const keel_program *p, const keel_bound *b, int worker);

/* ---- on_device_records.c: within the above --------------------------------------------------- */

/* Gives the records of sums their places. */
keel_status keel_on_device_place_sums(const keel_program *p, keel_on_device *x);
/* Behind a call that writes records. */
keel_status keel_on_device_fold(const keel_program *p, const keel_bound *b,
                                const keel_bound_call *c, int worker);
/* Behind a segment, what it has folded: to the host, or to the merged records. */
keel_status keel_on_device_send_records(const keel_program *p, const keel_bound *b, int worker,
                                        int segment);
/* Whether the host does nothing in keel_on_device_fold but enqueue, so that a graph can have it. */
bool keel_on_device_folds_alone(const keel_program *p, const keel_bound_call *c, int worker);
/* The same of what is behind a segment: the merged records stay where they are. */
bool keel_on_device_records_stay(const keel_program *p, int worker, int segment);
/* When the host has waited for a run: what was not folded yet. */
void keel_on_device_fold_sums(const keel_program *p, const keel_bound *b, int worker);

/* ---- on_device_graphs.c: within the above ---------------------------------------------------- */

/* Where the rows of input i begin, as those of row 0 of the step would, in a slot. first_row: of
 * the worker. */
const void *keel_on_device_base(const keel_on_device *x, int input, int slot, int64_t first_row);
/* Chooses what the step replays, once its slot and the places of its inputs are known. */
keel_status keel_on_device_choose(keel_program *p, const keel_bound *b, int worker);
/* Whether the end of a segment, in front of this call, is within a graph that is replayed. */
bool keel_on_device_within(const keel_on_device *x, int call);

#endif
