/* See picture.h. */
#include "picture.h"
#include <math.h>
#include <spng.h>
#include <stdlib.h>
#include <string.h>

/* ---- what a value is ---------------------------------------------------------------------------
 */

int64_t keel_value_count(const keel_tensor *t)
{
    int64_t n = 1;
    for (int d = 0; d < t->shape.rank; d++) n *= t->shape.dim[d];
    return n;
}

double keel_value(const keel_tensor *t, int64_t i)
{
    switch (t->dtype) {
    case KEEL_FLOAT32:
        return (double)((const float *)t->data)[i];
    case KEEL_FLOAT64:
        return ((const double *)t->data)[i];
    case KEEL_INT32:
        return ((const int32_t *)t->data)[i];
    case KEEL_INT64:
        return (double)((const int64_t *)t->data)[i];
    default:
        return ((const uint8_t *)t->data)[i];
    }
}

/* Tables of a few numbers a line are no images: both sides have 8 pixels. A sound has so many
 * frames that nobody would read them as numbers. */
keel_look keel_look_at(const keel_tensor *t)
{
    enum { SIDE = 8, FRAMES = 64 };
    const int rank = t->shape.rank;
    const int64_t *d = t->shape.dim, depth = rank == 3 ? d[2] : 1;
    if (t->dtype == KEEL_STRING || !keel_value_count(t)) return KEEL_LOOK_VALUES;
    if (rank == 3 && (depth == 1 || depth == 3 || depth == 4)) return KEEL_LOOK_IMAGE;
    if (rank == 2 && d[0] >= SIDE && d[1] >= SIDE) return KEEL_LOOK_IMAGE;
    const bool real = t->dtype == KEEL_FLOAT32 || t->dtype == KEEL_FLOAT64;
    if (real && (rank == 1 || (rank == 2 && d[1] <= 2)) && d[0] >= FRAMES) return KEEL_LOOK_SOUND;
    return KEEL_LOOK_VALUES;
}

/* ---- the range of values -----------------------------------------------------------------------
 */

void keel_range_add(keel_range *r, const keel_tensor *t)
{
    const int64_t n = keel_value_count(t);
    for (int64_t i = 0; i < n; i++) {
        const double v = keel_value(t, i);
        if (!isfinite(v)) {
            r->not_finite++;
            continue;
        }
        const bool first = r->least > r->most;
        if (first || v < r->least) r->least = v;
        if (first || v > r->most) r->most = v;
    }
}

void keel_range_decide(keel_range *r, keel_dtype dtype)
{
    static const double known[][2] = { { 0, 1 }, { -1, 1 }, { 0, 255 } };
    const bool bytes = dtype == KEEL_UINT8 || ((dtype == KEEL_INT32 || dtype == KEEL_INT64) &&
                                               r->least >= 0 && r->most <= 255);
    r->black = 0;
    r->white = dtype == KEEL_BOOL ? 1 : 255;
    if (bytes || dtype == KEEL_BOOL || r->least > r->most) return;
    r->black = r->least;
    r->white = r->most;
    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        if (r->least >= known[i][0] && r->most <= known[i][1]) {
            r->black = known[i][0];
            r->white = known[i][1];
            return;
        }
}

const char *keel_range_text(char *out, size_t size, const keel_range *r)
{
    if (r->least > r->most) {
        snprintf(out, size, "no value is finite");
        return out;
    }
    const int n = snprintf(out, size, "%.6g to %.6g is black to white; values are %.6g to %.6g",
                           r->black, r->white, r->least, r->most);
    if (r->not_finite && n > 0 && (size_t)n < size)
        snprintf(out + n, size - (size_t)n, ", and %lld that are not finite are black",
                 (long long)r->not_finite);
    return out;
}

/* ---- pixels ------------------------------------------------------------------------------------
 */

static double shade(const keel_range *r, double v)
{
    const double span = r->white - r->black;
    if (!isfinite(v)) return 0;
    if (!(span > 0)) return v > 0 ? 255 : 0;
    const double s = 255 * ((v - r->black) / span);
    return s < 0 ? 0 : s > 255 ? 255 : s;
}

/* The mean of the values that lie in pixel (y, x) of a picture of h by w. */
static double area(const keel_tensor *t, const keel_range *r, const keel_picture *p, int64_t y,
                   int64_t x, int c)
{
    const int64_t full_h = t->shape.dim[0], full_w = t->shape.dim[1];
    const int64_t y0 = y * full_h / p->height, x0 = x * full_w / p->width;
    int64_t y1 = (y + 1) * full_h / p->height, x1 = (x + 1) * full_w / p->width;
    double sum = 0;
    if (y1 <= y0) y1 = y0 + 1;
    if (x1 <= x0) x1 = x0 + 1;
    for (int64_t i = y0; i < y1; i++)
        for (int64_t j = x0; j < x1; j++)
            sum += shade(r, keel_value(t, (i * full_w + j) * p->channels + c));
    return sum / (double)((y1 - y0) * (x1 - x0));
}

bool keel_picture_make(keel_picture *out, const keel_tensor *t, const keel_range *r,
                       int64_t height_max, int64_t width_max)
{
    keel_picture p = { .height = t->shape.dim[0], .width = t->shape.dim[1] };
    const double h = (double)p.height, w = (double)p.width;
    double scale = 1;
    p.channels = t->shape.rank == 3 ? (int)t->shape.dim[2] : 1;
    if (h * scale > (double)height_max) scale = (double)height_max / h;
    if (w * scale > (double)width_max) scale = (double)width_max / w;
    if (scale < 1) {
        p.height = (int64_t)fmax(1, floor(h * scale + 0.5));
        p.width = (int64_t)fmax(1, floor(w * scale + 0.5));
    }
    p.pixel = malloc((size_t)p.height * (size_t)p.width * (size_t)p.channels);
    if (!p.pixel) return false;
    unsigned char *to = p.pixel;
    for (int64_t y = 0; y < p.height; y++)
        for (int64_t x = 0; x < p.width; x++)
            for (int c = 0; c < p.channels; c++)
                *to++ = (unsigned char)(area(t, r, &p, y, x, c) + 0.5);
    *out = p;
    return true;
}

unsigned char *keel_picture_png(const keel_picture *p, size_t *n_bytes)
{
    static const int type[] = { [1] = SPNG_COLOR_TYPE_GRAYSCALE,
                                [3] = SPNG_COLOR_TYPE_TRUECOLOR,
                                [4] = SPNG_COLOR_TYPE_TRUECOLOR_ALPHA };
    struct spng_ihdr head = { .width = (uint32_t)p->width,
                              .height = (uint32_t)p->height,
                              .bit_depth = 8,
                              .color_type = (uint8_t)type[p->channels] };
    const size_t size = (size_t)p->height * (size_t)p->width * (size_t)p->channels;
    int error;
    spng_ctx *c = spng_ctx_new(SPNG_CTX_ENCODER);
    void *file = NULL;
    if (c && !spng_set_option(c, SPNG_ENCODE_TO_BUFFER, 1) && !spng_set_ihdr(c, &head) &&
        !spng_encode_image(c, p->pixel, size, SPNG_FMT_PNG, SPNG_ENCODE_FINALIZE))
        file = spng_get_png_buffer(c, n_bytes, &error);
    spng_ctx_free(c);
    return file;
}

/* ---- a terminal --------------------------------------------------------------------------------
 */

/* What is seen of a pixel: what is transparent shows the grey squares behind it. */
static void seen(unsigned char *rgb, const keel_picture *p, int64_t y, int64_t x)
{
    const unsigned char *from = p->pixel + (y * p->width + x) * p->channels;
    const int behind = (y / 4 + x / 4) % 2 ? 102 : 153;
    for (int c = 0; c < 3; c++) {
        rgb[c] = from[p->channels == 1 ? 0 : c];
        if (p->channels == 4)
            rgb[c] = (unsigned char)((from[c] * from[3] + behind * (255 - from[3]) + 127) / 255);
    }
}

/* Line y of characters of a picture: each shows pixel 2y above pixel 2y + 1. */
static void print_line(FILE *f, const keel_picture *p, int64_t y)
{
    unsigned char up[3], down[3], up_now[3] = { 0 }, down_now[3] = { 0 };
    for (int64_t x = 0; x < p->width; x++) {
        const bool both = 2 * y + 1 < p->height;
        seen(up, p, 2 * y, x);
        if (!x || memcmp(up, up_now, 3)) fprintf(f, "\033[38;2;%d;%d;%dm", up[0], up[1], up[2]);
        memcpy(up_now, up, 3);
        if (both) {
            seen(down, p, 2 * y + 1, x);
            if (!x || memcmp(down, down_now, 3))
                fprintf(f, "\033[48;2;%d;%d;%dm", down[0], down[1], down[2]);
            memcpy(down_now, down, 3);
        }
        fputs("\u2580", f);
    }
    fputs("\033[0m", f);
}

/* At most `width` characters of a text, whose other bytes are left out, filled up with spaces. */
static void print_label(FILE *f, const char *text, int64_t width, bool fill)
{
    int64_t n = 0;
    for (; *text && (n < width || ((unsigned char)*text & 0xC0) == 0x80); text++) {
        if (((unsigned char)*text & 0xC0) != 0x80) n++;
        fputc(*text, f);
    }
    for (; fill && n < width; n++) fputc(' ', f);
}

void keel_picture_print(FILE *f, const keel_picture *p, const char *const *label, int n,
                        int columns)
{
    enum { GAP = 2, LABEL = 12 }; /* a label has some room below a small picture */
    for (int i = 0; i < n;) {
        int end = i, used = 0;
        int64_t height = 0;
        for (; end < n; end++) {
            const int w = (int)(p[end].width > LABEL ? p[end].width : LABEL);
            if (end > i && used + GAP + w > columns) break;
            used += w + (end > i ? GAP : 0);
            height = p[end].height > height ? p[end].height : height;
        }
        for (int64_t y = 0; y <= (height + 1) / 2; y++) {
            for (int k = i; k < end; k++) {
                const int64_t room = p[k].width > LABEL ? p[k].width : LABEL;
                const bool last = k + 1 == end, drawn = 2 * y < p[k].height;
                if (k > i) fprintf(f, "%*s", GAP, "");
                if (y == (height + 1) / 2)
                    print_label(f, label[k], room, !last);
                else if (drawn)
                    print_line(f, &p[k], y);
                if (y < (height + 1) / 2 && !last)
                    fprintf(f, "%*s", (int)(room - (drawn ? p[k].width : 0)), "");
            }
            fputc('\n', f);
        }
        i = end;
    }
}
