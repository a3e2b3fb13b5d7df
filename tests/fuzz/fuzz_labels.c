/* Any bytes as a file of labels. */
#include "base/memory.h"
#include "data/folders.h"
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    int32_t *label = NULL;
    int64_t n = 0;
    char *text = keel_calloc(size + 1, 1);
    if (!text) return 0;
    memcpy(text, data, size);
    if (keel_labels_parse(&label, &n, 100, text, size, "fuzz") >= 0 && n > 100) __builtin_trap();
    keel_free(label);
    keel_free(text);
    return 0;
}
