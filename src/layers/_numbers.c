/* See _numbers.h. */
#include "layers/_numbers.h"
#include "base/python_json.h"

bool keel_numbers_shape(const json_t *v, keel_shape *shape)
{
    *shape = (keel_shape){ 0 };
    for (; json_is_array(v); v = json_array_get(v, 0)) {
        if (shape->rank == KEEL_RANK_MAX || json_array_size(v) == 0) return false;
        shape->dim[shape->rank++] = (int64_t)json_array_size(v);
    }
    return true;
}

static bool copy(const json_t *v, const keel_shape *s, int d, double **to)
{
    if (d == s->rank) {
        **to = json_is_true(v);
        return keel_json_number(v, (*to)++) || json_is_boolean(v);
    }
    if ((int64_t)json_array_size(v) != s->dim[d]) return false;
    for (size_t i = 0; i < json_array_size(v); i++)
        if (!copy(json_array_get(v, i), s, d + 1, to)) return false;
    return true;
}

bool keel_numbers_copy(const json_t *v, const keel_shape *shape, double *to)
{
    return copy(v, shape, 0, &to);
}
