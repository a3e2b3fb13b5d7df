/* Winograd's F(4x4, 3x3) along one direction: 4 outputs of 6 places by 6 products, where the direct
 * sum takes 12 (Lavin & Gray 2015). A product belongs to a point at which polynomials are
 * multiplied: 0, A, -A, B, -B and infinity.
 *
 *     y = At [ (G g) . (Bt d) ]    dg = Gt [ (Bt d) . (A dy) ]
 *
 * A function is chosen by the number of values that it takes or gives: 6 places d, 4 outputs y or 3
 * taps g. The points are those of the processor's kernels (ops/x86/_winograd_points.h says why): A
 * and B are exact in float32, and so are their powers. */
#ifndef KEEL_OPS_CUDA_WINOGRAD_POINTS_H
#define KEEL_OPS_CUDA_WINOGRAD_POINTS_H
#include "device/cuda/gpu.h"

constexpr int TILE = 4, TAPS = 3, SIDE = TILE + TAPS - 1, POINTS = SIDE * SIDE;

constexpr double POINT_A = 21.0 / 32, POINT_B = 1.5;
constexpr float A1 = (float)POINT_A, A2 = (float)(POINT_A * POINT_A);
constexpr float A3 = (float)(POINT_A * POINT_A * POINT_A);
constexpr float B1 = (float)POINT_B, B2 = (float)(POINT_B * POINT_B);
constexpr float B3 = (float)(POINT_B * POINT_B * POINT_B);
constexpr float SUM2 = (float)(POINT_A * POINT_A + POINT_B * POINT_B);
constexpr float PRODUCT2 = (float)(POINT_A * POINT_A * POINT_B * POINT_B);

/* One over the divisors of Lagrange's polynomials of 0, A and B. */
constexpr double APART = POINT_A * POINT_A - POINT_B * POINT_B;
constexpr float OVER_0 = (float)(1 / (POINT_A * POINT_A * POINT_B * POINT_B));
constexpr float OVER_A = (float)(1 / (2 * POINT_A * POINT_A * APART));
constexpr float OVER_B = (float)(1 / (-2 * POINT_B * POINT_B * APART));
constexpr float ODD_A = (float)(1 / (2 * POINT_A * APART));
constexpr float ODD_B = (float)(1 / (-2 * POINT_B * APART));

/* x and y at the points A and -A, or B and -B: of the even and the odd powers. */
static __device__ __forceinline__ void both_signs(float even, float by, float odd, float *plus,
                                                  float *minus)
{
    *plus = fmaf(by, odd, even);
    *minus = fmaf(-by, odd, even);
}

static __device__ __forceinline__ void to_points(const float (&d)[SIDE],
                                                 float (&v)[SIDE]) /* Bt d */
{
    v[0] = fmaf(PRODUCT2, d[0], fmaf(-SUM2, d[2], d[4]));
    both_signs(fmaf(-B2, d[2], d[4]), A1, fmaf(-B2, d[1], d[3]), &v[1], &v[2]);
    both_signs(fmaf(-A2, d[2], d[4]), B1, fmaf(-A2, d[1], d[3]), &v[3], &v[4]);
    v[5] = fmaf(PRODUCT2, d[1], fmaf(-SUM2, d[3], d[5]));
}

static __device__ __forceinline__ void to_points(const float (&y)[TILE], float (&v)[SIDE]) /* A y */
{
    v[0] = y[0];
    both_signs(fmaf(A2, y[2], y[0]), A1, fmaf(A2, y[3], y[1]), &v[1], &v[2]);
    both_signs(fmaf(B2, y[2], y[0]), B1, fmaf(B2, y[3], y[1]), &v[3], &v[4]);
    v[5] = y[3];
}

static __device__ __forceinline__ void to_points(const float (&g)[TAPS], float (&v)[SIDE]) /* G g */
{
    v[0] = OVER_0 * g[0];
    both_signs(OVER_A * fmaf(A2, g[2], g[0]), ODD_A, g[1], &v[1], &v[2]);
    both_signs(OVER_B * fmaf(B2, g[2], g[0]), ODD_B, g[1], &v[3], &v[4]);
    v[5] = g[2];
}

static __device__ __forceinline__ void from_points(const float (&u)[SIDE],
                                                   float (&y)[TILE]) /* At u */
{
    const float even_a = u[1] + u[2], odd_a = u[1] - u[2];
    const float even_b = u[3] + u[4], odd_b = u[3] - u[4];
    y[0] = u[0] + (even_a + even_b);
    y[1] = fmaf(B1, odd_b, A1 * odd_a);
    y[2] = fmaf(B2, even_b, A2 * even_a);
    y[3] = fmaf(B3, odd_b, fmaf(A3, odd_a, u[5]));
}

static __device__ __forceinline__ void from_points(const float (&u)[SIDE],
                                                   float (&g)[TAPS]) /* Gt u */
{
    const float even_a = OVER_A * (u[1] + u[2]), even_b = OVER_B * (u[3] + u[4]);
    g[0] = fmaf(OVER_0, u[0], even_a + even_b);
    g[1] = fmaf(ODD_B, u[3] - u[4], ODD_A * (u[1] - u[2]));
    g[2] = fmaf(B2, even_b, fmaf(A2, even_a, u[5]));
}

#endif
