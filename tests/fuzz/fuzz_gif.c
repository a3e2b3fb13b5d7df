/* Any bytes as a GIF, whatever they begin with: its size, and its pixels with and without alpha. */
#include "data/codecs/image.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    keel_scratch scratch = { 0 };
    keel_image image;
    int64_t height = 0, width = 0;
    const bool told = keel_gif_size(data, size, &height, &width);
    for (int channels = 3; channels <= 4; channels++) {
        if (keel_gif_decode(&image, data, size, channels, &scratch, 0, "fuzz") < 0) continue;
        if (told && (image.height != height || image.width != width)) __builtin_trap();
        volatile unsigned char last = image.pixels[image.height * image.width * channels - 1];
        (void)last;
    }
    keel_scratch_free(&scratch);
    return 0;
}
