/* Element types: size and Keras's name of each, in one table. */
#include "tensor/dtype.h"
#include "base/error.h"
#include <string.h>

static const struct {
    const char *name;
    size_t size;
} types[KEEL_DTYPE_COUNT + 2] = {
    [KEEL_FLOAT32] = { "float32", 4 }, [KEEL_FLOAT64] = { "float64", 8 },
    [KEEL_UINT8] = { "uint8", 1 },     [KEEL_INT32] = { "int32", 4 },
    [KEEL_INT64] = { "int64", 8 },     [KEEL_BOOL] = { "bool", 1 },
    [KEEL_STRING] = { "string", 16 },  [KEEL_BFLOAT16] = { "bfloat16", 2 },
    [KEEL_FLOAT16] = { "float16", 2 },
};

static bool known(keel_dtype t)
{
    return (unsigned)t <= KEEL_FLOAT16;
}

size_t keel_dtype_size(keel_dtype t)
{
    return known(t) ? types[t].size : 0;
}

const char *keel_dtype_name(keel_dtype t)
{
    return known(t) ? types[t].name : "?";
}

keel_status keel_dtype_find(keel_dtype *out, const char *name)
{
    for (int i = 0; i < KEEL_DTYPE_COUNT; i++)
        if (!strcmp(types[i].name, name)) {
            *out = (keel_dtype)i;
            return KEEL_OK;
        }
    return keel_fail(
        KEEL_EUNSUP,
        "dtype '%.40s' is not supported; supported are float32, float64, uint8, int32, "
        "int64, bool and string",
        name);
}

bool keel_dtype_find_narrow(keel_dtype *out, const char *name)
{
    static const keel_dtype narrow[] = { KEEL_BFLOAT16, KEEL_FLOAT16 };
    for (int i = 0; i < 2; i++) {
        if (strcmp(keel_dtype_name(narrow[i]), name)) continue;
        *out = narrow[i];
        return true;
    }
    return false;
}

bool keel_dtype_is_real(keel_dtype t)
{
    return t == KEEL_FLOAT32 || t == KEEL_FLOAT64;
}

bool keel_dtype_is_narrow(keel_dtype t)
{
    return t == KEEL_BFLOAT16 || t == KEEL_FLOAT16;
}

bool keel_dtype_flows(keel_dtype t)
{
    return keel_dtype_is_real(t) || keel_dtype_is_narrow(t);
}
