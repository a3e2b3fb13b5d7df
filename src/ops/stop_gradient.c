/* y = x; no gradient flows back. Keras: ops.stop_gradient. */
#ifndef REAL
#include "ops/infer.h"
#include <string.h>

#define REAL_FILE "ops/stop_gradient.c"
#include "ops/real.h"

const keel_op keel_op_stop_gradient = {
    .name = "stop_gradient",
    .infer = keel_infer_like,
    .forward = REALS(forward),
    .cases =
        (const keel_case[]){ { "10", NULL, NULL }, { "4,3,5", NULL, NULL }, { NULL, NULL, NULL } },
};
#else
static void REAL_(forward)(const keel_call *c)
{
    memcpy(c->out[0], c->in[0], (size_t)(c->rows * keel_row_count(&c->node->in[0])) * sizeof(REAL));
}
#endif
