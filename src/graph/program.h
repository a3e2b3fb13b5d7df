/* A program: a graph compiled once for a set of lanes. It is constant while it runs, and all
 * workers share it. What differs between workers (their rows of every value, gradients, scratch) is
 * in a keel_workspace. For each number of rows that a step can have, a keel_bound holds the calls
 * with all pointers set, so a step is a loop over them. */
#ifndef KEEL_GRAPH_PROGRAM_H
#define KEEL_GRAPH_PROGRAM_H
#include "base/text.h"
#include "comm/comm.h"
#include "device/lanes.h"
#include "device/team.h"
#include "graph/arena.h"
#include "graph/schedule.h"
#include "graph/store.h"
#include "graph/timing.h"

/* Where the rows of a value lie. */
typedef enum keel_place_kind {
    KEEL_PLACE_NONE,
    KEEL_PLACE_INPUT, /* in the batch: at = index of the input */
    KEEL_PLACE_ROWS,  /* crosses a segment, or is read over all rows of the worker: at = offset */
    KEEL_PLACE_SHARD, /* lives inside one segment of one shard: at = offset */
} keel_place_kind;

typedef struct keel_place {
    keel_place_kind kind;
    int64_t at, row_bytes;
} keel_place;

/* What the host reads and writes of a workspace. */
typedef struct keel_host_part {
    char *scratch, *grad;
    double *merging; /* a stack in which records are merged */
    double *merged, *row_records;
} keel_host_part;

/* What one worker owns while a program runs. The memory belongs to the arenas. */
typedef struct keel_workspace {
    char *rows, *shard, *scratch;
    char *grad;          /* [gradient_elements] flat; NULL in inference */
    char *fold;          /* [fold_bytes] gradients of shards that are not added yet */
    double *merged;      /* merged records, of all nodes */
    double *row_records; /* of the rows of one call */
    void *const *weight; /* [weight_at[n_node]] */
    /* Pointers above are into the device's memory, and those of `host` into copies of it, if the
     * worker has a device; else they are the same. Everything else is the host's. */
    keel_host_part host;
    struct keel_on_device *on_device; /* NULL: the worker's core computes. See on_device.h */

    char *tiles;       /* as fold, of a tile that is made shard by shard: see tiles.c */
    double *record[2]; /* stacks of records: of the node that meets next, and of the last one */
    double *sums;      /* stacks of sums, of all nodes */
    int64_t bad_row;   /* the first whose loss is not finite; INT64_MAX: none */
    keel_variable last_tiled;        /* the weight of its last tile in this step; -1: none */
    struct keel_prepared **prepared; /* [n_node] lists of the kernels prepared so far */
} keel_workspace;

/* One gradient is added to another. */
typedef struct keel_addition {
    void *to;
    const void *from;
    int64_t count;
} keel_addition;

/* What happens to the records that a call writes: see records.c. */
typedef struct keel_fold {
    double *stack;  /* NULL: the call writes none */
    int64_t length; /* doubles of a record */
    int64_t leaf;   /* of that of one row: keel_node_leaf */
    int64_t stride; /* from one node of the stack to the next */
    keel_combine combine;
    bool upward; /* rows come in ascending order; else in descending order */
} keel_fold;

typedef struct keel_bound_call {
    keel_run run;
    keel_call call;
    int node;
    keel_pass pass;
    keel_fold fold;
    bool staged; /* the host runs it, in its own scratch: see staged.h */
    int n_add, n_clear;
    struct keel_addition *add; /* [n_add] made after the call, one after the other; the first
                                  n_clear are made before it: `to` becomes 0 */
} keel_bound_call;

typedef struct keel_patch { /* a pointer into the batch, set when a step begins */
    const void **pointer;
    int input;
    int64_t offset; /* bytes from row 0 of the step */
} keel_patch;

typedef struct keel_bound_workspace {
    int n_call, n_patch, n_block;
    keel_bound_call *call;
    int *first;   /* [n_segment + 1] index of the first call of each segment */
    int *weights; /* [n_segment] and of the first that makes weight gradients */
    keel_patch *patch;
    void **block; /* pointer arrays of the calls, to free */
    int n_shard;
    int64_t rows;
    struct keel_stretches *stretches; /* of calls that a device replays; NULL: none */
} keel_bound_workspace;

/* A row is pushed on a stack of `depth` records and completes `closes` nodes of the tree. */
typedef struct keel_fold_row {
    uint16_t depth, closes;
} keel_fold_row;

/* A node of the tree whose rows one worker has all, unlike those of its parent. */
typedef struct keel_tree_part {
    int worker, slot[2]; /* [upward] its place in the stacks */
    int closes;          /* larger nodes that are complete with it */
} keel_tree_part;

/* A shard: rows of one worker whose weight gradients are computed separately. See gradients.c. */
typedef struct keel_shard {
    int worker;
    int64_t row, rows, local_row;
    int depth, closes; /* its gradient is pushed on a stack of `depth` gradients, and `closes` sums
                          are made */
    int leaf;          /* its place among the worker's shards, for gradients that are not folded */
    bool leaf_adds;    /* to what is there */
} keel_shard;

/* A gradient that a worker has left; it completes `closes` sums. */
typedef struct keel_part {
    int worker, slot, closes;
} keel_part;

/* Of a step that processes share: the largest nodes that each of them has left, one process after
 * another. */
typedef struct keel_process_nodes {
    int n;
    keel_part *node; /* [n] `worker` is a process, `slot` counts its nodes, `closes` as elsewhere */
    int *before;     /* [n_process + 1] nodes of the processes before each */
} keel_process_nodes;

typedef struct keel_bound {
    int64_t rows;
    bool one_each;     /* each worker is left with one gradient of each weight */
    int n_busy, n_run; /* pieces with rows */
    keel_piece *piece; /* [n_busy] in row order */
    keel_piece *run;   /* [n_run] neighbours of one worker, joined: lanes on one core */
    int n_tree;
    keel_tree_part *tree;   /* [n_tree] in row order */
    keel_fold_row *fold[2]; /* [upward][rows] */
    int n_shard, n_part, n_leaf;
    keel_shard *shard;               /* [n_shard] in row order */
    keel_part *part, *leaf;          /* of gradients that workers fold, and of the others */
    keel_bound_workspace *workspace; /* [n_worker] */
    struct keel_rounds *rounds; /* of records with other processes; NULL: this process is alone */
    keel_process_nodes gradient_nodes; /* empty then */
} keel_bound;

typedef enum keel_gradient_kind {
    KEEL_GRADIENT_NONE,   /* nobody makes it, or owners make it tile by tile */
    KEEL_GRADIENT_FOLDED, /* one use: a worker folds its shards as they come */
    KEEL_GRADIENT_SHARED, /* several uses: every shard has its own gradient */
    KEEL_GRADIENT_MERGED, /* one worker reads it from merged records */
} keel_gradient_kind;

typedef struct keel_gradient {
    keel_gradient_kind kind;
    int64_t count;         /* elements; 0: frozen */
    int64_t first, others; /* elements into workspace.grad: slot 0, where the store has the master,
                              then slots 1, 2, ... */
} keel_gradient;

typedef struct keel_program_options {
    keel_dtype real;
    bool reference_only; /* only the plain references: for tests */
    const char *without; /* leave out kernels of this name ("dnnl"); NULL: none */
    keel_float32 float32;
    int64_t max_rows;    /* of a step */
    bool dry;            /* plan only: allocate nothing that only a run needs */
    bool no_graphs;      /* devices are given each call by itself */
    bool recompute;      /* fewer values are kept for backward: see recompute.h */
    int64_t micro_batch; /* of programs that train; see keel_schedule_make */
    const bool *trains;  /* [store->n_weight] which weights a training program trains, read while it
                            is created; NULL: none */
    keel_comm *comm;     /* of the processes that share its steps; borrowed; NULL: alone */
    keel_compress compress;  /* how its gradients travel between them, of float32 */
    bool shard_optimizer;    /* weights come back from those who moved them: see buckets.h */
    keel_device_group *sums; /* of the workers' devices, which add up gradients there; borrowed;
                                NULL: the host adds them */
    keel_arenas *arenas; /* shared with other programs of these lanes, which never run at the same
                            time; borrowed; NULL: its own */
} keel_program_options;

/* Which kernel makes the gradient of a weight tile by tile. */
struct keel_tiled {
    int node, weight; /* node -1: gradients are made by workers, and added */
    keel_tile_run run;
    const void *plan;
    int64_t most; /* elements at a time, if the weight is moved in between */
};

/* A node that reads state which earlier calls of the same step move: see moved.c. */
typedef struct keel_moved {
    int node, n_mover, last; /* last: the mover whose records are merged last */
    int *mover;              /* [n_mover] nodes, in the order in which they move it */
    int64_t at;              /* doubles into workspace.merged: copies of its state */
    void **weight; /* [2 * n_worker][n_weight] what its calls read, then the host's copies */
} keel_moved;

/* What ran a pass of a node, for reports: see keel_program_kernel. */
struct keel_ran {
    bool prepared;
    bool widened;              /* on float32 copies of its values */
    const keel_kernel *kernel; /* of the first preparation; NULL: the reference */
};

/* The batch of the step that comes next, if that is known. Workers on devices copy its rows there
 * while the step before it runs. */
typedef struct keel_coming {
    uint64_t batch; /* its number; 0: not known */
    int64_t rows;
    const void *
        *input; /* [graph->n_input] as keel_program.input; NULL entry: known when it begins */
    /* Rows must be read first, by any thread; NULL: they are there. */
    void (*read)(const void *context, int64_t first, int64_t end);
    const void *context;
} keel_coming;

typedef struct keel_program {
    keel_graph *graph; /* owned */
    keel_schedule schedule;
    const keel_lanes *lanes; /* borrowed */
    keel_store *store;       /* borrowed */
    uint64_t user;           /* of packed copies in the store */
    keel_arenas *arenas, *own_arenas;
    int64_t moved; /* arenas->moved when the pointers were set */
    keel_program_options options;
    bool *trains;   /* [n_weight] the weights that it trains; programs over one store may differ */
    int64_t n_grad; /* elements of workspace.grad: up to the last weight that is trained */
    keel_step_facts facts; /* of the running step */
    bool sums_there;       /* in the running step devices add up gradients: on_device_out.c */

    struct keel_tiled *tiled; /* [n_weight] */
    int64_t tile_scratch;     /* bytes that making one takes */
    int64_t tile_bytes;       /* of workspace.tiles */
    int64_t summand_bytes;    /* of a gradient in it: of the largest tile */

    keel_place *value, *grad, *again;   /* [n_value] again: of what is made again for backward */
    int *saved_at;                      /* [n_node + 1] its first saved value, of all nodes */
    int *weight_at;                     /* [n_node + 1] its first weight, of all nodes */
    void **weight;                      /* [weight_at[n_node]] in the store */
    keel_place *saved;                  /* [n_saved] of all nodes */
    bool *skip_forward, *skip_backward; /* [n_node] views that share memory */
    double *sums_room; /* to merge sums if a node has more than KEEL_SUMS_MAX; else NULL */
    int64_t sums_most; /* of such a node */
    int64_t *sums_at;  /* [n_node] doubles into workspace.sums */
    int64_t *merged_at, *merged_backward_at; /* [n_node] doubles into workspace.merged */
    keel_moved **moved_of; /* [n_node] NULL entry: the node reads its weights directly */
    int *sums_segment;     /* [n_node] where its sums are made */
    bool *area;            /* [n_segment] which workspace.record it writes to */
    int64_t record_doubles, row_doubles, sums_doubles, merged_doubles; /* per worker */
    int slots; /* the most records of a stack */

    keel_gradient *gradient; /* [n_weight] */
    int fold_slots;          /* of a stack of gradients: those that may be left; more are in fold */
    int64_t gradient_elements, fold_stride, fold_bytes; /* per worker */

    int64_t max_local_rows;
    int64_t rows_bytes, shard_bytes, values_bound, scratch_bytes; /* per worker */
    int64_t merge_bytes;        /* of scratch, that merging records takes */
    int64_t host_scratch_bytes; /* as scratch_bytes, of a worker with a device, of the host's */
    keel_workspace *workspace;  /* [n_worker] */
    int n_bound, bound_capacity;
    keel_bound **bound;
    struct keel_ran *ran; /* [n_node][KEEL_PASS_COUNT] */

    struct keel_across *across; /* what it exchanges with other processes; NULL: alone */
    keel_timing *timing;        /* borrowed; NULL: nothing is timed */

    int64_t slot_bytes;   /* of the optimizer, on each device */
    int64_t report_bytes; /* of each device to the host, on weights that it moves */
    int64_t kept_bytes;   /* of such weights and slots, on the host */
    bool checks_there;    /* devices move weights, and vote on gradients that they have whole */
    /* What else is written when a weight is moved, so that it can be prefetched: [n_moment] of
     * weight v begin at v * n_moment, each as long as the weight. Borrowed; NULL: nothing. */
    int n_moment;
    char *const *moment;

    /* while running */
    const void **input; /* [graph->n_input] */
    bool *absent;       /* [graph->n_input] steps to come are known not to have it */
    uint64_t given;     /* the number by which its batch was `coming`; 0: it was not */
    keel_coming coming;
    /* What worker 0 does while its device runs, before it waits for that; NULL: nothing. */
    void (*meanwhile)(void *context);
    void *meanwhile_for;
    /* What a worker without rows does where others run calls on the records of a node; NULL:
     * nothing. merged: {rows, the record of all rows} */
    void (*help)(const void *context, int node, const double *merged);
    const void *help_for;
    keel_failure *failure; /* [n_worker] */
    int n_output;
    keel_value *output; /* [n_output] */
} keel_program;

/* Compiles `graph`, which it takes over, also on failure. outputs: values that can be read after a
 * run. The store must have been laid out from the order of the training schedule; for inference,
 * from any order. KEEL_EUNSUP: an op cannot be trained; the error names its layer. */
keel_status keel_program_create(keel_program **out, keel_graph *graph, const keel_value *outputs,
                                int n_output, keel_store *store, const keel_lanes *lanes,
                                const keel_program_options *options);
void keel_program_destroy(keel_program *p);

/* The calls for a step of `rows`, prepared at the first request and found afterwards. Not during a
 * run. The calling thread must keep vendor libraries to one thread (keel_team_enter). */
keel_status keel_program_bind(keel_program *p, int64_t rows, const keel_bound **out);

/* When all row counts of the steps to come are bound: devices get graphs of their calls, which
 * steps replay (on_device_graphs.c). Steps of other row counts make theirs when they begin. */
keel_status keel_program_ready(keel_program *p);

/* Measures the scratch that a step of `rows` would need, without binding it. Prepares the kernels.
 */
keel_status keel_program_measure(keel_program *p, int64_t rows);

/* The name of the kernel that runs a pass of a node, or "reference", with ", widened" if values of
 * bfloat16 are widened for it; "from merged sums" if the weights' gradient is only read off those.
 * "" if the pass does not run or is not prepared yet. Returns out. */
enum { KEEL_KERNEL_NAME_MAX = 40 };
char *keel_program_kernel(const keel_program *p, int node, keel_pass pass,
                          char out[KEEL_KERNEL_NAME_MAX]);

/* Whether a pass of the node runs on its plain reference although that is slow: for products, and
 * for costly functions of many elements. */
bool keel_program_is_slow(const keel_program *p, int node);

/* The ops for which the devices have no kernel, so that their passes run on the host, on copies:
 * "resize, sort"; an empty text: there is none. Of the passes that are prepared. */
void keel_program_staged(const keel_program *p, keel_text *out);

/* A worker's part of a run: for each segment, its calls, and a meeting where the segment ends in
 * one. input [n_input]: the batch. After a call fails, the worker skips the rest of its work but
 * not its meetings. Returns the status; the text is in p->failure[worker]. */
keel_status keel_program_run(keel_program *p, const keel_bound *b, keel_team *team, int worker);

/* Before a run: whether the worker's rows of this batch are on its device already, so that nobody
 * needs to read them. */
bool keel_program_has_rows(const keel_program *p, int worker);

/* In a run: all workers meet. The wait is timed if timing is on. */
void keel_program_meet(const keel_program *p, keel_team *team, int worker);

/* In a run: all workers meet, one of them exchanges something with the other processes, and all
 * meet again. A failure is that of worker 0. Alone, nothing happens. */
void keel_program_meet_across(const keel_program *p, keel_team *team, int worker,
                              keel_status (*exchange)(void *context), void *context);

/* A part of the gradient of a tiled weight that is wanted: elements [first, first + count), written
 * to `grad`. checked, bad: see keel_tile_call; false before, or NULL. move: NULL, or these elements
 * are moved next, and the kernel may do it: see keel_tile_move. part: see keel_tile_call. */
typedef struct keel_tile_request {
    keel_variable variable;
    int64_t first, count;
    void *grad;
    bool *checked, *bad;
    keel_tile_move *move;
    keel_tile_part *part;
} keel_tile_request;

/* By one worker, after a run in which all workers have met: that gradient over all rows of the
 * step. */
void keel_program_tile(const keel_program *p, const keel_bound *b, int worker,
                       const keel_tile_request *r);
/* The same of a step that processes share: over the rows of this one, for each of its nodes. */
void keel_program_tile_nodes(const keel_program *p, const keel_bound *b, int worker,
                             keel_variable v, int64_t first, int64_t count, char *const *out);

/* After the worker's run: whether its inputs and gradients for tiled weights are so small that the
 * gradients of these weights can only be finite. */
bool keel_program_bounded(const keel_program *p, const keel_bound *b, int worker);

/* The rows of a value (or gradient), as the worker of the piece holds them. */
const void *keel_program_rows(const keel_program *p, const keel_place *at, const keel_piece *piece);
/* The rows of a piece in output `i`. */
const void *keel_program_output(const keel_program *p, int i, const keel_piece *piece);
/* The sums (loss, metrics) of a node over the rows of a finished run, in the order of the tree.
 * With more than KEEL_SUMS_MAX sums: one thread at a time. */
void keel_program_sums(const keel_program *p, const keel_bound *b, int node, double *sums);
/* The first row of the step whose loss was not finite in the last run; -1: none. */
int64_t keel_program_bad_row(const keel_program *p);
/* After the commit point, by one worker: ops move their state (BatchNorm's moving statistics). */
void keel_program_commit(keel_program *p, const keel_bound *b, int worker);

#endif
