/* Any bytes as the vocabulary of a lookup layer, of texts and of numbers, and as a row of it. The
 * first byte says the options. */
#include "layers/preprocessing/_lookup.h"
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static char mask[] = "m", oov[] = "[UNK]";
    if (!size) return 0;
    const uint8_t options = *data;
    for (int texts = 0; texts < 2; texts++) {
        keel_lookup_args a = { .texts = texts,
                               .max_tokens = options & 1 ? 20 : KEEL_INT_NULL,
                               .num_oov_indices = options >> 1 & 3,
                               .mask_token = options & 8 ? mask : NULL,
                               .oov_token = oov,
                               .mask_number = options & 8 ? 0 : KEEL_INT_NULL,
                               .oov_number = -1,
                               .oov_method = options >> 4 & 1,
                               .output_mode = KEEL_CATEGORY_INT,
                               .vocabulary_size = KEEL_INT_NULL };
        const char *text = (const char *)data + 1;
        const int64_t number = (int64_t)size;
        int64_t index = 0, most = (int64_t)size + 8;
        const keel_string row = texts ? (keel_string){ text, (int64_t)size - 1 }
                                      : (keel_string){ (const char *)&number, sizeof number };
        if (keel_lookup_read_asset(&a, text, size - 1) >= 0 &&
            keel_lookup_index(&a, &row, &index) >= 0 && (index < 0 || index > most))
            __builtin_trap(); /* an index that no vocabulary of so many bytes has */
        keel_lookup_release(&a);
    }
    return 0;
}
