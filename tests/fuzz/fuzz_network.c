/* Any text as that of a network: what is read lies in the range that is checked. */
#include "simulate/timeline.h"
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char text[512];
    keel_network n;
    if (size >= sizeof text) return 0;
    memcpy(text, data, size);
    text[size] = 0;
    if (keel_network_parse(&n, text) >= 0 && keel_network_check(&n) < 0) __builtin_trap();
    return 0;
}
