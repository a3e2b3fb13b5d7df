/* Any text as the list of raw(...) and synthetic(...). */
#include "base/memory.h"
#include "keel/dataset.h"
#include <stdio.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const char *const schemes[] = { "raw", "synthetic" };
    char spec[600];
    if (size > 500) return 0;
    for (int i = 0; i < 2; i++) {
        keel_dataset *d = NULL;
        snprintf(spec, sizeof spec, "%s%.*s%s", schemes[i], (int)size, (const char *)data,
                 i ? "" : ":/proc/version");
        if (spec[strlen(schemes[i])] == '(' && keel_dataset_open(&d, spec, NULL) >= 0)
            keel_dataset_destroy(d);
    }
    if (keel_memory_live() != 0) __builtin_trap();
    return 0;
}
