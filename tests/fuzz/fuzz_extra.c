/* Any text as keel.json: read into a model, and where that works written and read again. */
#include "base/memory.h"
#include "model/parts.h"
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    keel_model *m = NULL;
    char *text = NULL;
    if (keel_model_create(&m, NULL, KEEL_FLOAT32, 0) < 0) return 0;
    if (keel_model_read_extra(m, (const char *)data, size) >= 0) {
        const int64_t n = keel_model_class_count(m);
        if (keel_model_extra_text(m, &text) < 0) __builtin_trap();
        if (keel_model_read_extra(m, text, strlen(text)) < 0) __builtin_trap();
        if (keel_model_class_count(m) != n) __builtin_trap();
        free(text); /* of jansson */
    }
    keel_model_destroy(m);
    if (keel_memory_live() != 0) __builtin_trap();
    return 0;
}
