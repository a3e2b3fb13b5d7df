/* Fills a weight with one number, or with lists of numbers, which are spread over it as by NumPy.
 */
#include "initializers/constant.h"
#include "initializers/initializer.h"

static const keel_field fields[] = {
    { .key = "value",
      .kind = KEEL_FIELD_LIST,
      .offset = offsetof(keel_constant_args, value),
      .dflt = "0.0",
      .count = 1,
      .help = "a number, or lists of numbers that are spread over the weight" },
    { 0 },
};

/* Lists must be as long as the dim that they stand for, or have one element. */
static keel_status check(const json_t *v, const keel_shape *shape, int dim)
{
    if (!json_is_array(v))
        return json_is_number(v) && dim == shape->rank
                   ? KEEL_OK
                   : keel_fail(KEEL_EARG, "Constant: value must be a number, or lists of numbers");
    const size_t n = json_array_size(v);
    if (dim == shape->rank || (n != 1 && (int64_t)n != shape->dim[dim]))
        return keel_fail(KEEL_ESHAPE, "Constant: value: a list of %zu does not fit the weight", n);
    for (size_t i = 0; i < n; i++) KEEL_TRY(check(json_array_get(v, i), shape, dim + 1));
    return KEEL_OK;
}

static int depth_of(const json_t *v)
{
    int depth = 0;
    for (; json_is_array(v) && depth <= KEEL_RANK_MAX; v = json_array_get(v, 0)) depth++;
    return depth;
}

/* Overwrites the places of the dims from `dim` on. */
static void spread(const json_t *v, const keel_shape *shape, int dim, int64_t count, double *out)
{
    if (dim == shape->rank) {
        *out = json_number_value(v);
        return;
    }
    const int64_t n = shape->dim[dim];
    const bool one = json_array_size(v) == 1;
    for (int64_t i = 0; i < n; i++)
        spread(json_array_get(v, one ? 0 : (size_t)i), shape, dim + 1, count / n,
               out + i * (count / n));
}

static keel_status fill(const void *args, const keel_shape *shape, const keel_chance *c,
                        uint64_t row, double *out)
{
    (void)c, (void)row;
    const keel_constant_args *a = args;
    const int64_t count = keel_shape_count(shape);
    if (json_is_array(a->value)) {
        const int depth = depth_of(a->value), before = shape->rank - depth;
        if (before < 0)
            return keel_fail(KEEL_ESHAPE, "Constant: value has %d dims, the weight %d", depth,
                             shape->rank);
        keel_shape inner = { .rank = depth };
        for (int d = 0; d < depth; d++) inner.dim[d] = shape->dim[before + d];
        const int64_t part = keel_shape_count(&inner);
        KEEL_TRY(check(a->value, &inner, 0));
        for (int64_t i = 0; i < count; i += part) spread(a->value, &inner, 0, part, out + i);
        return KEEL_OK;
    }
    const double number = a->value ? json_number_value(a->value) : a->number;
    for (int64_t i = 0; i < count; i++) out[i] = number;
    return KEEL_OK;
}

static keel_status ready(void *args)
{
    const keel_constant_args *a = args;
    if (json_is_number(a->value) || json_is_array(a->value)) return KEEL_OK;
    return keel_fail(KEEL_EARG, "Constant: value must be a number, or lists of numbers");
}

const keel_initializer keel_initializer_constant = {
    .type = {
        .name = "Constant",
        .module = "keras.initializers",
        .help = "one number for all elements, or lists of numbers",
        .args_size = sizeof(keel_constant_args),
        .fields = fields,
        .ready = ready,
    },
    .fill = fill,
};
