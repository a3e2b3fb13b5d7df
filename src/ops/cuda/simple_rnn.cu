/* See ops/simple_rnn.c and _recurrent.h. */
#include "ops/cuda/_recurrent.h"

namespace
{
struct simple_rnn {
    static const int GATES = 1, PARTS = 1, STATES = 1;
    static const bool HAS_TAIL = false;

    static const keel_cell *cell()
    {
        return &keel_cell_simple_rnn;
    }

    template <class T>
    static __device__ __forceinline__ float gate(const recurrent_call<T> &o, int, float x,
                                                 float product)
    {
        return gate_value(o.activation, x + product);
    }

    template <class T>
    static __device__ __forceinline__ void forward(const recurrent_call<T> &, float, float, float,
                                                   float *of, float *h, float *)
    {
        *h = of[0];
    }

    template <class T>
    static __device__ __forceinline__ void backward(const recurrent_call<T> &o, float *of, float,
                                                    float, float, float *dh, float *, float *d)
    {
        d[0] = *dh * gate_slope(o.activation, of[0]);
        *dh = 0;
        of[0] = d[0];
    }
};
} // namespace

RECURRENT_KERNEL(simple_rnn, simple_rnn);
