/* BMP, the kinds that TensorFlow reads: 24 and 32 bits a pixel, and 8 bits in gray, not compressed.
 * Debian has no library that reads only these. */
#include "data/codecs/image.h"
#include <string.h>

enum {
    PIXELS_AT = 10,
    HEADER_BYTES = 14,
    WIDTH = 18,
    HEIGHT = 22,
    BITS = 28,
    COMPRESSION = 30,
    COLORS = 46,
    MASKS = 54,
    HEAD = 54,
    HEADER_LEAST = 40, /* a BITMAPINFOHEADER; OS/2 has a shorter one */
    PLAIN = 0,
    MASKED = 3
};

static uint32_t u32(const unsigned char *b)
{
    return b[0] | (uint32_t)b[1] << 8 | (uint32_t)b[2] << 16 | (uint32_t)b[3] << 24;
}

bool keel_bmp_size(const unsigned char *b, size_t n, int64_t *height, int64_t *width)
{
    if (n < HEAD || u32(b + HEADER_BYTES) < HEADER_LEAST) return false;
    *width = (int32_t)u32(b + WIDTH);
    *height = (int32_t)u32(b + HEIGHT);
    if (*height < 0) *height = -*height; /* rows from the top */
    return *width > 0 && *height > 0;
}

/* KEEL_EUNSUP names what TensorFlow refuses or would misread. */
static keel_status check_kind(const unsigned char *b, size_t n, int bits, const char *what)
{
    static const unsigned char masks[] = { 0, 0, 255, 0, 0, 255, 0, 0, 255, 0, 0, 0 };
    const uint32_t compression = u32(b + COMPRESSION), header = u32(b + HEADER_BYTES);
    if (bits != 8 && bits != 24 && bits != 32)
        return keel_fail(KEEL_EUNSUP, "%s: a BMP of %d bits a pixel; 24, 32 and 8 in gray are read",
                         what, bits);
    const bool masked = compression == MASKED && bits == 32 && n >= MASKS + sizeof masks &&
                        !memcmp(b + MASKS, masks, sizeof masks);
    if (compression != PLAIN && !masked)
        return keel_fail(KEEL_EUNSUP, "%s: a compressed BMP or one with unusual masks (kind %u)",
                         what, compression);
    if (bits != 8) return KEEL_OK;
    const uint64_t at = UINT64_C(14) + header;
    const uint32_t colors = u32(b + COLORS) ? u32(b + COLORS) : 256;
    if (colors > 256 || at + 4 * (uint64_t)colors > n)
        return keel_fail(KEEL_EFORMAT, "%s: decode BMP: the palette lies outside of the file",
                         what);
    for (uint32_t i = 0; i < colors; i++) {
        const unsigned char *c = b + at + 4 * (size_t)i;
        if (c[0] != i || c[1] != i || c[2] != i)
            return keel_fail(KEEL_EUNSUP,
                             "%s: a BMP with a palette of colours, which TensorFlow would read as "
                             "gray; convert it to 24 bits",
                             what);
    }
    return KEEL_OK;
}

static void copy_row(unsigned char *to, const unsigned char *from, int64_t width, int bytes,
                     int channels)
{
    for (int64_t i = 0; i < width; i++, from += bytes, to += channels) {
        to[0] = from[bytes == 1 ? 0 : 2];
        to[1] = from[bytes == 1 ? 0 : 1];
        to[2] = from[0];
        if (channels == 4) to[3] = bytes == 4 ? from[3] : 255;
    }
}

keel_status keel_bmp_decode(keel_image *out, const void *data, size_t n_bytes, int channels,
                            keel_scratch *scratch, int buffer, const char *what)
{
    const unsigned char *b = data;
    int64_t h, w;
    if (n_bytes >= HEAD && u32(b + HEADER_BYTES) < HEADER_LEAST)
        return keel_fail(KEEL_EUNSUP, "%s: a BMP of OS/2; convert it", what);
    if (!keel_bmp_size(b, n_bytes, &h, &w))
        return keel_fail(KEEL_EFORMAT, "%s: decode BMP: damaged or truncated; replace the file",
                         what);
    const int bits = b[BITS] | b[BITS + 1] << 8;
    KEEL_TRY(check_kind(b, n_bytes, bits, what));
    KEEL_TRY(keel_image_check_size(h, w, channels, what));
    const uint64_t stride = ((uint64_t)w * (uint64_t)(bits / 8) + 3) / 4 * 4;
    const uint64_t at = u32(b + PIXELS_AT);
    if (at < HEAD || at > n_bytes || stride * (uint64_t)h > n_bytes - at)
        return keel_fail(KEEL_EFORMAT,
                         "%s: decode BMP: %lld x %lld pixels do not fit into the %zu bytes of the "
                         "file; replace the file or remove it",
                         what, (long long)h, (long long)w, n_bytes);
    const size_t line = (size_t)w * (size_t)channels;
    unsigned char *pixels = keel_scratch_reserve(scratch, buffer, line * (size_t)h);
    if (!pixels) return KEEL_ENOMEM;
    const bool from_top = (int32_t)u32(b + HEIGHT) < 0;
    for (int64_t y = 0; y < h; y++)
        copy_row(pixels + line * (size_t)y, b + at + stride * (uint64_t)(from_top ? y : h - 1 - y),
                 w, bits / 8, channels);
    *out = (keel_image){ pixels, h, w, channels };
    return KEEL_OK;
}
