/* Any bytes as TF_CONFIG: what keel says of it is one line of plain text. */
#include "keel/launcher.h"
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char out[300], *text = malloc(size + 1);
    if (!text) return 0;
    memcpy(text, data, size);
    text[size] = 0;
    setenv("TF_CONFIG", text, 1);
    free(text);
    if (keel_launch_refuses_tensorflow(out, sizeof out, "keel fit ...") &&
        !memchr(out, 0, sizeof out))
        __builtin_trap();
    return 0;
}
