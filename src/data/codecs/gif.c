/* GIF by giflib: the first frame, as TensorFlow gives it without expand_animations. The image is as
 * large as the largest frame of the file; what the first frame leaves free or transparent is black,
 * with alpha 0. */
#include "data/codecs/image.h"
#include "data/warnings.h"
#include <gif_lib.h>
#include <string.h>

/* ---- the size ----------------------------------------------------------------------------------
 * giflib keeps every frame that it passes. This walk keeps none, so many small frames cost nothing.
 */

typedef struct walk {
    const unsigned char *b;
    size_t n, at;
} walk;

static bool skip(walk *w, size_t n)
{
    if (w->n - w->at < n) return false;
    w->at += n;
    return true;
}

static bool skip_blocks(walk *w)
{
    while (w->at < w->n) {
        const size_t n = w->b[w->at++];
        if (!n) return true;
        if (!skip(w, n)) return false;
    }
    return false;
}

static size_t table_bytes(int flags)
{
    return flags & 0x80 ? (size_t)3 << ((flags & 7) + 1) : 0;
}

/* A frame, from behind its mark. A code has at least 3 bits and gives at most 4096 pixels, so a
 * frame of fewer bytes ends early. */
static bool skip_frame(walk *w, int64_t *height, int64_t *width)
{
    enum { SIZE = 4, FLAGS = 8, DESCRIPTOR = 9, CODE_BITS = 1, MOST = 4096 * 8 / 3 };
    const unsigned char *d = w->b + w->at;
    if (!skip(w, DESCRIPTOR) || !skip(w, table_bytes(d[FLAGS]) + CODE_BITS)) return false;
    const size_t begin = w->at;
    if (!skip_blocks(w)) return false;
    const int64_t fw = d[SIZE] | d[SIZE + 1] << 8, fh = d[SIZE + 2] | d[SIZE + 3] << 8;
    if ((uint64_t)(fw * fh) / MOST > w->at - begin) return false;
    if (fw > *width) *width = fw;
    if (fh > *height) *height = fh;
    return true;
}

/* The size of the largest frame up to the end, or to the first fault. True: the end was there. */
static bool measure(const unsigned char *b, size_t n, int64_t *height, int64_t *width)
{
    enum { FLAGS = 10, HEAD = 13, FRAME = 0x2c, EXTENSION = 0x21, END = 0x3b };
    walk w = { b, n, HEAD };
    *height = *width = 0;
    if (n < HEAD || !skip(&w, table_bytes(b[FLAGS]))) return false;
    while (w.at < n) {
        const int mark = b[w.at++];
        if (mark == END) return true;
        if (mark == FRAME ? !skip_frame(&w, height, width)
                          : mark != EXTENSION || !skip(&w, 1) || !skip_blocks(&w))
            return false;
    }
    return false;
}

bool keel_gif_size(const unsigned char *b, size_t n, int64_t *height, int64_t *width)
{
    int64_t h, w;
    if (!measure(b, n, &h, &w)) return false;
    *height = h;
    *width = w;
    return true;
}

int64_t keel_gif_own(const void *head, size_t n_head, size_t n_bytes)
{
    enum { TABLES = 28 << 10 /* of giflib: codes of one frame, and two palettes */ };
    (void)head, (void)n_head, (void)n_bytes;
    return TABLES;
}

/* ---- the first frame --------------------------------------------------------------------------
 */

static int take(GifFileType *g, GifByteType *to, int n)
{
    walk *w = g->UserData;
    const size_t left = w->n - w->at, most = (size_t)n < left ? (size_t)n : left;
    memcpy(to, w->b + w->at, most);
    w->at += most;
    return (int)most;
}

/* Read up to the first frame. *transparent: its transparent index, or -1. */
static bool find_frame(GifFileType *g, int *transparent)
{
    GifRecordType kind;
    bool told = false;
    *transparent = NO_TRANSPARENT_COLOR;
    while (DGifGetRecordType(g, &kind) == GIF_OK) {
        if (kind == IMAGE_DESC_RECORD_TYPE) return DGifGetImageDesc(g) == GIF_OK;
        if (kind != EXTENSION_RECORD_TYPE) return false;
        int code;
        GifByteType *block;
        GraphicsControlBlock control;
        if (DGifGetExtension(g, &code, &block) != GIF_OK) return false;
        if (block && code == GRAPHICS_EXT_FUNC_CODE && !told) { /* the first counts */
            told = true;
            if (DGifExtensionToGCB(block[0], block + 1, &control) == GIF_OK)
                *transparent = control.TransparentColor;
        }
        while (block)
            if (DGifGetExtensionNext(g, &block) != GIF_OK) return false;
    }
    return false;
}

typedef struct canvas {
    unsigned char *pixels;
    int64_t height, width;
    int channels, transparent;
    const ColorMapObject *colors;
} canvas;

/* False: an index is outside of the palette. */
static bool draw(const canvas *c, const GifByteType *line, const GifImageDesc *d, int64_t y)
{
    if (y >= c->height) return true;
    unsigned char *to = c->pixels + (size_t)(y * c->width + d->Left) * (size_t)c->channels;
    for (int64_t x = d->Left; x < c->width && x < (int64_t)d->Left + d->Width;
         x++, line++, to += c->channels) {
        if (*line == c->transparent) continue;
        if (*line >= c->colors->ColorCount) return false;
        const GifColorType *color = &c->colors->Colors[*line];
        to[0] = color->Red;
        to[1] = color->Green;
        to[2] = color->Blue;
        if (c->channels == 4) to[3] = 255;
    }
    return true;
}

/* NULL: done; else what is wrong. */
static const char *draw_frame(GifFileType *g, canvas *c, GifByteType *line)
{
    static const int first[] = { 0, 4, 2, 1 }, step[] = { 8, 8, 4, 2 }; /* interlaced */
    const GifImageDesc *d = &g->Image;
    c->colors = d->ColorMap ? d->ColorMap : g->SColorMap;
    if (!c->colors) return "it has no palette";
    for (int pass = d->Interlace ? 0 : 3; pass < 4; pass++)
        for (int64_t y = d->Interlace ? first[pass] : 0; y < d->Height;
             y += d->Interlace ? step[pass] : 1) {
            if (DGifGetLine(g, line, d->Width) != GIF_OK) return "its first frame ends early";
            if (!draw(c, line, d, y + d->Top)) return "a pixel is outside of the palette";
        }
    return NULL;
}

keel_status keel_gif_decode(keel_image *out, const void *data, size_t n_bytes, int channels,
                            keel_scratch *scratch, int buffer, const char *what)
{
    canvas c = { .channels = channels };
    walk at = { data, n_bytes, 0 };
    int code = 0;
    keel_status s = KEEL_OK;
    const char *wrong = "it has no frame";
    const bool whole = measure(data, n_bytes, &c.height, &c.width);
    if (!c.height || !c.width)
        return keel_fail(KEEL_EFORMAT, "%s: decode GIF: no complete frame; replace the file", what);
    KEEL_TRY(keel_image_check_size(c.height, c.width, channels, what));
    const int64_t own = keel_gif_own(data, n_bytes, n_bytes);
    if (!keel_account_take(scratch->account, own)) return KEEL_ENOMEM;
    GifFileType *g = DGifOpen(&at, take, &code);
    if (!g) {
        keel_account_give(scratch->account, own);
        return keel_fail(code == D_GIF_ERR_NOT_ENOUGH_MEM ? KEEL_ENOMEM : KEEL_EFORMAT,
                         "%s: decode GIF: %s", what, GifErrorString(code));
    }
    if (find_frame(g, &c.transparent)) {
        const size_t size = (size_t)(c.height * c.width * channels);
        const size_t line = (size_t)g->Image.Width;
        if (!(c.pixels = keel_scratch_reserve(scratch, buffer, size + line))) {
            s = KEEL_ENOMEM;
            goto out;
        }
        memset(c.pixels, 0, size);
        wrong = draw_frame(g, &c, c.pixels + size);
    }
    if (wrong) {
        s = keel_fail(KEEL_EFORMAT, "%s: decode GIF: %s; replace the file or remove it", what,
                      wrong);
        goto out;
    }
    if (!whole) keel_warn(scratch, what, "cut short or damaged behind its first frame");
    *out = (keel_image){ c.pixels, c.height, c.width, channels };
out:
    DGifCloseFile(g, &code);
    keel_account_give(scratch->account, own);
    return s;
}
