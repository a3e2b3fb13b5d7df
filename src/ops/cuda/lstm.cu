/* See ops/lstm.c and _recurrent.h. */
#include "ops/cuda/_recurrent.h"

namespace
{
struct lstm {
    static const int GATES = 4, PARTS = 4, STATES = 2;
    static const bool HAS_TAIL = false;

    static const keel_cell *cell()
    {
        return &keel_cell_lstm;
    }

    template <class T>
    static __device__ __forceinline__ float gate(const recurrent_call<T> &o, int g, float x,
                                                 float product)
    {
        return gate_value(g == 2 ? o.activation : o.recurrent, x + product);
    }

    template <class T>
    static __device__ __forceinline__ void forward(const recurrent_call<T> &o, float, float, float,
                                                   float *of, float *h, float *carry)
    {
        *carry = of[1] * *carry + of[0] * of[2];
        *h = of[3] * gate_value(o.activation, *carry);
    }

    template <class T>
    static __device__ __forceinline__ void backward(const recurrent_call<T> &o, float *of, float,
                                                    float carry, float cell, float *dh, float *dc,
                                                    float *d)
    {
        const float squashed = gate_value(o.activation, cell);
        const float dcell = *dc + *dh * of[3] * gate_slope(o.activation, squashed);
        *dc = dcell * of[1];
        d[0] = dcell * of[2] * gate_slope(o.recurrent, of[0]);
        d[1] = dcell * carry * gate_slope(o.recurrent, of[1]);
        d[2] = dcell * of[0] * gate_slope(o.activation, of[2]);
        d[3] = *dh * squashed * gate_slope(o.recurrent, of[3]);
        *dh = 0;
        for (int g = 0; g < GATES; g++) of[g] = d[g];
    }
};
} // namespace

RECURRENT_KERNEL(lstm, lstm);
