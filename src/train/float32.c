/* Describes the effect of --float32 on this processor. */
#include "device/cpu/cpu.h"
#include "graph/tuned.h"
#include "keel/train.h"
#include <string.h>

static bool measured(const char *level)
{
    for (const keel_tuned *t = keel_tuned_rows; t->level; t++)
        if (!strcmp(t->level, level) && *t->kernel[KEEL_FLOAT32_EXACT]) return true;
    return false;
}

const char *keel_float32_in_force(keel_float32 float32)
{
    if (float32 == KEEL_FLOAT32_FMA) return "fma";
    if (keel_cpu_level() < KEEL_CPU_AMX) return "fma (no AMX on this processor)";
    if (float32 == KEEL_FLOAT32_FAST)
        return "fast: three bfloat16 products by AMX in large layers, about 16 bits; else fma";
    if (!measured(keel_cpu_isa_name(KEEL_CPU_AMX)))
        return "fma (exact products by AMX were not measured yet: see make tune)";
    return "exact: six bfloat16 products by AMX where they measured faster, else fma";
}
