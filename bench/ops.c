/* bench_ops [--bfloat16] [OP [INPUT [KERNEL]]]: every kernel of every op on one core, against the
 * op's reference; --bfloat16: only on values held in that. INPUT is how the shape begins, KERNEL
 * how the names of the only kernels begin.
 *
 * A line for each pass and kernel: median and least time of a call over 15 turns (kernels take
 * turns, each turn at least 5 ms; time of the processor, which programs beside do not lengthen),
 * speed of the median in GFLOP/s (convolution, dense, matmul, attention) or in GB/s of values read
 * and written once. The reference takes a turn only when it is quick. A kernel's passes on values
 * held in bfloat16 follow its others: "avx512 bf16". */
#include "base/memory.h"
#include "device/cpu/cpu.h"
#include "graph/choose.h"
#include "ops/cases.h"
#include "ops/dot_product_attention.h"
#include "ops/op.h"
#include "tensor/bfloat16.h"
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { TURNS = 15, KERNELS_MAX = 12, IN_MAX = 4, WEIGHTS_MAX = 8, SAVED_MAX = 4 };

static const struct work {
    const char *op;
    int64_t rows;
    keel_case c;
} works[] = {
    { "conv2d", 8, { "56,56,64", "3,3,64,64|64", "pad 1,1,1,1" } },
    { "conv2d", 8, { "28,28,128", "3,3,128,128|128", "pad 1,1,1,1" } },
    { "conv2d", 8, { "14,14,256", "3,3,256,256|256", "pad 1,1,1,1" } },
    { "conv2d", 8, { "7,7,512", "3,3,512,512|512", "pad 1,1,1,1" } },
    { "conv2d", 32, { "26,26,32", "3,3,32,64|64", NULL } },
    { "conv2d", 8, { "32,32,16", "3,3,16,32|32", NULL } },
    { "conv2d", 8, { "32,32,32", "3,3,32,32|32", NULL } },
    { "conv2d", 8, { "56,56,64", "1,1,64,256|256", NULL } },
    { "conv2d", 8, { "28,28,512", "1,1,512,128|128", NULL } },
    { "conv2d", 4, { "224,224,3", "7,7,3,64|64", "strides 2,2 pad 3,3,3,3" } },
    { "conv2d", 32, { "28,28,1", "3,3,1,32|32", NULL } },
    { "conv2d", 32, { "13,13,32", "3,3,32,64|64", NULL } },
    { "conv2d", 16, { "100,100,3", "3,3,3,32|32", "pad 1,1,1,1" } },
    { "conv2d", 8, { "58,58,64", "3,3,64,128", "strides 2,2" } },
    { "conv2d", 8, { "56,56,64", "3,3,64,128", "strides 2,2 pad 1,1,1,1" } },
    { "conv2d", 8, { "28,28,128", "3,3,128,256", "strides 2,2 pad 1,1,1,1" } },
    { "conv2d", 8, { "14,14,256", "3,3,256,512", "strides 2,2 pad 1,1,1,1" } },
    { "conv2d", 8, { "64,64,64", "4,4,64,128|128", "strides 2,2 pad 1,1,1,1" } },
    { "conv2d", 8, { "16,16,256", "4,4,256,512", "strides 2,2 pad 1,1,1,1" } },
    { "conv2d", 8, { "32,32,128", "2,2,128,128", NULL } },
    { "conv2d", 16, { "4000,1,16", "3,1,16,32|32", "pad 1,1,0,0" } },
    { "conv2d", 16, { "2000,1,32", "3,1,32,64|64", "pad 1,1,0,0" } },
    { "conv2d", 16, { "1000,1,64", "3,1,64,128|128", "pad 1,1,0,0" } },
    { "conv2d", 16, { "500,1,128", "3,1,128,128|128", "pad 1,1,0,0" } },
    { "conv2d", 16, { "2000,1,32", "1,1,32,64|64", NULL } },
    { "conv2d", 16, { "500,1,256", "3,1,256,256|256", "pad 1,1,0,0" } },
    { "conv2d", 8, { "56,56,64", "1,1,64,64", NULL } },
    { "conv2d", 8, { "56,56,256", "1,1,256,64", NULL } },
    { "conv2d", 8, { "28,28,128", "1,1,128,512", NULL } },
    { "conv2d", 8, { "14,14,1024", "1,1,1024,256", NULL } },
    { "conv2d", 8, { "14,14,256", "1,1,256,1024", NULL } },
    { "conv2d", 8, { "7,7,2048", "1,1,2048,512", NULL } },
    { "conv2d", 8, { "7,7,512", "1,1,512,2048", NULL } },
    { "conv2d", 8, { "56,56,256", "1,1,256,512", "strides 2,2" } },
    { "conv2d", 8, { "14,14,1024", "1,1,1024,2048", "strides 2,2" } },
    { "conv2d", 8, { "112,112,16", "1,1,16,96", NULL } },
    { "conv2d", 8, { "56,56,144", "1,1,144,24", NULL } },
    { "conv2d", 8, { "14,14,96", "1,1,96,576", NULL } },
    { "conv2d", 8, { "7,7,960", "1,1,960,160", NULL } },
    { "conv2d", 8, { "56,56,128", "3,3,4,128", "groups 32 pad 1,1,1,1" } },
    { "conv2d", 8, { "14,14,512", "3,3,16,512", "groups 32 pad 1,1,1,1" } },
    { "conv2d", 8, { "8000,1,1", "3,1,1,16|16", "pad 1,1,0,0" } },
    { "conv2d", 8, { "8000,1,16", "3,1,16,16|16", "pad 1,1,0,0" } },
    { "conv2d", 8, { "4000,1,32", "3,1,32,32|32", "pad 1,1,0,0" } },
    { "conv2d", 8, { "2000,1,64", "3,1,64,64|64", "pad 1,1,0,0" } },
    { "conv2d", 8, { "1000,1,128", "3,1,128,128|128", "pad 1,1,0,0" } },
    { "conv2d", 8, { "32,32,32", "5,5,32,128|128", "pad 2,2,2,2" } },
    { "conv2d", 8, { "32,32,64", "5,5,64,128|128", "strides 2,2 pad 1,2,1,2" } },
    { "conv2d", 8, { "30,30,64", "7,7,64,64|64", "pad 3,3,3,3" } },
    { "conv3d", 4, { "16,28,28,32", "3,3,3,32,64|64", "pad 1,1,1,1,1,1" } },
    { "conv3d", 1, { "30,64,64,1", "3,3,3,1,64|64", "pad 1,1,1,1,1,1" } },
    { "conv_transpose",
      8,
      { "1,28,28,128", "1,4,4,64,128|64", "strides 1,2,2 pad 0,0,1,1,1,1 to 1,56,56" } },
    { "conv_transpose",
      8,
      { "1,28,28,128", "1,3,3,64,128|64", "strides 1,2,2 pad 0,0,0,1,0,1 to 1,56,56" } },
    { "conv_transpose", 4, { "1,64,64,64", "1,3,3,64,64|64", "pad 0,0,1,1,1,1 to 1,64,64" } },
    { "multiply", 8, { "56,56,64|56,56,64", NULL, NULL } },
    { "multiply", 8, { "56,56,64|1,1,64", NULL, NULL } },
    { "multiply", 8, { "14,14,672|1,1,672", NULL, NULL } },
    { "normalization", 8, { "224,224,3", NULL, "last" } },
    { "slice", 8, { "58,58,64", NULL, "begin 1,1,0 count 56,56,64" } },
    { "upsample", 8, { "56,28,64", NULL, "axis 1" } },
    { "permute", 8, { "56,56,64", NULL, "from 2,0,1" } },
    { "permute", 8, { "200,2,32", NULL, "from 1,2,0" } },
    { "reduce", 8, { "28,28,256", NULL, "to 2 over 0,1" } },
    { "prelu", 8, { "56,56,64", "1,1,64", NULL } },
    { "depthwise_conv2d", 8, { "112,112,32", "3,3,32,1", "pad 1,1,1,1" } },
    { "depthwise_conv2d", 8, { "113,113,96", "3,3,96,1", "strides 2,2" } },
    { "depthwise_conv2d", 8, { "56,56,144", "3,3,144,1", "pad 1,1,1,1" } },
    { "depthwise_conv2d", 8, { "28,28,192", "3,3,192,1", "pad 1,1,1,1" } },
    { "depthwise_conv2d", 8, { "14,14,576", "3,3,576,1", "strides 2,2 pad 0,1,0,1" } },
    { "depthwise_conv2d", 8, { "14,14,576", "3,3,576,1", "pad 1,1,1,1" } },
    { "depthwise_conv2d", 8, { "7,7,960", "3,3,960,1", "pad 1,1,1,1" } },
    { "depthwise_conv2d", 8, { "56,56,128", "3,3,128,1|128", "pad 1,1,1,1" } },
    { "depthwise_conv2d", 8, { "14,14,512", "3,3,512,1|512", "pad 1,1,1,1" } },
    { "depthwise_conv2d", 32, { "32,32,32", "3,3,32,2", "pad 1,1,1,1" } },
    { "depthwise_conv2d", 32, { "64,128,8", "64,1,8,2", NULL } },
    { "depthwise_conv2d", 32, { "33,33,32", "3,3,32,2", "strides 2,2" } },
    { "depthwise_conv2d", 32, { "34,34,32", "5,5,32,3", NULL } },
    { "depthwise_conv2d", 32, { "35,35,32", "3,3,32,4", "dilation 2,2" } },
    { "depthwise_conv2d", 32, { "36,36,3", "3,3,3,8", "pad 1,1,1,1" } },
    { "depthwise_conv2d", 32, { "1,250,16", "1,9,16,2", "pad 0,0,4,4" } },
    { "depthwise_conv2d", 8, { "59,59,144", "5,5,144,1", "strides 2,2" } },
    { "depthwise_conv2d", 8, { "28,28,240", "5,5,240,1", "pad 2,2,2,2" } },
    { "depthwise_conv2d", 8, { "29,29,240", "3,3,240,1", "strides 2,2" } },
    { "depthwise_conv2d", 8, { "14,14,672", "5,5,672,1", "pad 2,2,2,2" } },
    { "depthwise_conv2d", 8, { "17,17,672", "5,5,672,1", "strides 2,2" } },
    { "depthwise_conv2d", 8, { "7,7,1152", "5,5,1152,1", "pad 2,2,2,2" } },
    { "depthwise_conv2d", 4, { "56,56,96", "7,7,96,1|96", "pad 3,3,3,3" } },
    { "depthwise_conv2d", 4, { "14,14,384", "7,7,384,1|384", "pad 3,3,3,3" } },
    { "depthwise_conv2d", 4, { "7,7,768", "7,7,768,1|768", "pad 3,3,3,3" } },
    { "dense", 64, { "784", "784,512|512", NULL } },
    { "dense", 32, { "512", "512,512|512", NULL } },
    { "dense", 32, { "512", "512,10|10", NULL } },
    { "dense", 32, { "784", "784,512|512", NULL } },
    { "dense", 128, { "784", "784,512|512", NULL } },
    { "dense", 128, { "512", "512,512|512", NULL } },
    { "dense", 8, { "200704", "200704,1|1", NULL } },
    { "dense", 6, { "256,384", "384,384|384", NULL } },
    { "dense", 6, { "256,384", "384,1536|1536", NULL } },
    { "dense", 6, { "256,1536", "1536,384|384", NULL } },
    { "dense", 32, { "200,128", "128,256|256", NULL } },
    { "max_pool2d", 32, { "26,26,32", NULL, NULL } },
    { "max_pool2d", 32, { "11,11,64", NULL, NULL } },
    { "max_pool2d", 8, { "112,112,64", NULL, "pool 3,3 strides 2,2 pad 0,1,0,1" } },
    { "average_pool2d", 8, { "56,56,64", NULL, NULL } },
    { "global_average_pool2d", 16, { "7,7,2048", NULL, NULL } },
    { "relu", 8, { "112,112,96", NULL, "max_value 6" } },
    { "relu", 8, { "56,56,64", NULL, NULL } },
    { "relu", 8, { "14,14,64", NULL, NULL } },
    { "relu6", 8, { "56,56,64", NULL, NULL } },
    { "leaky_relu", 8, { "56,56,64", NULL, NULL } },
    { "sigmoid", 8, { "14,14,64", NULL, NULL } },
    { "tanh", 8, { "14,14,64", NULL, NULL } },
    { "silu", 8, { "56,56,64", NULL, NULL } },
    { "gelu", 8, { "14,14,64", NULL, NULL } },
    { "rescaling", 16, { "100,100,3", NULL, NULL } },
    { "zero_pad2d", 8, { "112,112,96", NULL, "pad 0,1,0,1" } },
    { "zero_pad2d", 8, { "56,56,64", NULL, "pad 1,1,1,1" } },
    { "concatenate", 8, { "28,28,256|28,28,32", NULL, NULL } },
    { "add", 8, { "56,56,256|56,56,256", NULL, NULL } },
    { "add", 8, { "56,56,64|56,56,64", NULL, NULL } },
    { "batch_norm", 8, { "112,112,96", "96|96|96|96", NULL } },
    { "batch_norm", 8, { "56,56,64", "64|64|64|64", NULL } },
    { "batch_norm", 8, { "14,14,1024", "1024|1024|1024|1024", NULL } },
    { "batch_norm", 8, { "56,56,256", "256|256|256|256", "relu" } },
    { "batch_norm", 8, { "112,112,96", "96|96|96|96", "silu" } },
    { "batch_norm", 8, { "28,28,512|28,28,512", "512|512|512|512", "relu" } },
    { "batch_norm", 8, { "14,14,24|14,14,24", "24|24|24|24", NULL } },
    { "batch_norm", 32, { "25,25,16", "16|16|16|16", NULL } },
    { "softmax", 64, { "10", NULL, NULL } },
    { "softmax", 64, { "1000", NULL, NULL } },
    { "softmax", 64, { "100,64", NULL, "axis 0" } },
    { "softmax", 64, { "256,1", NULL, "axis 0" } },
    { "log_softmax", 64, { "10", NULL, NULL } },
    { "log_softmax", 64, { "1000", NULL, NULL } },
    { "sparsemax", 64, { "10", NULL, NULL } },
    { "sparsemax", 64, { "1000", NULL, NULL } },
    { "glu", 64, { "4096", NULL, NULL } },
    { "tanh_shrink", 64, { "4096", NULL, NULL } },
    { "squareplus", 64, { "4096", NULL, "b 4" } },
    { "dropout", 64, { "4096", NULL, NULL } },
    { "dropout", 8, { "14,14,112", NULL, "noise 1,1,1" } },
    { "matmul", 8, { "4,128,64|4,64,128", NULL, NULL } },
    { "matmul", 32, { "8,20,16|8,16,20", NULL, NULL } },
    { "matmul", 64, { "10,10|10,10", NULL, NULL } },
    { "dot_product_attention", 8, { "200,2,32|200,2,32|200,2,32", NULL, NULL } },
    { "dot_product_attention", 2, { "256,6,64|256,6,64|256,6,64", NULL, "causal" } },
    { "dot_product_attention", 2, { "256,6,64|256,6,64|256,6,64", NULL, "causal rate 0.1" } },
    { "dot_product_attention", 4, { "128,4,64|128,4,64|128,4,64|1,1,128", NULL, NULL } },
    { "dot_product_attention", 1, { "1024,4,64|1024,4,64|1024,4,64", NULL, NULL } },
    { "dot_product_attention", 8, { "50,8,8|67,8,8|67,8,8", NULL, NULL } },
};

/* After the passes: the weight gradients tile by tile. */
enum { TILES = KEEL_PASS_COUNT, TILE = 16384 };
static const char *const pass_name[] = { "forward", "backward",  "weights",
                                         "partial", "partial_b", "tiles" };
static bool narrow_only;
static const char *only; /* NULL: all kernels */

typedef struct bound { /* a call and what it is bound to */
    keel_node node;
    keel_call call;
    keel_spec out_spec; /* of narrow */
    const void *in[IN_MAX], *weight[WEIGHTS_MAX], *out_grad[1];
    void *in_grad[IN_MAX], *out[1], *saved[SAVED_MAX], *weight_grad[WEIGHTS_MAX];
} bound;

typedef struct setup {  /* a node and the memory its calls are bound to */
    bound wide, narrow; /* narrow: values are bfloat16, the rest is wide's */
    keel_spec in_spec[IN_MAX], narrow_spec[IN_MAX], weight_spec[WEIGHTS_MAX];
    char args[256];
    keel_step_facts step;
    bool in_adds[IN_MAX];
    double *record, *merged, *merged_backward;
} setup;

typedef struct contender {
    char name[24];
    keel_run run;
    keel_tile_run tile; /* instead of run, for TILES */
    const bound *on;
    const keel_kernel *kernel; /* NULL: the reference */
    void *plan, *scratch;
    int64_t repeats;
    double us[TURNS];
} contender;

static double now_us(void)
{
    struct timespec t;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return (double)t.tv_sec * 1e6 + (double)t.tv_nsec * 1e-3;
}

static void die(const char *what)
{
    fprintf(stderr, "bench_ops: %s: %s\n", what, keel_error());
    exit(1);
}

static void *numbers(int64_t count)
{
    static uint32_t seed = 1;
    float *f = keel_aligned_calloc((size_t)count, sizeof *f);
    if (!f) die("memory");
    for (int64_t i = 0; i < count; i++) {
        seed = seed * 1664525u + 1013904223u;
        f[i] = (float)(seed >> 8) / 16777216;
    }
    return f;
}

static keel_run reference_of(const keel_op *op, keel_pass pass)
{
    const keel_run all[] = { op->forward[0], op->backward[0], op->weights[0], op->partial[0],
                             op->partial_backward[0] };
    return all[pass];
}

/* The reference makes the records that other passes read. */
static void run_once(setup *s, keel_pass pass)
{
    const keel_run run = reference_of(s->wide.node.op, pass);
    keel_call c = s->wide.call;
    c.scratch = keel_aligned_calloc((size_t)s->wide.node.scratch + 1, 1);
    if (!c.scratch) die("memory");
    run(&c);
    keel_free(c.scratch);
}

static void *narrowed(const void *from, int64_t count)
{
    keel_bf16 *to = keel_aligned_calloc((size_t)count, sizeof *to);
    if (!to) die("memory");
    keel_bf16_narrow(to, from, count);
    return to;
}

static void open_wide(setup *s, const struct work *w, const keel_op *op)
{
    bound *b = &s->wide;
    keel_node *n = &b->node;
    *n = (keel_node){ .op = op,
                      .args = s->args,
                      .layer = "bench",
                      .training = true,
                      .backward = true,
                      .real = KEEL_FLOAT32,
                      .held = KEEL_FLOAT32,
                      .in = s->in_spec,
                      .weight = s->weight_spec };
    if (op->args_for_case) op->args_for_case(s->args, w->c.args);
    n->n_in = keel_case_shapes(w->c.in, KEEL_FLOAT32, s->in_spec, IN_MAX);
    n->n_weight = keel_case_shapes(w->c.weights, KEEL_FLOAT32, s->weight_spec, WEIGHTS_MAX);
    if (keel_node_infer(n) < 0 || n->n_saved > SAVED_MAX) die(op->name);
    keel_call *c = &b->call;
    *c = (keel_call){ .node = n,
                      .step = &s->step,
                      .rows = w->rows,
                      .in = b->in,
                      .out = b->out,
                      .out_grad = b->out_grad,
                      .saved = b->saved,
                      .weight = b->weight,
                      .weight_grad = b->weight_grad,
                      .in_grad = b->in_grad,
                      .in_adds = s->in_adds };
    for (int i = 0; i < n->n_in; i++) {
        b->in[i] = numbers(w->rows * keel_row_count(&s->in_spec[i]));
        b->in_grad[i] = numbers(w->rows * keel_row_count(&s->in_spec[i]));
    }
    for (int i = 0; i < n->n_weight; i++) {
        b->weight[i] = numbers(keel_row_count(&n->weight[i]));
        b->weight_grad[i] = numbers(keel_row_count(&n->weight[i]));
    }
    for (int i = 0; i < n->n_saved; i++)
        b->saved[i] = numbers(w->rows * keel_row_count(&n->saved[i]));
    b->out[0] = numbers(w->rows * keel_row_count(&n->out[0]));
    b->out_grad[0] = numbers(w->rows * keel_row_count(&n->out[0]));
}

static void open_narrow(setup *s, int64_t rows)
{
    bound *b = &s->narrow;
    *b = s->wide;
    b->node.held = KEEL_BFLOAT16;
    b->out_spec = (keel_spec){ KEEL_BFLOAT16, s->wide.node.out[0].shape };
    b->node.out = &b->out_spec;
    b->node.in = s->narrow_spec;
    b->call.node = &b->node;
    b->call.in = b->in;
    b->call.in_grad = b->in_grad;
    b->call.out = b->out;
    b->call.out_grad = b->out_grad;
    for (int i = 0; i < b->node.n_in; i++) {
        s->narrow_spec[i] = (keel_spec){ KEEL_BFLOAT16, s->in_spec[i].shape };
        b->in[i] = narrowed(b->in[i], rows * keel_row_count(&s->in_spec[i]));
        b->in_grad[i] = narrowed(b->in_grad[i], rows * keel_row_count(&s->in_spec[i]));
    }
    b->out[0] = narrowed(b->out[0], rows * keel_row_count(&b->out_spec));
    b->out_grad[0] = narrowed(b->out_grad[0], rows * keel_row_count(&b->out_spec));
}

static void open_setup(setup *s, const struct work *w, const keel_op *op)
{
    *s = (setup){ .step = { .seed = 1, .rows = w->rows } };
    open_wide(s, w, op);
    const keel_node *n = &s->wide.node;
    s->record =
        keel_calloc((size_t)((n->partial + n->partial_backward) * w->rows) + 1, sizeof(double));
    s->merged = keel_calloc((size_t)n->merged + 1, sizeof(double));
    s->merged_backward = keel_calloc((size_t)n->merged_backward + 1, sizeof(double));
    if (!s->record || !s->merged || !s->merged_backward) die("memory");
    s->wide.call.partial = s->record;
    s->wide.call.merged = s->wide.call.merged_forward = s->merged;
    if (n->partial > 0) {
        run_once(s, KEEL_PARTIAL);
        keel_node_merge(n, false, s->record, w->rows, s->merged);
        run_once(s, KEEL_PARTIAL_BACKWARD);
        keel_node_merge(n, true, s->record, w->rows, s->merged_backward);
    }
    run_once(s, KEEL_FORWARD);
    open_narrow(s, w->rows);
}

static void close_values(bound *b)
{
    for (int i = 0; i < IN_MAX; i++) {
        keel_free((void *)b->in[i]);
        keel_free(b->in_grad[i]);
    }
    keel_free(b->out[0]);
    keel_free((void *)b->out_grad[0]);
}

static void close_setup(setup *s)
{
    bound *b = &s->wide;
    close_values(b);
    close_values(&s->narrow);
    for (int i = 0; i < WEIGHTS_MAX; i++) {
        keel_free((void *)b->weight[i]);
        keel_free(b->weight_grad[i]);
    }
    for (int i = 0; i < SAVED_MAX; i++) keel_free(b->saved[i]);
    keel_node_clear(&b->node);
    keel_free(s->record);
    keel_free(s->merged);
    keel_free(s->merged_backward);
}

static keel_derived copies[KERNELS_MAX];
static int n_copies;
static keel_status derive(void *context, keel_derived *want, const keel_derived **got)
{
    const setup *s = context;
    want->data = keel_aligned_calloc(want->bytes, 1);
    if (!want->data || n_copies == KERNELS_MAX) die("memory");
    want->refresh(want, s->wide.call.weight[want->weight]);
    copies[n_copies] = *want;
    *got = &copies[n_copies++];
    return KEEL_OK;
}

/* All weights, rows in two spans as two workers hold them. */
static void run_tiles(const contender *k)
{
    const keel_call *c = &k->on->call;
    const keel_node *n = &k->on->node;
    const int64_t half = c->rows / 2, size = (int64_t)keel_dtype_size(n->held);
    const keel_span span[] = {
        { c->in[0], c->out_grad[0], half },
        { (const char *)c->in[0] + half * keel_row_count(&n->in[0]) * size,
          (const char *)c->out_grad[0] + half * keel_row_count(&n->out[0]) * size, c->rows - half },
    };
    for (int w = 0; w < n->n_weight; w++) {
        const keel_shape *shape = &n->weight[w].shape;
        const int64_t last = shape->dim[shape->rank - 1], all = keel_row_count(&n->weight[w]);
        const int64_t tile = last < TILE ? TILE / last * last : last;
        for (int64_t at = 0; at < all; at += tile) {
            const keel_tile_call t = { .node = n,
                                       .n_span = 2,
                                       .span = span,
                                       .weight = w,
                                       .first = at,
                                       .count = all - at < tile ? all - at : tile,
                                       .grad = (float *)c->weight_grad[w] + at,
                                       .plan = k->plan,
                                       .scratch = k->scratch,
                                       .scratch_ready = at > 0 };
            k->tile(&t);
        }
    }
}

static double turn(const setup *s, int pass, const contender *k, int64_t repeats)
{
    keel_call c = k->on->call;
    c.merged = pass == KEEL_BACKWARD ? s->merged_backward : s->merged;
    c.plan = k->plan;
    c.scratch = k->scratch;
    const double start = now_us();
    for (int64_t i = 0; i < repeats; i++)
        if (k->tile)
            run_tiles(k);
        else
            k->run(&c);
    return (now_us() - start) / (double)repeats;
}

/* Two products of what is seen; backward five, as it works out the scores again. */
static double flop_of_attention(const bound *b, int pass)
{
    const keel_node *n = &b->node;
    const keel_dot_product_attention_args *a = n->args;
    const keel_attention_dims d =
        keel_attention_dims_of(&n->in[0].shape, &n->in[1].shape, &n->in[2].shape);
    double seen = 0;
    for (int64_t t = 0; t < d.t; t++) {
        int64_t first, end;
        keel_seen_range(&a->seen, t, d.s, &first, &end);
        seen += (double)(end - first);
    }
    const double product = (double)(b->call.rows * d.outer * d.heads) * seen;
    return pass == KEEL_FORWARD ? product * 2 * (double)(d.d + d.v)
                                : product * 2 * (double)(3 * d.d + 2 * d.v);
}

/* FLOP of a pass, or 0: it is judged by bytes. */
static double flop_of(const bound *b, int pass)
{
    const keel_node *n = &b->node;
    if (!strcmp(n->op->name, "dot_product_attention")) return flop_of_attention(b, pass);
    if (!strcmp(n->op->name, "matmul"))
        return (pass == KEEL_FORWARD ? 2 : 4) * (double)b->call.rows *
               (double)keel_row_count(&n->out[0]) *
               (double)n->in[0].shape.dim[n->in[0].shape.rank - 1];
    if (!strstr(n->op->name, "conv2d") && strcmp(n->op->name, "dense") != 0) return 0;
    const keel_shape *w = &n->weight[0].shape;
    const double taps = (double)keel_row_count(&n->weight[0]) / (double)w->dim[w->rank - 1];
    const bool depthwise = strstr(n->op->name, "depthwise") != NULL;
    const double each = depthwise ? (double)(w->dim[0] * w->dim[1]) : taps;
    return 2 * (double)b->call.rows * (double)keel_row_count(&n->out[0]) * each;
}

static double bytes_of(const bound *b, int pass)
{
    const keel_node *n = &b->node;
    const double each = (double)keel_dtype_size(n->held);
    double in = 0, saved = 0;
    const double out = (double)keel_row_count(&n->out[0]) * each;
    for (int i = 0; i < n->n_in; i++) in += (double)keel_row_count(&n->in[i]) * each;
    for (int i = 0; i < n->n_saved; i++)
        saved += (double)keel_row_count(&n->saved[i]) * (double)keel_dtype_size(n->saved[i].dtype);
    double bytes = in + out + saved;
    if (pass == KEEL_PARTIAL) bytes = in;
    if (pass == KEEL_PARTIAL_BACKWARD) bytes = in + out;
    if (pass == KEEL_BACKWARD) {
        if (n->op->backward_reads & KEEL_READS_IN) bytes += in;
        if (n->op->backward_reads & (KEEL_READS_OUT | KEEL_READS_FIRST_OUT)) bytes += out;
    }
    return bytes * (double)b->call.rows;
}

static int by_value(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return x < y ? -1 : x > y;
}

/* The kernel on float32 or on bfloat16, where it runs the pass. */
static int contender_of(setup *s, int pass, const keel_kernel *kernel, const bound *on,
                        contender *k)
{
    const bool narrow = on->node.held == KEEL_BFLOAT16;
    const bool tiles = pass == TILES;
    const keel_run run = tiles ? NULL : narrow ? kernel->narrow[pass] : kernel->run[pass];
    const keel_tile_run tile = !tiles ? NULL : narrow ? kernel->narrow_tile : kernel->weights_tile;
    keel_prepare p = { .node = &on->node,
                       .pass = tiles ? KEEL_WEIGHTS : (keel_pass)pass,
                       .rows = on->call.rows,
                       .derive = derive,
                       .context = s };
    if ((!run && !tile) || (narrow_only && !narrow) || keel_kernel_prepare(kernel, &p) < 0)
        return 0;
    *k = (contender){ .run = run,
                      .tile = tile,
                      .on = on,
                      .kernel = kernel,
                      .plan = p.plan,
                      .scratch = keel_aligned_calloc((size_t)p.scratch + 64, 1) };
    snprintf(k->name, sizeof k->name, "%s%s", kernel->name, narrow ? " bf16" : "");
    return 1;
}

static int contenders_of(setup *s, int pass, contender *k)
{
    const keel_op *op = s->wide.node.op;
    int n = 0;
    if (!narrow_only && !only)
        k[n++] =
            (contender){ .name = "reference",
                         .run = pass == TILES ? NULL : reference_of(op, pass),
                         .tile = pass == TILES ? op->weights_tile[0] : NULL,
                         .on = &s->wide,
                         .scratch = keel_aligned_calloc((size_t)s->wide.node.scratch + 64, 1) };
    for (int i = 0; keel_kernels[i] && n + 1 < KERNELS_MAX; i++) {
        if (keel_kernels[i]->op != op) continue;
        if (only && strncmp(only, keel_kernels[i]->name, strlen(only)) != 0) continue;
        n += contender_of(s, pass, keel_kernels[i], &s->wide, &k[n]);
        n += contender_of(s, pass, keel_kernels[i], &s->narrow, &k[n]);
    }
    return n;
}

static void bench_pass(setup *s, const struct work *w, int pass)
{
    contender k[KERNELS_MAX] = { 0 };
    const int n = contenders_of(s, pass, k);
    for (int i = 0; i < n; i++) {
        const double once = turn(s, pass, &k[i], 1);
        k[i].repeats = once > 2e5 ? 0 : once > 5000 ? 1 : (int64_t)(5000 / once) + 1;
        for (int t = 0; t < TURNS; t++) k[i].us[t] = once;
    }
    for (int t = 0; t < TURNS; t++)
        for (int i = 0; i < n; i++)
            if (k[i].repeats) k[i].us[t] = turn(s, pass, &k[i], k[i].repeats);
    for (int i = 0; i < n; i++) {
        qsort(k[i].us, TURNS, sizeof k[i].us[0], by_value);
        const double median = k[i].us[TURNS / 2], flop = flop_of(k[i].on, pass);
        printf("%-22s %3lld x %-16s %-9s %-20s %10.1f %10.1f %8.1f %s\n", w->op, (long long)w->rows,
               w->c.in, pass_name[pass], k[i].name, median, k[i].us[0],
               (flop > 0 ? flop : bytes_of(k[i].on, pass)) / median * 1e-3,
               flop > 0 ? "GFLOP/s" : "GB/s");
        if (k[i].kernel && k[i].kernel->release) k[i].kernel->release(k[i].plan);
        keel_free(k[i].scratch);
    }
    while (n_copies > 0) {
        n_copies--;
        if (copies[n_copies].release) copies[n_copies].release(copies[n_copies].plan);
        keel_free(copies[n_copies].data);
    }
    fflush(stdout);
}

int main(int argc, char **argv)
{
    keel_cpu_single_thread();
    if (argc > 1 && strcmp(argv[1], "--bfloat16") == 0) {
        narrow_only = true;
        argc--;
        argv++;
    }
    only = argc > 3 ? argv[3] : NULL;
    printf("%-22s %-22s %-9s %-20s %10s %10s %8s\n", "op", "rows x input", "pass", "kernel",
           "median us", "least us", "speed");
    for (size_t i = 0; i < sizeof works / sizeof *works; i++) {
        const struct work *w = &works[i];
        const keel_op *op = keel_op_find(w->op);
        setup s;
        if (!op || (argc > 1 && strcmp(argv[1], w->op) != 0)) continue;
        if (argc > 2 && strncmp(argv[2], w->c.in, strlen(argv[2])) != 0) continue;
        open_setup(&s, w, op);
        for (keel_pass pass = 0; pass < KEEL_PASS_COUNT; pass++) {
            const bool meets = pass == KEEL_PARTIAL || pass == KEEL_PARTIAL_BACKWARD;
            if (reference_of(op, pass) && (!meets || s.wide.node.partial > 0))
                bench_pass(&s, w, pass);
        }
        if (op->weights_tile[0] && s.wide.node.in[0].shape.rank == 1) bench_pass(&s, w, TILES);
        close_setup(&s);
    }
    return 0;
}
