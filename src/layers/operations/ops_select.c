/* Of several values the first whose condition holds; a number if none does. */
#include "base/python_json.h"
#include "layers/operations/_values.h"

static keel_status operand(const keel_emit *e, const json_t *v, keel_operand *out)
{
    const json_t *in = json_object_get(v, KEEL_CALL_VALUE);
    double x = 0;
    if (!in && !keel_json_number(v, &x))
        return keel_fail(KEEL_EUNSUP, "choicelist: values of the model and numbers are supported");
    *out = in ? KEEL_OF_VALUE(e->in[json_integer_value(in)]) : KEEL_OF_NUMBER(x);
    return KEEL_OK;
}

static keel_status emit(keel_emit *e)
{
    const json_t *conditions = keel_argument(e, 0, "condlist");
    const json_t *choices = keel_argument(e, 1, "choicelist");
    const size_t n = json_array_size(conditions);
    keel_operand otherwise, condition, choice;
    keel_value y = -1;
    KEEL_TRY(keel_operand_at(e, 2, "default", &otherwise));
    if (!otherwise.given) otherwise = KEEL_OF_NUMBER(0);
    if (n == 0 || n != json_array_size(choices))
        return keel_fail(KEEL_EARG, "condlist and choicelist: lists of the same length");
    for (size_t i = n; i-- > 0;) {
        KEEL_TRY(operand(e, json_array_get(conditions, i), &condition));
        KEEL_TRY(operand(e, json_array_get(choices, i), &choice));
        if (condition.value < 0)
            return keel_fail(KEEL_EUNSUP, "condlist: conditions must be values of the model");
        KEEL_TRY(keel_emit_choice(e, condition.value, choice, otherwise, &y));
        otherwise = KEEL_OF_VALUE(y);
    }
    e->out[0] = y;
    return KEEL_OK;
}

KEEL_PLAIN_OPERATION(ops_select, "Select", "numpy", -1,
                     "Of several values the first whose condition holds.", .whole = KEEL_WHOLE_KEPT)
