/* Any bytes as an image, JPEG or PNG, in colour and gray, and resized. */
#include "data/resize.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    keel_scratch scratch = { 0 };
    keel_image image;
    static float out[7 * 5 * 3];
    for (int channels = 1; channels <= 3; channels += 2)
        if (keel_image_decode(&image, data, size, channels, &scratch, 0, "fuzz") >= 0) {
            keel_resize(&image, out, 7, 5, KEEL_BILINEAR, &scratch, 1);
            keel_resize(&image, out, 5, 7, KEEL_NEAREST, &scratch, 1);
        }
    keel_scratch_free(&scratch);
    return 0;
}
