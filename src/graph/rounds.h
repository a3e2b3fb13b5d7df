/* Records of rows go from process to process in rounds, and are merged on the way. In a round a few
 * blocks of consecutive processes join: before it, who belongs to a block has the largest nodes of
 * the step's tree (base/tree.h) inside the rows of that block; afterwards, those inside the rows of
 * all of them. In the end everybody has the root. Ten processes:
 *
 *     012 34 567 89    those of a block tell each other
 *     0123456789       0 tells 3, 5 and 8; 1 tells 4, 6 and 9; 2 tells 7; 3 tells 0, 5 and 8; 4
 *                      tells 1 and 2, which has no neighbour of its own in the block, 6, 7 and 9
 *
 * The additions are those of the tree, so no bit depends on the blocks. */
#ifndef KEEL_GRAPH_ROUNDS_H
#define KEEL_GRAPH_ROUNDS_H
#include "comm/comm.h"
#include "device/lanes.h"

/* With b blocks a process waits log P / log b times, and gets b - 1 messages each time. So the
 * fewest rounds are taken that join all by at most eight blocks, and in them the fewest blocks: up
 * to eight processes tell each other at once, and each of 1,024 sends 20 nodes in four rounds.
 *
 * Why eight is computed, by the costs of docs/simulate.md for the records of ResNet-50 between 4 to
 * 1,024 processes: with 25 Gbit/s and 50 us, two blocks take 1.9 to 2.6 times as long, and four up
 * to 1.8 times. Where bytes cost more than waits (1 Gbit/s), four would take up to 22 % less. Four
 * or eight processes of MPI on two cores were equally fast with two, four and eight. */
enum {
    KEEL_ROUND_BLOCKS = 8,
    KEEL_ROUNDS_MAX = 4, /* 8^4 are more than KEEL_PROCESSES_MAX */
    KEEL_ROUND_TO_MAX = 2 * (KEEL_ROUND_BLOCKS - 1),
    KEEL_ROUND_WITH_MAX = KEEL_ROUND_TO_MAX + KEEL_ROUND_BLOCKS - 1
};

typedef struct keel_round {
    int n_block, own;                      /* blocks, and which of them this process belongs to */
    int from[KEEL_ROUND_BLOCKS];           /* the process that sends the nodes of each */
    int nodes[KEEL_ROUND_BLOCKS];          /* of each */
    int n_to, to[KEEL_ROUND_TO_MAX];       /* who gets those of the own block from here */
    int n_with, with[KEEL_ROUND_WITH_MAX]; /* all of both */
    /* Of the nodes of all blocks, one after another: see keel_tree_closes. */
    uint8_t closes[KEEL_ROUND_BLOCKS * KEEL_TREE_NODES_MAX];
} keel_round;

typedef struct keel_rounds {
    int n;
    keel_round round[KEEL_ROUNDS_MAX];
} keel_rounds;

/* Those of this process in a step of so many rows. */
void keel_rounds_plan(keel_rounds *out, const keel_lanes *l, int64_t rows);
/* How many nodes it sends, counted for each process that gets them. */
int64_t keel_rounds_sent(const keel_rounds *r);

/* The most nodes that they ever have at a time. */
int64_t keel_rounds_room(const keel_lanes *l, int64_t max_rows);

/* What an exchange with few processes needs: entries are 0 between two exchanges. */
typedef struct keel_round_tables {
    const void **send; /* [n_process], as the next three */
    void **receive;
    size_t *send_bytes, *receive_bytes;
} keel_round_tables;
keel_status keel_round_tables_make(keel_round_tables *x, int n_process);
void keel_round_tables_free(keel_round_tables *x);

/* Merges the node `right` into its neighbour `left`. */
typedef void (*keel_node_join)(const void *context, double *left, const double *right);

/* Nodes on their way through the rounds, while other exchanges are under way, too; but one set of
 * nodes at a time. node [keel_rounds_room][length]: begins with the nodes of this process, and in
 * the end with the root. KEEL_EREMOTE: a process is lost. */
typedef struct keel_rounds_way { /* the caller fills all but the last */
    const keel_rounds *rounds;   /* NULL: nothing is under way */
    keel_comm *comm;
    const keel_round_tables *tables;
    double *node;
    int64_t length;
    keel_node_join join;
    const void *context;
    int at; /* the round that is under way */
} keel_rounds_way;
keel_status keel_rounds_begin(keel_rounds_way *w);
/* Moves them on as far as it goes without waiting. */
keel_status keel_rounds_look(keel_rounds_way *w);
keel_status keel_rounds_end(keel_rounds_way *w);

/* All of it. */
keel_status keel_rounds_run(const keel_rounds *r, keel_comm *c, const keel_round_tables *x,
                            double *node, int64_t length, keel_node_join join, const void *context);

#endif
