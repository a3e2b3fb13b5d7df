/* See png_write.h. */
#include "io/png_write.h"
#include "base/memory.h"
#include <spng.h>
#include <stdlib.h>
#include <string.h>

enum { SIDE_MAX = 65535 };

static keel_status encode(spng_ctx *c, struct spng_ihdr head, const unsigned char *pixel,
                          size_t bytes)
{
    int error = c ? spng_set_option(c, SPNG_ENCODE_TO_BUFFER, 1) : SPNG_EMEM;
    if (!error) error = spng_set_ihdr(c, &head);
    if (!error) error = spng_encode_image(c, pixel, bytes, SPNG_FMT_PNG, SPNG_ENCODE_FINALIZE);
    if (!error) return KEEL_OK;
    return keel_fail(error == SPNG_EMEM ? KEEL_ENOMEM : KEEL_EIO, "writing an image: %s",
                     spng_strerror(error));
}

keel_status keel_png_write(void **out, size_t *n_bytes, const unsigned char *pixel, int64_t height,
                           int64_t width, int channels)
{
    const bool fits = height > 0 && height <= SIDE_MAX && width > 0 && width <= SIDE_MAX &&
                      (channels == 1 || channels == 3 || channels == 4);
    if (!fits || height * width * channels > INT32_MAX / 2)
        return keel_fail(KEEL_EARG, "an image of %lld x %lld x %d cannot be a PNG",
                         (long long)height, (long long)width, channels);
    const struct spng_ihdr head = {
        .width = (uint32_t)width,
        .height = (uint32_t)height,
        .bit_depth = 8,
        .color_type = channels == 1   ? SPNG_COLOR_TYPE_GRAYSCALE
                      : channels == 3 ? SPNG_COLOR_TYPE_TRUECOLOR
                                      : SPNG_COLOR_TYPE_TRUECOLOR_ALPHA,
    };
    int error = 0;
    spng_ctx *c = spng_ctx_new(SPNG_CTX_ENCODER);
    keel_status s = encode(c, head, pixel, (size_t)(height * width * channels));
    void *file = s < 0 ? NULL : spng_get_png_buffer(c, n_bytes, &error);
    *out = file ? keel_calloc(*n_bytes, 1) : NULL;
    if (s >= 0 && !*out) s = keel_fail(KEEL_ENOMEM, "out of memory writing an image");
    if (s >= 0) memcpy(*out, file, *n_bytes);
    free(file);
    spng_ctx_free(c);
    return s;
}
