/* Short forms for the steps of losses of all rows. */
#ifndef KEEL_TESTS_WHOLE_STEPS_H
#define KEEL_TESTS_WHOLE_STEPS_H
#include "keel/keel.h"

static inline keel_traced op(keel_trace *t, const char *name, const keel_arg *args, keel_traced x)
{
    keel_traced y = -1;
    keel_trace_call(t, name, args, NULL, &x, 1, &y);
    return y;
}

static inline keel_traced both(keel_trace *t, const char *name, keel_traced a, keel_traced b)
{
    keel_traced y = -1;
    keel_trace_call(t, name, NULL, NULL, (keel_traced[]){ a, b }, 2, &y);
    return y;
}

static inline keel_traced times(keel_trace *t, keel_traced x, double number)
{
    keel_traced y = -1;
    keel_trace_call(t, "ops.Multiply", NULL, KEEL_ARGS(KEEL_ARG_FLOAT("x2", number)), &x, 1, &y);
    return y;
}

static inline keel_traced input(keel_trace *t, const char *name)
{
    keel_traced x = -1;
    keel_trace_input(t, name, &x);
    return x;
}

static inline int64_t rows_of(keel_trace *t, const char *name)
{
    keel_shape shape = { .rank = 1, .dim = { 1 } };
    keel_trace_input_shape(t, name, &shape);
    return shape.dim[0];
}

/* The scalar that is the mean of one number. */
static inline keel_status give_back(keel_trace *t, keel_traced number)
{
    keel_scalar loss = -1;
    keel_trace_mean(t, number, KEEL_UNWEIGHTED, &loss);
    return keel_trace_return_scalar(t, "loss", loss);
}

/* The i-th number of an array of this type. */
static inline void put(keel_dtype dtype, void *to, int64_t i, double x)
{
    if (dtype == KEEL_FLOAT64)
        ((double *)to)[i] = x;
    else
        ((float *)to)[i] = (float)x;
}

static inline double number(keel_dtype dtype, const void *from, int64_t i)
{
    return dtype == KEEL_FLOAT64 ? ((const double *)from)[i] : (double)((const float *)from)[i];
}

#endif
