/* Depthwise convolution of a multiplier M: a part of _depthwise.h. Value c of an image becomes the
 * M values c M, ..., c M + M - 1, which meet filters of their own, and in backward their gradients
 * are added up. Those are float32 also for narrow values, so the sum is rounded once. */

/* times is a constant where this is called with one. */
INLINE void VALUE_(spread_by)(VALUE *to, const VALUE *from, int64_t n, const int64_t times)
{
    for (int64_t i = 0; i < n; i++)
        for (int64_t m = 0; m < times; m++) to[i * times + m] = from[i];
}

/* The image x, each value as often as its channel has filters, in `room`; x itself for one. */
static const VALUE *VALUE_(spread)(const keel_node *n, const VALUE *x, void *room)
{
    const int64_t times = n->out[0].shape.dim[2] / n->in[0].shape.dim[2];
    const int64_t count = keel_row_count(&n->in[0]);
    switch (times) {
    case 1:
        return x;
    case 2:
        VALUE_(spread_by)(room, x, count, 2);
        break;
    case 4:
        VALUE_(spread_by)(room, x, count, 4);
        break;
    default:
        VALUE_(spread_by)(room, x, count, times);
    }
    return room;
}

/* to[i] becomes the sum of from[i M], ..., or is added it. */
INLINE void VALUE_(gather_by)(VALUE *to, const float *from, int64_t n, const int64_t times,
                              bool adds)
{
    float sum[LANES];
    for (int64_t i = 0; i < n; i += LANES, from += LANES * times) {
        const int64_t count = n - i < LANES ? n - i : LANES;
        const vm some = vm_first(count);
        for (int64_t k = 0; k < count; k++) {
            sum[k] = from[k * times];
            for (int64_t m = 1; m < times; m++) sum[k] += from[k * times + m];
        }
        vf all = vf_load_some(some, sum);
        if (adds) all = vf_add(all, vx_load_some(some, to + i));
        vx_store_some(some, to + i, all);
    }
}

static void VALUE_(gather)(VALUE *to, const float *from, int64_t n, int64_t times, bool adds)
{
    if (times == 2)
        VALUE_(gather_by)(to, from, n, 2, adds);
    else
        VALUE_(gather_by)(to, from, n, times, adds);
}

static void VALUE_(backward_spread)(const keel_call *call, const keel_window *v, int64_t c)
{
    const int64_t n = keel_row_count(&call->node->in[0]), n_dy = v->out[0] * v->out[1] * c;
    const int64_t n_spread = v->in[0] * v->in[1] * c;
    float *const room = call->scratch;
    const VALUE *dy = call->out_grad[0];
    VALUE *dx = call->in_grad[0];
    image_f32 o = { .to = room,
                    .w = call->weight[0],
                    .channels = c,
                    .far = is_far(v->out, c, sizeof(float)),
                    .from_size = v->out,
                    .to_size = v->in };
    for (int64_t row = 0; dx && row < call->rows; row++, dy += n_dy, dx += n) {
        o.from = vx_floats(dy, room + n_spread, n_dy);
        image_run_f32(&o, v, true);
        VALUE_(gather)(dx, room, n, n_spread / n, call->in_adds[0]);
    }
}
