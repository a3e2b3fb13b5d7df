/* One convolution, or one of its backward passes, as a graph of cuDNN, with the engine that runs
 * it: what cuDNN is told, and the only file beside this that knows its words. */
#ifndef KEEL_OPS_CUDA_CONV_GRAPH_H
#define KEEL_OPS_CUDA_CONV_GRAPH_H
#include "ops/cuda/_conv.h"

enum conv_direction { CONV_FORWARD, CONV_DATA, CONV_FILTER }; /* y; dx; dw */

struct conv_graph {
    conv_direction direction;
    const cuda_geometry *g;
    int64_t rows;
    keel_dtype type;          /* of x, y and w */
    int aligned_x, aligned_y; /* bytes; w has 16 */
    bool adds;                /* to what is there */
    keel_float32 float32;
};

struct conv_plan;

/* KEEL_EUNSUP: there is no cuDNN, or no engine of it fits. *scratch: bytes of workspace. */
keel_status conv_plan_create(const keel_prepare *p, const conv_graph *x, conv_plan **out,
                             int64_t *scratch);
void conv_plan_destroy(conv_plan *plan); /* NULL is allowed */
/* false: it could not be launched, which the call's step knows by now. */
bool conv_plan_run(const keel_call *c, conv_plan *plan, const void *x, const void *w, const void *y,
                   void *workspace);

#endif
