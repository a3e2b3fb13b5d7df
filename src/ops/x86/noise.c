/* Normal draws, those of 8 or 16 blocks of random numbers at a time: see ops/noise.c, and
 * base/philox.c for how a block gives four of them. */
#ifndef VALUE
#include "ops/args.h"
#include "ops/x86/_double.h"
#include "ops/x86/_philox.h"

enum { DRAWS = 4 * LANES };

/* Two normal draws of each block: a radius times the cosine and the sine of an angle. */
static inline void draw_pair(float cosine[LANES], float sine[LANES], vi radius, vi angle)
{
    const vd u[2] = { (vd_low_of(radius) + 1) * 0x1p-32, (vd_high_of(radius) + 1) * 0x1p-32 };
    const vd turn[2] = { vd_low_of(angle) * (0x1p-31 * M_PI),
                         vd_high_of(angle) * (0x1p-31 * M_PI) };
    vd c[2], s[2];
    for (int half = 0; half < 2; half++) {
        const vd r = vd_sqrt(-2 * vd_log(u[half]));
        c[half] = r * vd_sine(turn[half], 1);
        s[half] = r * vd_sine(turn[half], 0);
    }
    vf_store(cosine, vf_of_doubles(c[0], c[1]));
    vf_store(sine, vf_of_doubles(s[0], s[1]));
}

/* The draws of LANES blocks from `block` on, block by block. */
static void draw(float z[DRAWS], const keel_chance *c, uint64_t row, uint32_t block)
{
    vi word[4];
    float by_number[4][LANES];
    philox(word, c, row, block);
    for (int k = 0; k < 4; k += 2) draw_pair(by_number[k], by_number[k + 1], word[k], word[k + 1]);
    for (int lane = 0; lane < LANES; lane++)
        for (int k = 0; k < 4; k++) z[4 * lane + k] = by_number[k][lane];
}

#define VALUE_FILE "ops/x86/noise.c"
#include "ops/x86/_values.h"

VECTOR_BOTH(noise, vector_prepare);
#else
static void VALUE_(forward)(const keel_call *c)
{
    const keel_noise_args *a = c->node->args;
    const int64_t count = keel_row_count(&c->node->out[0]);
    const keel_chance chance = { c->step->seed, c->step->epoch, c->node->stream };
    const vf stddev = vf_set((float)a->stddev);
    const VALUE *x = c->in[0];
    VALUE *y = c->out[0];
    float *factor = c->node->n_saved ? c->saved[0] : NULL;
    if (!c->node->training) {
        if (y != x) VECTOR_MOVE(y, x, c->rows * count, false);
        return;
    }
    for (int64_t row = 0; row < c->rows; row++)
        for (int64_t i = 0; i < count; i += DRAWS) {
            float z[DRAWS];
            const int64_t n = count - i < DRAWS ? count - i : DRAWS;
            draw(z, &chance, c->step->first_row + (uint64_t)(c->row + row), (uint32_t)(i / 4));
            VECTOR_EACH(k, n, m, {
                const vf at = vx_load_some(m, x + k), drawn = vf_mul(stddev, vf_load(z + k));
                const vf times = vf_add(vf_set(1), drawn);
                vx_store_some(m, y + k, a->multiplies ? vf_mul(at, times) : vf_add(at, drawn));
                if (factor) vf_store_some(m, factor + k, times);
            });
            x += n, y += n;
            if (factor) factor += n;
        }
}

static void VALUE_(backward)(const keel_call *c)
{
    const int64_t count = c->rows * keel_row_count(&c->node->out[0]);
    const float *factor = c->node->n_saved ? c->saved[0] : NULL;
    const VALUE *dy = c->out_grad[0];
    VALUE *dx = c->in_grad[0];
    if (!dx) return;
    VECTOR_EACH(i, count, m, {
        vf g = vx_load_some(m, dy + i);
        if (factor) g = vf_mul(g, vf_load_some(m, factor + i));
        if (c->in_adds[0]) g = vf_add(vx_load_some(m, dx + i), g);
        vx_store_some(m, dx + i, g);
    });
}
#endif
