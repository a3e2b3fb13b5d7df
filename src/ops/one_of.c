/* Each image [H, W, C] goes through one of several ops that keep its shape, drawn for its row. An
 * op's own reference runs on a row at a time, so it draws what it would draw by itself. Keras:
 * RandAugment, AugMix. */
#ifndef REAL
#include "ops/one_of.h"
#include "ops/cases.h"
#include "ops/infer.h"
#include <math.h>
#include <string.h>

KEEL_USES_OP(warp);
KEEL_USES_OP(recolor);
KEEL_USES_OP(smooth);
KEEL_USES_OP(equalize);

static keel_status infer(keel_node *n)
{
    const keel_one_of_args *a = n->args;
    KEEL_TRY(keel_infer_image(n));
    if (a->n < 1 || a->n > KEEL_ONE_OF_MAX)
        return keel_fail(KEEL_EARG, "one_of: %d choices are not in [1, %d]", a->n, KEEL_ONE_OF_MAX);
    for (int k = 0; k < a->n; k++) {
        keel_node one = *n;
        one.op = a->choice[k].op;
        one.args = &a->choice[k].args;
        if (!one.op) continue;
        keel_status s = keel_node_infer(&one);
        if (s >= 0 && (one.n_saved || !keel_shape_equal(&one.out[0].shape, &n->in[0].shape)))
            s = keel_fail(KEEL_EUNSUP, "one_of: %s saves values or changes the shape",
                          one.op->name);
        if (s >= 0 && one.scratch > n->scratch) n->scratch = one.scratch;
        keel_node_clear(&one);
        KEEL_TRY(s);
    }
    return keel_infer_out(n, &n->in[0].shape);
}

/* What a row of the call goes through. */
static const keel_one_of_choice *choice_of(const keel_call *c, int64_t row)
{
    const keel_one_of_args *a = c->node->args;
    const int k = (int)keel_draw(c, row, a->first, a->which);
    return &a->choice[k < a->n ? k : a->n - 1];
}

#define REAL_FILE "ops/one_of.c"
#include "ops/real.h"

static void args_for_case(void *args, const char *text)
{
    keel_one_of_args *a = args;
    *a = (keel_one_of_args){ .n = 5, .which = { 0, 5 } };
    keel_case_number(text, "always", &a->which.low);
    if (keel_case_has(text, "always")) a->which.high = a->which.low;
    a->choice[1] = (keel_one_of_choice){
        &keel_op_recolor,
        .args.recolor = { .range = { { -0.25, 0.25 } }, .values = { -1, 1 }, .first = 4 }
    };
    a->choice[2] = (keel_one_of_choice){
        &keel_op_warp,
        .args.warp = { .range = { { 0, 1 } }, .across = true, .nearest = true, .first = 8 }
    };
    a->choice[3] =
        (keel_one_of_choice){ &keel_op_smooth, .args.smooth = { .sharpens = true,
                                                                .size = { 3, 3 },
                                                                .range = { { 0.25, 0.25 } },
                                                                .values = { -1, 1 },
                                                                .first = 12 } };
    a->choice[4] = (keel_one_of_choice){ &keel_op_equalize,
                                         .args.equalize = { .bins = 2, .values = { -1, 1 } } };
}

const keel_op keel_op_one_of = {
    .name = "one_of",
    .args_size = sizeof(keel_one_of_args),
    .infer = infer,
    .forward = REALS(forward),
    .backward = REALS(backward),
    .backward_reads = KEEL_READS_IN,
    .costly = true,
    .cases = (const keel_case[]){ { "4,5,2", NULL, NULL },
                                  { "3,2,1", NULL, "always 3" },
                                  { NULL, NULL, NULL } },
    .args_for_case = args_for_case,
};
#else
static void REAL_(forward)(const keel_call *c)
{
    const int64_t count = keel_row_count(&c->node->in[0]);
    for (int64_t row = 0; row < c->rows; row++) {
        const keel_one_of_choice *to = choice_of(c, row);
        const void *in = (const REAL *)c->in[0] + row * count;
        void *out = (REAL *)c->out[0] + row * count;
        keel_node node = *c->node;
        keel_call one = *c;
        if (!to->op) {
            memcpy(out, in, (size_t)count * sizeof(REAL));
            continue;
        }
        node.op = to->op;
        node.args = &to->args;
        one.node = &node;
        one.rows = 1;
        one.row = c->row + row;
        one.in = &in;
        one.out = &out;
        to->op->forward[REAL_IS_DOUBLE](&one);
    }
}

static void REAL_(backward)(const keel_call *c)
{
    const int64_t count = keel_row_count(&c->node->in[0]);
    for (int64_t row = 0; c->in_grad[0] && row < c->rows; row++) {
        const keel_one_of_choice *to = choice_of(c, row);
        const void *in = (const REAL *)c->in[0] + row * count;
        const void *out_grad = (const REAL *)c->out_grad[0] + row * count;
        void *in_grad = (REAL *)c->in_grad[0] + row * count;
        keel_node node = *c->node;
        keel_call one = *c;
        if (!to->op) {
            const REAL *dy = out_grad;
            REAL *dx = in_grad;
            for (int64_t i = 0; i < count; i++) dx[i] = c->in_adds[0] ? dx[i] + dy[i] : dy[i];
            continue;
        }
        node.op = to->op;
        node.args = &to->args;
        one.node = &node;
        one.rows = 1;
        one.row = c->row + row;
        one.in = &in;
        one.out_grad = &out_grad;
        one.in_grad = &in_grad;
        to->op->backward[REAL_IS_DOUBLE](&one);
    }
}
#endif
