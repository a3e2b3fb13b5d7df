/* Turns typed arguments of C calls into the JSON that a Keras file would have, so that one reader,
 * that of the field table, checks both. */
#include "base/args.h"
#include <math.h>

static keel_status one(const keel_arg *a, json_t **out)
{
    json_error_t error;
    json_t *v = NULL;
    switch (a->kind) {
    case KEEL_ARG_IS_INT:
        v = json_integer(a->number);
        break;
    case KEEL_ARG_IS_FLOAT:
        if (!isfinite(a->real)) return keel_fail(KEEL_EARG, "%s: %g is no number", a->key, a->real);
        v = json_real(a->real);
        break;
    case KEEL_ARG_IS_BOOL:
        v = json_boolean(a->number != 0);
        break;
    case KEEL_ARG_IS_STR:
        if (a->text && !(v = json_string(a->text)))
            return keel_fail(KEEL_EARG, "%s: the text is not UTF-8", a->key);
        if (!a->text) v = json_null();
        break;
    case KEEL_ARG_IS_INTS:
        if (a->number < 0 || a->number > KEEL_ARG_INTS_MAX)
            return keel_fail(KEEL_EARG, "%s: %lld numbers, at most %d", a->key,
                             (long long)a->number, KEEL_ARG_INTS_MAX);
        v = json_array();
        for (int64_t i = 0; v && i < a->number; i++)
            if (json_array_append_new(v, json_integer(a->ints[i]))) {
                json_decref(v);
                v = NULL;
            }
        break;
    case KEEL_ARG_IS_JSON:
        v = a->text ? json_loads(a->text, JSON_DECODE_ANY | JSON_REJECT_DUPLICATES, &error) : NULL;
        if (!v) return keel_fail(KEEL_EARG, "%s: not valid JSON", a->key);
        break;
    default:
        return keel_fail(KEEL_EARG, "%s: unknown kind of argument %d", a->key, (int)a->kind);
    }
    if (!v) return keel_fail(KEEL_ENOMEM, "out of memory reading argument %s", a->key);
    *out = v;
    return KEEL_OK;
}

keel_status keel_args_json(const keel_arg *args, json_t **out)
{
    keel_status s = KEEL_OK;
    json_t *all = json_object();
    if (!all) return keel_fail(KEEL_ENOMEM, "out of memory reading arguments");
    for (; args && args->key; args++) {
        json_t *v = NULL;
        if (json_object_get(all, args->key)) {
            s = keel_fail(KEEL_EARG, "argument %s is given twice", args->key);
            goto out;
        }
        if ((s = one(args, &v)) < 0) goto out;
        if (json_object_set_new(all, args->key, v)) {
            s = keel_fail(KEEL_EARG, "argument name is not UTF-8");
            goto out;
        }
    }
    *out = all;
    all = NULL;
out:
    json_decref(all);
    return s;
}
