/* Any bytes as a tf.train.Example: every feature, and those of two names. */
#include "base/memory.h"
#include "io/example.h"
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static keel_status each(void *arg, const char *name, size_t n_name, const keel_feature *f)
{
    const unsigned char *text;
    size_t n, at = 0, sum = 0;
    int64_t texts = 0;
    (void)arg;
    for (size_t i = 0; i < n_name; i++) sum += (unsigned char)name[i];
    if (f->kind == KEEL_FEATURE_BYTES) {
        for (; keel_feature_bytes(f, &at, &text, &n); texts++)
            for (size_t i = 0; i < n; i++) sum += text[i];
        if (texts != f->count) __builtin_trap();
    } else if (f->kind) {
        /* Exactly as much room as was counted. */
        const size_t size = f->kind == KEEL_FEATURE_FLOAT ? sizeof(float) : sizeof(int64_t);
        void *values = keel_calloc((size_t)f->count, size);
        if (values && f->kind == KEEL_FEATURE_FLOAT)
            keel_feature_float(f, values);
        else if (values)
            (void)keel_feature_int64(f, values);
        keel_free(values);
    }
    return sum == SIZE_MAX ? KEEL_END : KEEL_OK;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const char *const names[] = { "x", "y" };
    keel_feature f[2];
    (void)keel_example_each(data, size, each, NULL);
    if (keel_example_find(f, names, 2, data, size) >= 0)
        for (int i = 0; i < 2; i++) (void)each(NULL, names[i], 1, &f[i]);
    return 0;
}
