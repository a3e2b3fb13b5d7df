/* Each place of an axis several times. */
#include "base/memory.h"
#include "base/plural.h"
#include "layers/operations/_values.h"

typedef struct args_t {
    json_t *repeats;
    keel_ints axis;
} args_t;

static const keel_field fields[] = {
    { .key = "repeats",
      .kind = KEEL_FIELD_LIST,
      .offset = offsetof(args_t, repeats),
      .count = 1,
      .help = "how often; of each place or of all" },
    KEEL_INTS(args_t, axis, -1, "null", -7, 7, "which dim, the batch is 0"),
    { 0 },
};

enum { MOST = 1000000000 };

static keel_status often(const json_t *v, int64_t *out)
{
    *out = json_integer_value(v);
    if (json_is_integer(v) && *out >= 0 && *out <= MOST) return KEEL_OK;
    return keel_fail(KEEL_EARG, "repeats: whole numbers from 0 to %d are supported", MOST);
}

/* Each place so often as its own number says. */
static keel_status each(keel_emit *e, const json_t *repeats, int64_t axis)
{
    const keel_axis_args along = { .axis = axis };
    const int64_t dim = keel_emit_in(e, 0)->shape.dim[axis];
    keel_status s = KEEL_OK;
    int64_t count;
    int n = 0;
    if ((int64_t)json_array_size(repeats) != dim)
        return keel_fail(KEEL_EARG, "repeats: %zu numbers for %lld place%s",
                         json_array_size(repeats), (long long)dim, keel_s(dim));
    keel_value *part = keel_calloc((size_t)dim, sizeof *part);
    if (!part) return KEEL_ENOMEM;
    for (int64_t i = 0; i < dim; i++) {
        if ((s = often(json_array_get(repeats, (size_t)i), &count)) < 0) goto out;
        if (count == 0) continue;
        if ((s = keel_emit_part(e, e->in[0], axis, i, 1, &part[n])) < 0) goto out;
        if ((s = keel_emit_repeated(e, part[n], axis, count, &part[n])) < 0) goto out;
        n++;
    }
    s = n ? keel_emit_on(e, &keel_op_concatenate, &along, part, n, e->out)
          : keel_fail(KEEL_EARG, "repeats: nothing would be left");
out:
    keel_free(part);
    return s;
}

static keel_status emit(keel_emit *e)
{
    const args_t *a = e->args;
    keel_upsample_args op = { 0 };
    const json_t *all = a->repeats;
    if (a->axis.count != 1) return keel_fail(KEEL_EUNSUP, "axis null is the batch, too");
    KEEL_TRY(keel_row_axis(e, a->axis.at[0], &op.axis));
    if (json_is_array(all) && json_array_size(all) != 1) return each(e, all, op.axis);
    KEEL_TRY(often(json_is_array(all) ? json_array_get(all, 0) : all, &op.factor));
    if (op.factor == 0) return keel_fail(KEEL_EARG, "repeats: nothing would be left");
    return keel_emit_unary(e, &keel_op_upsample, &op);
}

KEEL_ARGS_OPERATION(ops_repeat, "Repeat", "numpy", 1, "Each place of an axis several times.",
                    .whole = KEEL_WHOLE_KEPT)
