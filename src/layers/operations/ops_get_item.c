/* x[:, 1:3, ::2, None, ..., 0]: slices of a row, single places, new dims. The batch is always
 * whole. */
#include "layers/operations/_operation.h"
#include <string.h>

typedef struct picking {
    keel_shape in;
    keel_slice_args slice;
    keel_reshape_args out;
    int dim; /* the next dim of the input */
} picking;

static bool is_class(const json_t *v, const char *name)
{
    const char *class_name = json_string_value(json_object_get(v, "class_name"));
    return class_name && !strcmp(class_name, name);
}

static keel_status put(picking *p, int64_t dim)
{
    if (p->out.shape.rank == KEEL_RANK_MAX)
        return keel_fail(KEEL_EUNSUP, "more than %d dims of a row", KEEL_RANK_MAX);
    p->out.shape.dim[p->out.shape.rank++] = dim;
    return KEEL_OK;
}

/* A bound as in Python: counted from the end if it is negative, and limited to [low, high]. */
static int64_t bound(const json_t *v, int64_t absent, int64_t n, int64_t low, int64_t high)
{
    if (!json_is_integer(v)) return absent;
    int64_t at = json_integer_value(v);
    if (at < 0) at = at < -n ? low : at + n;
    return at < low ? low : at > high ? high : at;
}

static keel_status take_slice(picking *p, const json_t *v)
{
    const json_t *config = json_object_get(v, "config"), *by = json_object_get(config, "step");
    const json_t *from = json_object_get(config, "start"), *to = json_object_get(config, "stop");
    const int64_t n = p->in.dim[p->dim];
    const json_t *const all[3] = { from, to, by };
    for (int i = 0; i < 3; i++)
        if (all[i] && !json_is_null(all[i]) && !json_is_integer(all[i]))
            return keel_fail(KEEL_EUNSUP, "a slice by something else than whole numbers");
    int64_t step = json_is_integer(by) ? json_integer_value(by) : 1;
    if (step == 0) return keel_fail(KEEL_EARG, "a slice with step 0");
    if (step > n) step = n;
    if (step < -n) step = -n;
    const int64_t low = step > 0 ? 0 : -1, high = step > 0 ? n : n - 1;
    const int64_t begin = bound(from, step > 0 ? low : high, n, low, high);
    const int64_t end = bound(to, step > 0 ? high : low, n, low, high);
    const int64_t count =
        step > 0 ? (end - begin + step - 1) / step : (begin - end - step - 1) / -step;
    if (count < 1) return keel_fail(KEEL_ESHAPE, "a slice of dim %d is empty", p->dim + 1);
    p->slice.begin[p->dim] = begin;
    p->slice.step[p->dim] = step;
    p->slice.count[p->dim++] = count;
    return put(p, count);
}

static keel_status take_place(picking *p, int64_t at)
{
    const int64_t n = p->in.dim[p->dim];
    if (at < -n || at >= n)
        return keel_fail(KEEL_EARG, "there is no place %lld in dim %d, of %lld", (long long)at,
                         p->dim + 1, (long long)n);
    p->slice.begin[p->dim] = at < 0 ? at + n : at;
    p->slice.step[p->dim] = p->slice.count[p->dim] = 1;
    p->dim++;
    return KEEL_OK;
}

static keel_status take_rest(picking *p, int until)
{
    while (p->dim < until) {
        p->slice.step[p->dim] = 1;
        p->slice.count[p->dim] = p->in.dim[p->dim];
        KEEL_TRY(put(p, p->in.dim[p->dim++]));
    }
    return KEEL_OK;
}

/* How many dims of the input the keys from `i` on use. */
static int taken_by(const json_t *keys, size_t i)
{
    int n = 0;
    for (; i < json_array_size(keys); i++) {
        const json_t *v = json_array_get(keys, i);
        n += json_is_integer(v) || is_class(v, "__slice__");
    }
    return n;
}

static bool takes_all(const json_t *v)
{
    const json_t *config = json_object_get(v, "config");
    if (is_class(v, "__ellipsis__")) return true;
    return is_class(v, "__slice__") && json_is_null(json_object_get(config, "start")) &&
           json_is_null(json_object_get(config, "stop")) &&
           json_is_null(json_object_get(config, "step"));
}

static keel_status take(keel_emit *e, const json_t *keys)
{
    picking p = { .in = keel_emit_in(e, 0)->shape };
    bool ellipsis = false;
    keel_value x;
    for (size_t i = 0; i < json_array_size(keys); i++) {
        const json_t *v = json_array_get(keys, i);
        if (i == 0 && !takes_all(v))
            return keel_fail(KEEL_EUNSUP, "the batch must be taken whole, by ':' or '...'");
        if (is_class(v, "__ellipsis__")) {
            const int rest = p.in.rank - taken_by(keys, i + 1);
            if (ellipsis) return keel_fail(KEEL_EARG, "'...' twice");
            ellipsis = true;
            KEEL_TRY(take_rest(&p, rest));
        } else if (i == 0) {
            continue;
        } else if (json_is_null(v)) {
            KEEL_TRY(put(&p, 1));
        } else if (p.dim == p.in.rank) {
            return keel_fail(KEEL_ESHAPE, "more keys than the %d dims of a row", p.in.rank);
        } else if (is_class(v, "__slice__")) {
            KEEL_TRY(take_slice(&p, v));
        } else if (json_is_integer(v)) {
            KEEL_TRY(take_place(&p, json_integer_value(v)));
        } else {
            return keel_fail(KEEL_EUNSUP, "a key that is no slice, no whole number, no None");
        }
    }
    KEEL_TRY(take_rest(&p, p.in.rank));
    KEEL_TRY(keel_emit_on(e, &keel_op_slice, &p.slice, e->in, 1, &x));
    return keel_emit_on(e, &keel_op_reshape, &p.out, &x, 1, e->out);
}

static keel_status emit(keel_emit *e)
{
    const json_t *keys = keel_argument(e, 1, "key");
    json_t *one = json_is_array(keys) ? json_incref((json_t *)keys) : json_pack("[O]", keys);
    if (!one) return keel_fail(KEEL_EUNSUP, "it needs a key");
    const keel_status s = take(e, one);
    json_decref(one);
    return s;
}

KEEL_PLAIN_OPERATION(ops_get_item, "GetItem", "numpy", 1, "Slices, places and new dims.",
                     .whole = KEEL_WHOLE_KEPT)
