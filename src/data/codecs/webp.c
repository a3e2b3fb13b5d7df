/* WebP by libwebp. One colour takes some 30 bytes, whatever the size of the image, so large images
 * of nearly no bytes are refused. */
#include "data/codecs/image.h"
#include <webp/decode.h>

bool keel_webp_size(const unsigned char *b, size_t n, int64_t *height, int64_t *width)
{
    WebPBitstreamFeatures f;
    if (WebPGetFeatures(b, n, &f) != VP8_STATUS_OK) return false;
    *height = f.height;
    *width = f.width;
    return true;
}

keel_status keel_webp_decode(keel_image *out, const void *data, size_t n_bytes, int channels,
                             keel_scratch *scratch, int buffer, const char *what)
{
    enum { OWN = 4, FREE = 1 << 26, PER_BYTE = 10000 }; /* OWN: bytes of libwebp for a pixel */
    WebPBitstreamFeatures f;
    if (WebPGetFeatures(data, n_bytes, &f) != VP8_STATUS_OK)
        return keel_fail(KEEL_EFORMAT, "%s: decode WebP: no valid header; replace the file", what);
    if (f.has_animation)
        return keel_fail(KEEL_EUNSUP, "%s: an animated WebP; give single images", what);
    KEEL_TRY(keel_image_check_size(f.height, f.width, channels + OWN, what));
    const int64_t count = (int64_t)f.height * f.width;
    if (count > FREE && (uint64_t)count / PER_BYTE > n_bytes)
        return keel_fail(KEEL_EFORMAT,
                         "%s: decode WebP: %d x %d pixels in %zu bytes; remove the file", what,
                         f.height, f.width, n_bytes);
    const size_t line = (size_t)f.width * (size_t)channels, size = line * (size_t)f.height;
    unsigned char *pixels = keel_scratch_reserve(scratch, buffer, size);
    if (!pixels) return KEEL_ENOMEM;
    const uint8_t *done = channels == 4 ? WebPDecodeRGBAInto(data, n_bytes, pixels, size, (int)line)
                                        : WebPDecodeRGBInto(data, n_bytes, pixels, size, (int)line);
    if (!done)
        return keel_fail(KEEL_EFORMAT,
                         "%s: decode WebP: damaged or truncated; replace the file or remove it",
                         what);
    *out = (keel_image){ pixels, f.height, f.width, channels };
    return KEEL_OK;
}
