/* A rectangle of each image [H, W, C], drawn for its row, is filled with a colour or with noise.
 * Keras: RandomErasing. */
#ifndef REAL
#include "ops/erase.h"
#include "ops/cases.h"
#include "ops/infer.h"
#include <math.h>

enum { NOISE_BLOCK = 2 }; /* of draws: behind the six of the rectangle */

static keel_status infer(keel_node *n)
{
    const keel_erase_args *a = n->args;
    KEEL_TRY(keel_infer_image(n));
    if (a->n_fill > 1 && a->n_fill != n->in[0].shape.dim[2])
        return keel_fail(KEEL_ESHAPE, "erase: %d fill values for %lld channels", a->n_fill,
                         (long long)n->in[0].shape.dim[2]);
    if (keel_row_count(&n->in[0]) > UINT32_MAX)
        return keel_fail(KEEL_EUNSUP, "erase: a row has more than 2^32 - 1 elements");
    return keel_infer_out(n, &n->in[0].shape);
}

typedef struct rectangle { /* places from `from` to before `to`, of dims 0 and 1 */
    int64_t from[2], to[2];
} rectangle;

static rectangle rectangle_of(const keel_call *c, int64_t row)
{
    const keel_erase_args *a = c->node->args;
    rectangle r = { { 0, 0 }, { 0, 0 } };
    if (!(keel_draw(c, row, 5, a->range[3]) < keel_draw(c, row, 4, a->range[2]))) return r;
    for (uint32_t d = 0; d < 2; d++) {
        const double n = (double)c->node->in[0].shape.dim[d];
        const double length = sqrt(keel_draw(c, row, 1 - d, a->range[0])) * n;
        const double from = keel_draw(c, row, 3 - d, a->range[1]) * (n - length);
        r.from[d] = (int64_t)ceil(from);
        r.to[d] = (int64_t)ceil(from + length);
    }
    return r;
}

static bool is_in(const rectangle *r, const keel_shape *s, int64_t k)
{
    const int64_t i = k / (s->dim[1] * s->dim[2]), j = k / s->dim[2] % s->dim[1];
    return i >= r->from[0] && i < r->to[0] && j >= r->from[1] && j < r->to[1];
}

#define REAL_FILE "ops/erase.c"
#include "ops/real.h"

static void args_for_case(void *args, const char *text)
{
    keel_erase_args *a = args;
    a->range[0] = (keel_range){ 0.1, 0.5 };
    keel_case_number(text, "area", &a->range[0].low);
    if (keel_case_has(text, "area")) a->range[0].high = a->range[0].low;
    a->range[1].high = 1;
    keel_case_number(text, "begin", &a->range[1].low);
    if (keel_case_has(text, "begin")) a->range[1].high = a->range[1].low;
    a->range[2] = (keel_range){ 0.5, 0.5 };
    a->range[3].high = keel_case_has(text, "maybe");
    a->values = (keel_range){ -1, 1 };
    a->n_fill = keel_case_has(text, "colours") ? 3 : !keel_case_has(text, "noise");
    keel_case_number(text, "fill", &a->fill[0]);
    a->fill[1] = a->fill[0] / 2;
    a->fill[2] = -a->fill[0];
}

const keel_op keel_op_erase = {
    .name = "erase",
    .args_size = sizeof(keel_erase_args),
    .infer = infer,
    .forward = REALS(forward),
    .backward = REALS(backward),
    .costly = true,
    .cases = (const keel_case[]){ { "6,5,2", NULL, "maybe fill 0.5" },
                                  { "5,4,3", NULL, "colours fill 0.5" },
                                  { "4,7,1", NULL, "noise maybe" },
                                  { NULL, NULL, NULL } },
    .args_for_case = args_for_case,
};
#else
static void REAL_(forward)(const keel_call *c)
{
    const keel_erase_args *a = c->node->args;
    const keel_shape *s = &c->node->in[0].shape;
    const int64_t count = keel_row_count(&c->node->in[0]);
    const keel_chance chance = { c->step->seed, c->step->epoch, c->node->stream };
    const REAL *x = c->in[0];
    REAL *y = c->out[0];
    for (int64_t row = 0; row < c->rows; row++, x += count, y += count) {
        const rectangle r = rectangle_of(c, row);
        for (int64_t k = 0; k < count; k++) {
            y[k] = x[k];
            if (!is_in(&r, s, k)) continue;
            double v = a->fill[a->n_fill > 1 ? k % s->dim[2] : 0];
            if (a->n_fill == 0) {
                double z[4];
                keel_normals(z, &chance, c->step->first_row + (uint64_t)(c->row + row),
                             NOISE_BLOCK + (uint32_t)(k / 4));
                v = z[k % 4] * a->values.high;
            }
            y[k] = (REAL)fmin(fmax(v, a->values.low), a->values.high);
        }
    }
}

static void REAL_(backward)(const keel_call *c)
{
    const keel_shape *s = &c->node->in[0].shape;
    const int64_t count = keel_row_count(&c->node->in[0]);
    const REAL *dy = c->out_grad[0];
    REAL *dx = c->in_grad[0];
    for (int64_t row = 0; dx && row < c->rows; row++, dx += count, dy += count) {
        const rectangle r = rectangle_of(c, row);
        for (int64_t k = 0; k < count; k++) {
            const REAL g = is_in(&r, s, k) ? 0 : dy[k];
            dx[k] = c->in_adds[0] ? dx[k] + g : g;
        }
    }
}
#endif
