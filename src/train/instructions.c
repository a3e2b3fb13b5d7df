/* Names the instruction set and the vendor library in use. */
#include "base/error.h"
#include "device/cpu/cpu.h"
#include "keel/train.h"
#include <stdio.h>
#include <string.h>

keel_status keel_instructions_limit(const char *name)
{
    for (int i = 0; name && i < KEEL_CPU_ISAS; i++)
        if (!strcmp(name, keel_cpu_isa_name((keel_cpu_isa)i))) {
            keel_cpu_limit((keel_cpu_isa)i);
            return KEEL_OK;
        }
    return keel_fail(KEEL_EARG, "instructions '%s': use base, avx2, avx512, avx512_bf16 or amx",
                     name ? name : "");
}

const char *keel_computes_with(void)
{
    static _Thread_local char text[80];
#ifdef KEEL_HAVE_DNNL
    snprintf(text, sizeof text, "%s, oneDNN %s", keel_cpu_isa_name(keel_cpu_level()),
             keel_dnnl_version());
#else
    snprintf(text, sizeof text, "%s, no oneDNN", keel_cpu_isa_name(keel_cpu_level()));
#endif
    return text;
}
