/* Any bytes as a list of rows that are left out. */
#include "base/memory.h"
#include "data/quarantine.h"
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static keel_status each(void *context, const char *file, int64_t row)
{
    if (row < -1 || strchr(file, '\n')) __builtin_trap();
    keel_row_set_add(context, file, row);
    if (!keel_row_set_has(context, file, row)) __builtin_trap();
    return KEEL_OK;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    keel_row_set rows = { 0 };
    keel_quarantine_parse((const char *)data, size, "fuzz", each, &rows);
    keel_row_set_free(&rows);
    if (keel_memory_live() != 0) __builtin_trap();
    return 0;
}
