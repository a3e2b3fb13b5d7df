/* Any bytes as an image of any format, its size, in colour, gray and with alpha, and resized; and
 * the memory that its head, whole or cut, says it takes. */
#include "data/photo.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const keel_resample to[] = {
        { 7, 5, KEEL_BILINEAR, false, false }, { 7, 5, KEEL_NEAREST, true, false },
        { 7, 5, KEEL_BICUBIC, true, false },   { 7, 5, KEEL_AREA, false, true },
        { 7, 5, KEEL_LANCZOS5, false, true },  { 7, 5, KEEL_GAUSSIAN, false, false },
    };
    keel_scratch scratch = { 0 };
    keel_image image;
    int64_t height, width;
    static float out[7 * 5 * 4];
    static unsigned char bytes[7 * 5 * 4];
    keel_image_size(data, size, &height, &width);
    for (int way = 0; way < 16; way++) { /* as a row, straight from the file */
        const keel_photo photo = { .height = 7,
                                   .width = 5,
                                   .channels = way % 2 ? 3 : 1,
                                   .crop = way & 2,
                                   .pad = way & 4,
                                   .shrinks = way & 8,
                                   .exact = way == 3 };
        keel_data_field field = { 0 };
        int64_t needs;
        keel_photo_needs(&photo, data, way % 3 ? size : size / 2, size, &needs);
        if (needs < 0) __builtin_trap();
        keel_photo_field(&photo, &field);
        keel_photo_read(&photo, &field, data, size, out, field.dtype, &scratch, "fuzz");
    }
    for (int channels = 1; channels <= 4; channels += channels == 1 ? 2 : 1) {
        if (keel_image_decode(&image, data, size, channels, &scratch, 0, "fuzz") < 0) continue;
        if (image.channels != channels) __builtin_trap();
        for (size_t i = 0; i < sizeof to / sizeof *to; i++) {
            keel_image own = image; /* a crop moves the pixels; their number stays */
            if (keel_resample_keeps_bytes(&to[i], own.height, own.width))
                keel_resample_bytes(&to[i], &own, bytes);
            else
                keel_resample_floats(&to[i], &own, out, &scratch, 1);
        }
    }
    keel_scratch_free(&scratch);
    return 0;
}
