/* Any bytes as TOML: what is read can be written as JSON. */
#include "io/toml.h"
#include <stdint.h>
#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    json_t *v;
    if (keel_toml_parse(&v, (const char *)data, size, "fuzz") < 0) return 0;
    char *text = json_dumps(v, JSON_ENCODE_ANY);
    if (!text) __builtin_trap();
    free(text);
    json_decref(v);
    return 0;
}
