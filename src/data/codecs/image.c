/* Chooses the codec by the first bytes of a file, not by its name. */
#include "data/codecs/image.h"
#include "data/codecs/jpeg.h"
#include "data/codecs/png.h"
#include "data/work.h"
#include "io/kind.h"
#include <ctype.h>
#include <string.h>

keel_status keel_image_check_size(int64_t height, int64_t width, int64_t pixel_bytes,
                                  const char *what)
{
    if (height < 1 || width < 1)
        return keel_fail(KEEL_EFORMAT, "%s: an image without pixels", what);
    if (height > KEEL_IMAGE_SIDE_MAX || width > KEEL_IMAGE_SIDE_MAX ||
        height * width * pixel_bytes > KEEL_IMAGE_BYTES_MAX)
        return keel_fail(
            KEEL_EFORMAT,
            "%s: %lld x %lld pixels are more than is read (%d a side, 1 GiB to decode, "
            "at %lld bytes a pixel)",
            what, (long long)height, (long long)width, KEEL_IMAGE_SIDE_MAX, (long long)pixel_bytes);
    return KEEL_OK;
}

void keel_image_gray(unsigned char *pixels, size_t count)
{
    enum { RED = KEEL_GRAY_RED, GREEN = KEEL_GRAY_GREEN, BLUE = 32768 - RED - GREEN };
    for (size_t i = 0; i < count; i++) {
        const unsigned char *p = pixels + 3 * i;
        pixels[i] = (unsigned char)((RED * p[0] + GREEN * p[1] + BLUE * p[2]) >> 15);
    }
}

/* ---- the formats -------------------------------------------------------------------------------
 */

static bool png_size(const unsigned char *b, size_t n, int64_t *height, int64_t *width)
{
    enum { WIDTH = 16, HEIGHT = 20, HEAD = 24 }; /* IHDR is the first chunk */
    if (n < HEAD) return false;
    *height = (int64_t)b[HEIGHT] << 24 | b[HEIGHT + 1] << 16 | b[HEIGHT + 2] << 8 | b[HEIGHT + 3];
    *width = (int64_t)b[WIDTH] << 24 | b[WIDTH + 1] << 16 | b[WIDTH + 2] << 8 | b[WIDTH + 3];
    return true;
}

static int64_t jpeg_own(const void *head, size_t n_head, size_t n_bytes)
{
    keel_jpeg_head h;
    (void)n_bytes;
    return keel_jpeg_look(&h, head, n_head) ? keel_jpeg_own(&h) : 0;
}

typedef struct format {
    struct {
        int at, n;
        const char *bytes;
    } magic[2];
    keel_image_decoder *decode;
    keel_image_sizer *size;
    bool has_gray, has_alpha; /* decode takes 1, or 4 channels */
    int64_t (*own)(const void *head, size_t n_head, size_t n_bytes); /* NULL: nothing */
} format;

static const format formats[] = {
    { { { 0, 3, "\xff\xd8\xff" } }, keel_jpeg_decode, keel_jpeg_size, true, false, jpeg_own },
    { { { 0, 4, "\x89PNG" } }, keel_png_decode, png_size, true, true, keel_png_own },
    { { { 0, 4, "GIF8" } }, keel_gif_decode, keel_gif_size, false, true, keel_gif_own },
    { { { 0, 4, "RIFF" }, { 8, 4, "WEBP" } },
      keel_webp_decode,
      keel_webp_size,
      false,
      true,
      keel_webp_own },
    { { { 0, 2, "BM" } }, keel_bmp_decode, keel_bmp_size, false, true, NULL },
};

static const format *find(const unsigned char *b, size_t n)
{
    for (size_t i = 0; i < sizeof formats / sizeof *formats; i++) {
        bool is = true;
        for (int k = 0; k < 2; k++) {
            const size_t at = (size_t)formats[i].magic[k].at, m = (size_t)formats[i].magic[k].n;
            is = is && n >= at + m && (!m || !memcmp(b + at, formats[i].magic[k].bytes, m));
        }
        if (is) return &formats[i];
    }
    return NULL;
}

bool keel_image_begins(const void *data, size_t n_bytes)
{
    return find(data, n_bytes) != NULL;
}

bool keel_image_size(const void *data, size_t n_bytes, int64_t *height, int64_t *width)
{
    const format *f = find(data, n_bytes);
    return f && f->size(data, n_bytes, height, width);
}

/* Bytes of a pixel while it is decoded. */
static int pixel_bytes_of(const format *f, const unsigned char *b, int channels)
{
    enum { DEPTH = 24, COLOR = 25 };
    int n = channels == 1 && !f->has_gray ? 3 : channels;
    if (f->decode != keel_png_decode) return n;
    const struct spng_ihdr h = { .bit_depth = b[DEPTH], .color_type = b[COLOR] };
    keel_png_format(&h, channels, &n);
    return n;
}

bool keel_image_look(keel_image_head *out, const void *head, size_t n_head, size_t n_bytes,
                     int channels)
{
    const format *f = find(head, n_head);
    *out = (keel_image_head){ 0 };
    if (!f || !f->size(head, n_head, &out->height, &out->width)) return false;
    if (f->own && !(out->own = f->own(head, n_head, n_bytes))) return false;
    if (out->height < 1 || out->width < 1 || out->height > KEEL_IMAGE_SIDE_MAX ||
        out->width > KEEL_IMAGE_SIDE_MAX)
        return n_head == n_bytes;
    out->decoded = out->height * out->width * pixel_bytes_of(f, head, channels);
    if (f->decode == keel_gif_decode) out->decoded += out->width; /* a line of codes */
    return true;
}

static uint32_t little_endian(const unsigned char *b)
{
    return b[0] | (uint32_t)b[1] << 8 | (uint32_t)b[2] << 16 | (uint32_t)b[3] << 24;
}

bool keel_image_ends(const unsigned char head[KEEL_IMAGE_HEAD],
                     const unsigned char tail[KEEL_IMAGE_TAIL], size_t n_bytes)
{
    enum { BMP_BYTES = 2, RIFF_BYTES = 4 };
    const format *f = find(head, KEEL_IMAGE_HEAD);
    if (!f) return false;
    if (f->decode == keel_jpeg_decode) return tail[10] == 0xff && tail[11] == 0xd9;
    if (f->decode == keel_png_decode) return !memcmp(tail + 4, "IEND", 4);
    if (f->decode == keel_gif_decode) return tail[11] == 0x3b;
    if (f->decode == keel_bmp_decode) return little_endian(head + BMP_BYTES) == n_bytes;
    return little_endian(head + RIFF_BYTES) + UINT64_C(8) == n_bytes;
}

static keel_status fail_unknown(const unsigned char *b, size_t n, const char *what)
{
    const char *kind = keel_kind_of_bytes(b, n < KEEL_KIND_BYTES ? n : KEEL_KIND_BYTES);
    if (kind)
        return keel_fail(KEEL_EFORMAT, "%s: no image (" KEEL_IMAGE_KINDS ") but %s", what, kind);
    size_t text = 0;
    while (text < n && text < 64 && (isprint(b[text]) || isspace(b[text]))) text++;
    const bool is_text = text == n || text == 64;
    return keel_fail(KEEL_EFORMAT,
                     "%s: no image (" KEEL_IMAGE_KINDS ")%s; remove the file or replace it", what,
                     is_text ? " but text" : "");
}

/* Decode in colour with alpha 255. The buffer is reserved for four channels first, so that the
 * decoder fills its front and the pixels can be widened in place, from the last one on. */
static keel_status add_alpha(keel_image *out, const format *f, const void *data, size_t n_bytes,
                             keel_scratch *scratch, int buffer, const char *what)
{
    int64_t h, w;
    if (f->size(data, n_bytes, &h, &w)) {
        KEEL_TRY(keel_image_check_size(h, w, 4, what));
        if (!keel_scratch_reserve(scratch, buffer, (size_t)(h * w * 4))) return KEEL_ENOMEM;
    }
    KEEL_TRY(f->decode(out, data, n_bytes, 3, scratch, buffer, what));
    unsigned char *pixels = scratch->at[buffer];
    const size_t count = (size_t)(out->height * out->width);
    if (out->pixels != pixels || scratch->n_bytes[buffer] / 4 < count)
        return keel_fail(KEEL_EFORMAT, "%s: its header and its pixels differ in size", what);
    for (size_t i = count; i-- > 0;) {
        memmove(pixels + 4 * i, pixels + 3 * i, 3);
        pixels[4 * i + 3] = 255;
    }
    out->channels = 4;
    return KEEL_OK;
}

keel_status keel_image_decode(keel_image *out, const void *data, size_t n_bytes, int channels,
                              keel_scratch *scratch, int buffer, const char *what)
{
    if (!n_bytes) return keel_fail(KEEL_EFORMAT, "%s: the file is empty", what);
    const format *f = find(data, n_bytes);
    if (!f) return fail_unknown(data, n_bytes, what);
    keel_probe_part(scratch->probe, KEEL_PART_DECODE);
    if (channels == 4 && !f->has_alpha)
        return add_alpha(out, f, data, n_bytes, scratch, buffer, what);
    if (channels != 1 || f->has_gray)
        return f->decode(out, data, n_bytes, channels, scratch, buffer, what);
    KEEL_TRY(f->decode(out, data, n_bytes, 3, scratch, buffer, what));
    keel_image_gray(scratch->at[buffer], (size_t)(out->height * out->width));
    out->channels = 1;
    return KEEL_OK;
}
