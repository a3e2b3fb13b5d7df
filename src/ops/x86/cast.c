/* Cast between float32, bfloat16 and float16, and from whole numbers to these. The types are the
 * node's, so these are plain passes, not narrow ones. Pairs that no instruction converts go through
 * float32, some elements at a time. */
#include "ops/x86/_vector.h"
#include "tensor/float16.h"

KEEL_USES_OP(cast);

enum { SOME = 256 };

static void read_some(float *to, const void *from, keel_dtype type, int64_t n)
{
    switch ((int)type) {
    case KEEL_FLOAT32:
        memcpy(to, from, (size_t)n * sizeof *to);
        break;
    case KEEL_BFLOAT16:
        VECTOR_MOVE(to, (const keel_bf16 *)from, n, false);
        break;
    case KEEL_FLOAT16:
        keel_f16_widen(to, from, n);
        break;
    case KEEL_INT32:
        for (int64_t i = 0; i < n; i++) to[i] = (float)((const int32_t *)from)[i];
        break;
    case KEEL_INT64:
        for (int64_t i = 0; i < n; i++) to[i] = (float)((const int64_t *)from)[i];
        break;
    default: /* bool and uint8 are bytes */
        for (int64_t i = 0; i < n; i++) to[i] = (float)((const uint8_t *)from)[i];
    }
}

static void write_some(void *to, keel_dtype type, const float *from, int64_t n)
{
    if (type == KEEL_FLOAT32)
        memcpy(to, from, (size_t)n * sizeof *from);
    else if (type == KEEL_BFLOAT16)
        VECTOR_MOVE((keel_bf16 *)to, from, n, false);
    else
        keel_f16_narrow(to, from, n);
}

/* to[i] = from[i], or to[i] += from[i] */
static void move(void *to, keel_dtype to_type, const void *from, keel_dtype from_type, int64_t n,
                 bool adds)
{
    const size_t in = keel_dtype_size(from_type), out = keel_dtype_size(to_type);
    float x[SOME], sum[SOME];
    if (from_type == to_type && !adds) {
        memcpy(to, from, (size_t)n * in);
        return;
    }
    if (to_type == KEEL_FLOAT32 && !adds) {
        read_some(to, from, from_type, n);
        return;
    }
    if (from_type == KEEL_FLOAT32 && !adds) {
        write_some(to, to_type, from, n);
        return;
    }
    for (int64_t i = 0; i < n; i += SOME) {
        const int64_t some = n - i < SOME ? n - i : SOME;
        char *at = (char *)to + (size_t)i * out;
        read_some(x, (const char *)from + (size_t)i * in, from_type, some);
        if (adds) {
            read_some(sum, at, to_type, some);
            for (int64_t k = 0; k < some; k++) x[k] = sum[k] + x[k];
        }
        write_some(at, to_type, x, some);
    }
}

static void forward(const keel_call *c)
{
    move(c->out[0], c->node->out[0].dtype, c->in[0], c->node->in[0].dtype,
         c->rows * keel_row_count(&c->node->out[0]), false);
}

static void backward(const keel_call *c)
{
    if (!c->in_grad[0]) return;
    move(c->in_grad[0], c->node->in[0].dtype, c->out_grad[0], c->node->out[0].dtype,
         c->rows * keel_row_count(&c->node->out[0]), c->in_adds[0]);
}

const keel_kernel VECTOR_KERNEL(cast) = {
    .op = &keel_op_cast,
    .name = VECTOR_NAME,
    .needs = VECTOR_LEVEL,
    .priority = VECTOR_PRIORITY(VECTOR),
    .prepare = vector_prepare,
    .run = { [KEEL_FORWARD] = forward, [KEEL_BACKWARD] = backward },
};
