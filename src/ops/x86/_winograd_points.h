/* Winograd's F(T x T, W x W) along one direction, T being TILE and W TAPS, the taps of a window: T
 * outputs of S = T + W - 1 pixels by S products, where the direct sum takes W T (Lavin & Gray
 * 2015). A product belongs to a point at which polynomials are multiplied: 0, 1, -1 and infinity
 * for S = 4; 0, A, -A, B, -B for S = 5; these and infinity for S = 6.
 *
 *     y = At [ (G g) . (Bt d) ]    dg = Gt [ (Bt d) . (A dy) ]
 *
 * With the usual points, 1 and 2, the error of F(4, 3) is four times a plain float32 sum's. A and B
 * have the least of those we tried, at most half of that, and are exact in float32 with their
 * powers. The rest is made up for by sums over channels that begin anew every SEGMENT, whose own
 * error then is less than that of a long one: from 64 channels on the error is that of a plain sum
 * or at most twice that, and less with every channel (tests/test_conv_winograd.c). */
#ifndef KEEL_OPS_X86_WINOGRAD_POINTS_H
#define KEEL_OPS_X86_WINOGRAD_POINTS_H
#include "ops/x86/_vector.h"

enum { SIDE = TILE + TAPS - 1, LAST = SIDE - 1, POINTS = SIDE * SIDE };

INLINE vf vf_minus(vf a, float b, vf c) /* a - b c */
{
    return vf_fma(vf_set(-b), c, a);
}

INLINE vf vf_plus(vf a, float b, vf c) /* a + b c */
{
    return vf_fma(vf_set(b), c, a);
}

#if TILE + TAPS == 5
INLINE void input_points(const vf d[SIDE], vf v[SIDE]) /* Bt d */
{
    v[0] = vf_sub(d[0], d[2]);
    v[1] = vf_add(d[1], d[2]);
    v[2] = vf_sub(d[2], d[1]);
    v[3] = vf_sub(d[1], d[3]);
}

INLINE void output_points(const vf m[SIDE], vf y[TILE]) /* At m */
{
    const vf sum = vf_add(m[1], m[2]), difference = vf_sub(m[1], m[2]);
    y[0] = vf_add(m[0], sum);
    if (TILE == 2) y[1] = vf_sub(difference, m[3]);
    if (TILE == 3) y[1] = difference, y[TILE - 1] = vf_sub(sum, m[3]);
}

INLINE void gradient_points(const vf y[TILE], vf w[SIDE]) /* A y */
{
    const vf even = TILE == 3 ? vf_add(y[0], y[TILE - 1]) : y[0];
    w[0] = y[0];
    w[1] = vf_add(even, y[1]);
    w[2] = vf_sub(even, y[1]);
    w[3] = vf_sub(vf_zero(), y[TILE - 1]);
}

INLINE void kernel_points(const vf g[TAPS], vf u[SIDE]) /* G g */
{
    const vf half = vf_set(0.5f), middle = vf_mul(half, g[1]);
    const vf ends = vf_mul(half, TAPS == 3 ? vf_add(g[0], g[TAPS - 1]) : g[0]);
    u[0] = g[0];
    u[1] = vf_add(ends, middle);
    u[2] = vf_sub(ends, middle);
    u[3] = g[TAPS - 1];
}

INLINE void kernel_gradient_points(const vf u[SIDE], vf g[TAPS]) /* Gt u */
{
    const vf half = vf_set(0.5f), sum = vf_mul(half, vf_add(u[1], u[2]));
    const vf difference = vf_mul(half, vf_sub(u[1], u[2]));
    g[0] = vf_add(u[0], sum);
    if (TAPS == 3) g[1] = difference, g[TAPS - 1] = vf_add(sum, u[3]);
    if (TAPS == 2) g[1] = vf_add(difference, u[3]);
}
#else
/* The points, their squares, and the divisors of Lagrange's polynomials of 0, A and B. */
#if TILE + TAPS == 6
#define A (3.0 / 4)
#define B (5.0 / 2)
#else
#define A (21.0 / 32)
#define B (3.0 / 2)
#endif
#define AA     (A * A)
#define BB     (B * B)
#define OVER_0 (1 / (AA * BB))
#define OVER_A (1 / (2 * AA * (AA - BB)))
#define OVER_B (1 / (2 * BB * (BB - AA)))

INLINE void input_points(const vf d[SIDE], vf v[SIDE])
{
    const vf even_a = vf_minus(d[4], BB, d[2]), odd_a = vf_minus(d[3], BB, d[1]);
    const vf even_b = vf_minus(d[4], AA, d[2]), odd_b = vf_minus(d[3], AA, d[1]);
    v[0] = vf_plus(vf_minus(d[4], AA + BB, d[2]), AA * BB, d[0]);
    v[1] = vf_plus(even_a, A, odd_a);
    v[2] = vf_minus(even_a, A, odd_a);
    v[3] = vf_plus(even_b, B, odd_b);
    v[4] = vf_minus(even_b, B, odd_b);
    if (SIDE == 6) v[LAST] = vf_plus(vf_minus(d[LAST], AA + BB, d[3]), AA * BB, d[1]);
}

INLINE void output_points(const vf m[SIDE], vf y[TILE])
{
    const vf sum_a = vf_add(m[1], m[2]), difference_a = vf_sub(m[1], m[2]);
    const vf sum_b = vf_add(m[3], m[4]), difference_b = vf_sub(m[3], m[4]);
    y[0] = vf_add(m[0], vf_add(sum_a, sum_b));
    y[1] = vf_plus(vf_mul(vf_set(A), difference_a), B, difference_b);
    y[2] = vf_plus(vf_mul(vf_set(AA), sum_a), BB, sum_b);
    y[3] = vf_plus(vf_plus(SIDE == 6 ? m[LAST] : vf_zero(), A * AA, difference_a), B * BB,
                   difference_b);
}

INLINE void gradient_points(const vf y[TILE], vf w[SIDE])
{
    const vf even_a = vf_plus(y[0], AA, y[2]), odd_a = vf_plus(y[1], AA, y[3]);
    const vf even_b = vf_plus(y[0], BB, y[2]), odd_b = vf_plus(y[1], BB, y[3]);
    w[0] = y[0];
    w[1] = vf_plus(even_a, A, odd_a);
    w[2] = vf_minus(even_a, A, odd_a);
    w[3] = vf_plus(even_b, B, odd_b);
    w[4] = vf_minus(even_b, B, odd_b);
    if (SIDE == 6) w[LAST] = y[3];
}

INLINE void kernel_points(const vf g[TAPS], vf u[SIDE])
{
    vf even_a = g[0], even_b = g[0];
    if (TAPS == 3) {
        even_a = vf_plus(even_a, AA, g[TAPS - 1]);
        even_b = vf_plus(even_b, BB, g[TAPS - 1]);
    }
    even_a = vf_mul(vf_set(OVER_A), even_a);
    even_b = vf_mul(vf_set(OVER_B), even_b);
    u[0] = vf_mul(vf_set(OVER_0), g[0]);
    u[1] = vf_plus(even_a, OVER_A * A, g[1]);
    u[2] = vf_minus(even_a, OVER_A * A, g[1]);
    u[3] = vf_plus(even_b, OVER_B * B, g[1]);
    u[4] = vf_minus(even_b, OVER_B * B, g[1]);
    if (SIDE == 6) u[LAST] = g[TAPS - 1];
}

INLINE void kernel_gradient_points(const vf u[SIDE], vf g[TAPS])
{
    const vf even_a = vf_mul(vf_set(OVER_A), vf_add(u[1], u[2]));
    const vf even_b = vf_mul(vf_set(OVER_B), vf_add(u[3], u[4]));
    const vf odd_a = vf_mul(vf_set(OVER_A * A), vf_sub(u[1], u[2]));
    g[0] = vf_plus(vf_add(even_a, even_b), OVER_0, u[0]);
    g[1] = vf_plus(odd_a, OVER_B * B, vf_sub(u[3], u[4]));
    if (TAPS == 3) g[TAPS - 1] = vf_plus(vf_plus(u[LAST], AA, even_a), BB, even_b);
}

#undef A
#undef B
#undef AA
#undef BB
#undef OVER_0
#undef OVER_A
#undef OVER_B
#endif
#endif
