/* Inside the graph room: which kernel runs a pass of a node. */
#ifndef KEEL_GRAPH_CHOOSE_H
#define KEEL_GRAPH_CHOOSE_H
#include "graph/program.h"

typedef struct keel_choice {
    /* what is asked for */
    const keel_node *node;
    keel_pass pass;
    int64_t rows;
    bool in_adds, weight_adds;
    bool narrow;         /* kernels for values held in the node's narrow type */
    bool widened;        /* the node is the float32 self of a narrow one */
    keel_device *device; /* kernels of its kind; NULL: of the host */
    bool tile;           /* the weight gradient tile by tile; pass is KEEL_WEIGHTS */
    keel_status (*derive)(void *context, keel_derived *want, const keel_derived **got);
    void *context;
    /* what was found */
    const keel_kernel *kernel; /* NULL: only the reference is left */
    keel_run run;              /* unless `tile` */
    keel_tile_run run_tile;
    void *plan;
    int64_t scratch;
} keel_choice;

/* Asks the kernels of the node's op: the one that was measured to be the fastest, then by priority.
 * If a kernel answers KEEL_EUNSUP the next one is asked; any other failure is returned. */
keel_status keel_choose_kernel(const keel_program_options *o, keel_choice *c);

/* Calls the kernel's prepare if the processor (or keel_cpu_limit) has what it needs. Otherwise
 * nothing of the kernel is called, and the answer is KEEL_EUNSUP. */
keel_status keel_kernel_prepare(const keel_kernel *k, keel_prepare *p);

#endif
