/* Any text as entries of the options inputs, sample_weights and features, one a line. */
#include "base/memory.h"
#include "data/choice.h"
#include "data/features.h"
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { MOST = KEEL_FIELDS_MAX };

static bool has(const void *arg, const char *feature)
{
    (void)arg;
    return *feature != 'z';
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const char *line[MOST];
    int n = 0;
    keel_choice *c = NULL;
    char *text = keel_calloc(size + 1, 1);
    if (!text) return 0;
    memcpy(text, data, size);
    for (char *at = text; at && n < MOST; n++) {
        line[n] = at;
        if ((at = strchr(at, '\n'))) *at++ = 0;
    }
    if (keel_choices_read(&c, line, n, "fuzz") >= 0) {
        for (int i = 0; i < n; i++)
            for (int k = 0; k < c[i].n_part; k++)
                if (!*c[i].name || !*c[i].part[k]) __builtin_trap();
        keel_choices_free(c, n);
    }
    const keel_dataset_options o = {
        .sample_weights = line, .n_sample_weight = n, .features = line, .n_feature = n
    };
    if (keel_choices_weights(&c, &o) >= 0) keel_choices_free(c, n);
    if (keel_feature_types_check(&o, has, NULL, "fuzz") >= 0)
        for (int i = 0; i < n; i++) {
            keel_feature_type t;
            char name[256] = "";
            memcpy(name, line[i], strcspn(line[i], "="));
            if (keel_feature_type_find(&t, &o, name) < 0 || !(t.typed || t.shaped))
                __builtin_trap();
        }
    keel_free(text);
    if (keel_memory_live() != 0) __builtin_trap();
    return 0;
}
