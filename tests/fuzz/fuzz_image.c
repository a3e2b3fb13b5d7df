/* Any bytes as an image, JPEG or PNG, its size, in colour and gray, and resized. */
#include "data/resize.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    keel_scratch scratch = { 0 };
    keel_image image;
    int64_t height, width;
    static float out[7 * 5 * 3];
    static unsigned char bytes[7 * 5 * 3];
    keel_image_size(data, size, &height, &width);
    for (int channels = 1; channels <= 3; channels += 2)
        if (keel_image_decode(&image, data, size, channels, &scratch, 0, "fuzz") >= 0) {
            keel_resize(&image, out, 7, 5, &scratch, 1);
            keel_resize_nearest(&image, bytes, 5, 7);
        }
    keel_scratch_free(&scratch);
    return 0;
}
