/* Any bytes as JSON lines; without options, with keys that are named, with words, and with missing
 * values refused, dropped or filled. */
#include "data/sources/jsonl.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const char *const inputs[] = { "a=a.b", "d=d,e", "x" };
    static const keel_vocabulary words = { .column = "d" };
    for (int i = 0; i < 16; i++) {
        keel_dataset_options o = KEEL_DATASET_OPTIONS;
        keel_dataset *d = NULL;
        o.missing = (keel_missing)(i % 4);
        o.inputs = inputs;
        o.n_input = i / 4;
        o.vocabularies = &words;
        o.n_vocabulary = i % 8 == 7;
        o.label_mode = i % 5 ? KEEL_LABEL_INT : KEEL_LABEL_CATEGORICAL;
        if (keel_jsonl_decode(&d, (const char *)data, size, i % 3 ? NULL : "y", &o, "fuzz") >= 0 &&
            keel_dataset_rows(d) > (int64_t)size)
            __builtin_trap(); /* more rows than the text can hold */
        keel_dataset_destroy(d);
    }
    return 0;
}
