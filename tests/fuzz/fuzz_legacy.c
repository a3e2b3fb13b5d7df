/* Any text as {"model": ..., "training": ...}, the configurations of an older HDF5 file: turned
 * into today's form and read into a model, which is emitted and written. */
#include "base/memory.h"
#include "model/parts.h"
#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    json_error_t error;
    json_t *both = json_loadb((const char *)data, size, JSON_REJECT_DUPLICATES, &error);
    json_t *config = json_object_get(both, "model"), *written = NULL;
    keel_value in[KEEL_OUTPUTS_MAX], out[KEEL_OUTPUTS_MAX], mask[KEEL_OUTPUTS_MAX];
    keel_model_emission e = {
        .real = KEEL_FLOAT32, .training = true, .input = in, .output = out, .mask = mask
    };
    keel_model *m = NULL;
    if (!config) {
        json_decref(both);
        return 0;
    }
    if (keel_model_create(&m, NULL, KEEL_FLOAT32, 0) < 0) __builtin_trap();
    m->file_config = json_incref(config);
    if (keel_legacy_config(config, json_object_get(both, "training")) >= 0 &&
        keel_model_read_root(m) >= 0) {
        if (keel_model_emit(m, &e) < 0) __builtin_trap();
        keel_graph_destroy(e.graph);
        if (keel_model_to_config(m, &written) < 0) __builtin_trap();
        json_decref(written);
    }
    keel_model_destroy(m);
    json_decref(both);
    if (keel_memory_live() != 0) __builtin_trap();
    return 0;
}
