/* Any bytes as a CSV; the label is the column "y", or there is none; with a header and without; one
 * input or two, of which one may be of texts; a column of words; missing values refused, dropped or
 * filled. */
#include "base/memory.h"
#include "data/sources/csv.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const char *const labels[] = { "y", NULL };
    for (int mode = KEEL_LABEL_INT; mode <= KEEL_LABEL_NONE; mode++)
        for (int i = 0; i < 8; i++) {
            static const char *const inputs[] = { "a", "b=0-1" };
            static const keel_vocabulary words = { .column = "b" };
            keel_dataset_options o = KEEL_DATASET_OPTIONS;
            keel_dataset *d = NULL;
            o.label_mode = (keel_label_mode)mode;
            o.no_header = i % 4 == 1;
            o.inputs = inputs;
            o.n_input = i % 4 < 2 ? 0 : i % 4 - 1;
            o.class_count = i % 4 == 3 ? 4 : 0;
            o.missing = (keel_missing)((i + mode) % 4);
            o.vocabularies = &words;
            o.n_vocabulary = i >= 4;
            if (keel_csv_decode(&d, (const char *)data, size, labels[i % 2], &o, "fuzz") >= 0 &&
                keel_dataset_rows(d) * keel_dataset_x_shape(d).dim[0] > (int64_t)size + 1)
                __builtin_trap(); /* more numbers than the text can hold */
            keel_dataset_destroy(d);
        }
    return 0;
}
