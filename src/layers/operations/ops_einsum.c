/* Sums of products by Einstein's notation: "bqhd,bkhd->bhqk". */
#include "layers/operations/_einsum.h"

typedef struct args_t {
    char *subscripts;
} args_t;

static const keel_field fields[] = {
    KEEL_STRING(args_t, subscripts, NULL, "the letters of each operand, ',' and '->'"),
    { 0 },
};

static keel_status emit(keel_emit *e)
{
    const args_t *a = e->args;
    keel_term in[KEEL_EINSUM_MAX] = { { 0 } };
    keel_operand x;
    int n = 0;
    for (; n <= KEEL_EINSUM_MAX; n++) {
        const json_t *v = keel_argument(e, (size_t)n, "operands");
        x = (keel_operand){ .given = json_is_array(v) };
        if (!x.given) KEEL_TRY(keel_operand_at(e, (size_t)n, "operands", &x));
        if (!x.given) break;
        if (n == KEEL_EINSUM_MAX)
            return keel_fail(KEEL_EUNSUP, "more than %d operands", KEEL_EINSUM_MAX);
        in[n].array = json_is_array(v);
        if (in[n].array)
            KEEL_TRY(keel_emit_numbers(e, v, "operands", &in[n].value));
        else if (x.value < 0)
            return keel_fail(KEEL_EUNSUP, "operands: values of the model and arrays are supported");
        else
            in[n].value = x.value;
    }
    if (n == 0) return keel_fail(KEEL_EARG, "it needs an operand");
    return keel_emit_einsum(e, a->subscripts, in, n);
}

KEEL_ARGS_OPERATION(ops_einsum, "Einsum", "numpy", KEEL_EINSUM_MAX,
                    "Sums of products by Einstein's notation.", .whole = KEEL_WHOLE_KEPT)
