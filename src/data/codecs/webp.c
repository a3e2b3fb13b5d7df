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

/* What libwebp 1.2 allocates. Lossy: a row of macroblocks with those that the filter still needs.
 * Lossless: all pixels, and tables of codes; how many is only known by decoding, so it is what
 * encoders make of photos, and a file made to have more takes more than is counted. The alpha of a
 * lossy image is lossless, and is kept whole twice. */
int64_t keel_webp_own(const void *head, size_t n_head, size_t n_bytes)
{
    enum {
        FIXED = 16 << 10,
        MACROBLOCK = 16,
        EACH = 2048,
        LOSSY = 1,
        LINES = 17,
        ARGB = 4,
        PIXELS = 1 << 15, /* of a set of codes */
        CODES = 12 << 10, /* bytes of its tables */
        CODES_FIXED = 48 << 10
    };
    WebPBitstreamFeatures f;
    if (WebPGetFeatures(head, n_head, &f) != VP8_STATUS_OK) return 0;
    if (!f.format && n_head < n_bytes) return 0; /* the pixels begin behind the head */
    const int64_t w = f.width, h = f.height, count = w * h;
    const int64_t codes = CODES_FIXED + count / PIXELS * CODES,
                  lossless = ARGB * (count + LINES * w) + codes;
    if (f.format != LOSSY) return FIXED + lossless;
    const int64_t row = FIXED + (w + MACROBLOCK - 1) / MACROBLOCK * EACH;
    return f.has_alpha ? row + 2 * count + lossless : row;
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
    const int64_t own = keel_webp_own(data, n_bytes, n_bytes);
    unsigned char *pixels = keel_scratch_reserve(scratch, buffer, size);
    if (!pixels || !keel_account_take(scratch->account, own)) return KEEL_ENOMEM;
    const uint8_t *done = channels == 4 ? WebPDecodeRGBAInto(data, n_bytes, pixels, size, (int)line)
                                        : WebPDecodeRGBInto(data, n_bytes, pixels, size, (int)line);
    keel_account_give(scratch->account, own);
    if (!done)
        return keel_fail(KEEL_EFORMAT,
                         "%s: decode WebP: damaged or truncated; replace the file or remove it",
                         what);
    *out = (keel_image){ pixels, f.height, f.width, channels };
    return KEEL_OK;
}
