/* Any bytes as model.weights.h5: checked, and every array read, and texts in attributes. */
#include "base/memory.h"
#include "io/weights_h5.h"
#include "tensor/dtype.h"
#include "tensor/shape.h"
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    keel_weights *w = NULL;
    if (keel_weights_decode(&w, data, size) < 0) return 0;
    for (int64_t i = 0; i < keel_weights_count(w); i++) {
        const keel_weight *a = keel_weights_at(w, i);
        const size_t count = (size_t)keel_shape_count(&a->shape);
        if (count > size || keel_weights_find(w, a->path) != a) __builtin_trap();
        void *out = keel_calloc(count, keel_dtype_size(a->dtype));
        if (out) keel_weight_copy(a, out);
        keel_free(out);
    }
    static const char *const names[] = { "model_config", "weight_names", "name" };
    for (int i = 0; i < 3; i++) {
        keel_h5_text *texts = NULL;
        size_t count = 0, seen = 0;
        if (keel_weights_texts(w, "", names[i], &texts, &count) < 0) continue;
        for (size_t k = 0; k < count; k++)
            if (texts[k].n_bytes > size || memchr(texts[k].at, 1, texts[k].n_bytes)) seen++;
        if (seen > count) __builtin_trap();
        keel_free(texts);
    }
    keel_weights_destroy(w);
    return 0;
}
