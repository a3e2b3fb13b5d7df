/* Any bytes as a number: what is read of them has the double of strtod. */
#include "io/number.h"
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char *text = malloc(size + 1);
    double got = 0;
    if (!text) return 0;
    if (size) memcpy(text, data, size);
    text[size] = 0;
    char *end = (char *)keel_number_scan(text, text + size, &got);
    if (end > text) {
        *end = 0;
        const double want = strtod(text, NULL);
        if (memcmp(&got, &want, sizeof got)) __builtin_trap();
    }
    free(text);
    return 0;
}
