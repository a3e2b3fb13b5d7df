/* Chooses the codec by the first bytes of a file, not by its name. */
#include "data/codecs/image.h"
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

static bool is_jpeg(const unsigned char *b, size_t n)
{
    return n >= 3 && b[0] == 0xff && b[1] == 0xd8 && b[2] == 0xff;
}

static bool is_png(const unsigned char *b, size_t n)
{
    static const unsigned char magic[] = { 0x89, 'P', 'N', 'G' };
    return n >= sizeof magic && !memcmp(b, magic, sizeof magic);
}

bool keel_image_begins(const void *data, size_t n_bytes)
{
    return is_jpeg(data, n_bytes) || is_png(data, n_bytes);
}

static int64_t big_endian(const unsigned char *b)
{
    return (int64_t)b[0] << 24 | b[1] << 16 | b[2] << 8 | b[3];
}

bool keel_image_size(const void *data, size_t n_bytes, int64_t *height, int64_t *width)
{
    enum { PNG_WIDTH = 16, PNG_HEIGHT = 20, PNG_HEAD = 24 }; /* IHDR is the first chunk */
    const unsigned char *b = data;
    if (is_jpeg(b, n_bytes)) return keel_jpeg_size(b, n_bytes, height, width);
    if (!is_png(b, n_bytes) || n_bytes < PNG_HEAD) return false;
    *height = big_endian(b + PNG_HEIGHT);
    *width = big_endian(b + PNG_WIDTH);
    return true;
}

keel_status keel_image_decode(keel_image *out, const void *data, size_t n_bytes, int channels,
                              keel_scratch *scratch, int buffer, const char *what)
{
    const unsigned char *b = data;
    if (!n_bytes) return keel_fail(KEEL_EFORMAT, "%s: the file is empty", what);
    if (is_jpeg(b, n_bytes))
        return keel_jpeg_decode(out, data, n_bytes, channels, scratch, buffer, what);
    if (is_png(b, n_bytes))
        return keel_png_decode(out, data, n_bytes, channels, scratch, buffer, what);
    static const struct {
        const char *magic, *name;
    } known[] = { { "GIF8", "GIF" }, { "BM", "BMP" }, { "RIFF", "WebP" } };
    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        if (n_bytes > 4 && !memcmp(b, known[i].magic, strlen(known[i].magic)))
            return keel_fail(KEEL_EUNSUP, "%s: a %s file; only JPEG and PNG are read", what,
                             known[i].name);
    const char *kind = keel_kind_of_bytes(b, n_bytes < KEEL_KIND_BYTES ? n_bytes : KEEL_KIND_BYTES);
    if (kind) return keel_fail(KEEL_EFORMAT, "%s: no JPEG or PNG but %s", what, kind);
    size_t text = 0;
    while (text < n_bytes && text < 64 && (isprint(b[text]) || isspace(b[text]))) text++;
    const bool is_text = text == n_bytes || text == 64;
    return keel_fail(KEEL_EFORMAT, "%s: no JPEG or PNG%s; remove the file or replace it", what,
                     is_text ? " but text" : "");
}
