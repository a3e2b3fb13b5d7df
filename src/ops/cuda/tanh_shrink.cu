/* See ops/tanh_shrink.c: near 0, where x and tanh(x) have the same digits, by a continued fraction.
 */
#include "ops/cuda/_each.h"

namespace
{
__device__ float shrunk(float x)
{
    float next = 17;
    if (!(fabsf(x) < 0.5f)) return x - tanhf(x);
    for (int k = 15; k >= 3; k -= 2) next = (float)k + x * x / next;
    const float r = x * x / next;
    return x * r / (1 + r);
}
} // namespace

EACH_FROM_IN(tanh_shrink, shrunk(x), tanhf(x) * tanhf(x));
