/* PNG by libspng, to 8 bits; alpha is dropped, as TensorFlow does for three channels, unless four
 * are requested. */
#define _GNU_SOURCE /* memmem */
#include "data/codecs/png.h"
#include "data/warnings.h"
#include <string.h>

/* Colour to gray as in TensorFlow's decoder (libpng), truncated. 16-bit samples are weighted and
 * rounded before they become 8 bits. */
enum { RED = KEEL_GRAY_RED, GREEN = KEEL_GRAY_GREEN, BLUE = 32768 - RED - GREEN };

static void gray_from_rgba16(unsigned char *pixels, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        uint16_t p[4];
        memcpy(p, pixels + 8 * i, sizeof p);
        const uint32_t y = (uint32_t)RED * p[0] + (uint32_t)GREEN * p[1] + (uint32_t)BLUE * p[2];
        pixels[i] = (unsigned char)(((y + 16384) >> 15) >> 8);
    }
}

int keel_png_format(const struct spng_ihdr *h, int channels, int *pixel_bytes)
{
    const bool plain = h->color_type == SPNG_COLOR_TYPE_GRAYSCALE && h->bit_depth <= 8;
    const bool deep = h->color_type & 2 && h->bit_depth == 16; /* bit 2: colour */
    const int format = channels == 4                       ? SPNG_FMT_RGBA8
                       : channels == 3 || !(plain || deep) ? SPNG_FMT_RGB8
                       : plain                             ? SPNG_FMT_G8
                                                           : SPNG_FMT_RGBA16;
    *pixel_bytes = format == SPNG_FMT_G8      ? 1
                   : format == SPNG_FMT_RGB8  ? 3
                   : format == SPNG_FMT_RGBA8 ? 4
                                              : 8;
    return format;
}

keel_status keel_png_decode(keel_image *out, const void *data, size_t n_bytes, int channels,
                            keel_scratch *scratch, int buffer, const char *what)
{
    keel_status s = KEEL_OK;
    struct spng_ihdr h;
    size_t size;
    int r, pixel_bytes;
    unsigned char *pixels;
    struct spng_alloc alloc = keel_png_alloc();
    keel_png_begin(scratch->account);
    spng_ctx *c = spng_ctx_new2(&alloc, 0);
    if (!c) return KEEL_ENOMEM;
    spng_set_image_limits(c, KEEL_IMAGE_SIDE_MAX, KEEL_IMAGE_SIDE_MAX);
    spng_set_chunk_limits(c, 64 << 20, 64 << 20);
    spng_set_crc_action(c, SPNG_CRC_ERROR, SPNG_CRC_USE);
    if ((r = spng_set_png_buffer(c, data, n_bytes)) || (r = spng_get_ihdr(c, &h))) goto damaged;
    const int format = keel_png_format(&h, channels, &pixel_bytes);
    if ((s = keel_image_check_size(h.height, h.width, pixel_bytes, what)) < 0) goto out;
    const size_t count = (size_t)h.height * h.width;
    if ((r = spng_decoded_image_size(c, format, &size))) goto damaged;
    if (size != count * (size_t)pixel_bytes) {
        r = SPNG_EINTERNAL;
        goto damaged;
    }
    if (!(pixels = keel_scratch_reserve(scratch, buffer, size))) {
        s = KEEL_ENOMEM;
        goto out;
    }
    if ((r = spng_decode_image(c, pixels, size, format, channels == 4 ? SPNG_DECODE_TRNS : 0)))
        goto damaged;
    if (!memmem(data, n_bytes, "IEND", 4))
        keel_warn(scratch, what, "PNG: cut short behind its pixels");
    if (channels == 1 && format == SPNG_FMT_RGB8) keel_image_gray(pixels, count);
    if (format == SPNG_FMT_RGBA16) gray_from_rgba16(pixels, count);
    *out = (keel_image){ pixels, h.height, h.width, channels };
    goto out;
damaged:
    s = keel_png_was_short()
            ? KEEL_ENOMEM
            : keel_fail(KEEL_EFORMAT, "%s: decode PNG: %s; replace the file or remove it", what,
                        spng_strerror(r));
out:
    spng_ctx_free(c);
    return s;
}
