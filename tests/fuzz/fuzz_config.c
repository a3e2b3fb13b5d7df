/* Any text as config.json: read into a model, and where that works emitted, written, read again. */
#include "base/memory.h"
#include "model/parts.h"
#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static keel_model *model_of(json_t *config)
{
    keel_model *m = NULL;
    if (keel_model_create(&m, NULL, KEEL_FLOAT32, 0) < 0) __builtin_trap();
    m->file_config = config;
    if (keel_model_read_root(m) >= 0) return m;
    keel_model_destroy(m);
    return NULL;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    json_error_t error;
    json_t *config = json_loadb((const char *)data, size, JSON_REJECT_DUPLICATES, &error);
    keel_value in[KEEL_OUTPUTS_MAX], out[KEEL_OUTPUTS_MAX], mask[KEEL_OUTPUTS_MAX];
    keel_model_emission e = {
        .real = KEEL_FLOAT32, .training = true, .input = in, .output = out, .mask = mask
    };
    char *text = NULL;
    if (!config) return 0;
    keel_model *m = model_of(config);
    if (!m) return 0;
    if (keel_model_emit(m, &e) < 0) __builtin_trap();
    keel_graph_destroy(e.graph);
    if (keel_model_summary(m, &text) >= 0) keel_model_summary_free(text);
    json_t *written = NULL;
    if (keel_model_to_config(m, &written) < 0) __builtin_trap();
    json_decref(m->file_config); /* once as loaded, once as if built here */
    m->file_config = NULL;
    json_t *built = NULL;
    if (keel_model_to_config(m, &built) < 0) __builtin_trap();
    keel_model *a = model_of(written), *b = model_of(built);
    if (!a || !b || a->n_node != m->n_node || b->n_node != m->n_node) __builtin_trap();
    keel_model_destroy(a);
    keel_model_destroy(b);
    keel_model_destroy(m);
    if (keel_memory_live() != 0) __builtin_trap();
    return 0;
}
