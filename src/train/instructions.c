/* Limits and names the instruction set and the vendor library in use. */
#include "base/memory.h"
#include "comm/comm.h"
#include "device/cpu/cpu.h"
#include "graph/tuned.h"
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

const char *keel_instructions(void)
{
    return keel_cpu_isa_name(keel_cpu_level());
}

bool keel_instructions_tuned(void)
{
    for (const keel_tuned *t = keel_tuned_rows; t->level; t++)
        if (!strcmp(t->level, keel_instructions())) return true;
    return false;
}

static void stay_open(void *context, bool failed)
{
    (void)context, (void)failed;
}

/* Where all have one set nothing is limited, so that oneDNN is as free as without this. */
static keel_status use_least(const int64_t *level, int n)
{
    int64_t least = KEEL_CPU_ISAS, most = -1;
    for (int q = 0; q < n; q++) {
        if (level[q] < 0 || level[q] >= KEEL_CPU_ISAS)
            return keel_fail(KEEL_EREMOTE, "process %d has an unknown instruction set", q);
        least = level[q] < least ? level[q] : least;
        most = level[q] > most ? level[q] : most;
    }
    if (least < most) keel_cpu_limit((keel_cpu_isa)least);
    return KEEL_OK;
}

keel_status keel_instructions_common(const keel_process_group *group)
{
    keel_process_group kept = *group;
    keel_comm *c = NULL;
    const int64_t own = keel_cpu_level();
    kept.close = group->close ? stay_open : NULL;
    KEEL_TRY(keel_comm_create(&c, &kept));
    const int n = group->count;
    int64_t *level = keel_calloc((size_t)n, sizeof *level);
    keel_status s = n > 1 || !level
                        ? keel_comm_agree(c, level ? KEEL_OK : KEEL_ENOMEM, &own, 1, level)
                        : KEEL_OK;
    if (s >= 0 && n > 1) s = use_least(level, n);
    keel_free(level);
    keel_comm_destroy(c);
    return s;
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
