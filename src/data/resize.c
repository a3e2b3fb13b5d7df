/* Bilinear resize in two passes. Each source row is interpolated once along x, with a table of
 * columns; then two such rows are mixed along y. The order of operations is that of TensorFlow's
 * ResizeBilinear with half_pixel_centers, and each product and sum is rounded separately, so all
 * ways below and all instruction sets give the same bits. */
#include "data/resize.h"
#include "base/clones.h"
#include "base/unroll.h"
#include <math.h>
#include <stdint.h>
#include <string.h>

#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC optimize("fp-contract=off")
#elif defined(__clang__)
#pragma STDC FP_CONTRACT OFF
#endif

typedef struct column { /* of an output pixel: its left and right neighbour, and the mix of them */
    int32_t left, right;
    float part;
} column;

/* The centre of output pixel i in source pixels. */
static float middle(int64_t i, int64_t from, int64_t to)
{
    return ((float)i + 0.5f) * ((float)from / (float)to);
}

static column place(int64_t i, int64_t from, int64_t to, int step)
{
    const float centre = middle(i, from, to) - 0.5f, low = floorf(centre);
    const int64_t left = low < 0 ? 0 : (int64_t)low;
    const int64_t right = (int64_t)ceilf(centre) < from - 1 ? (int64_t)ceilf(centre) : from - 1;
    return (column){ (int32_t)((left < from ? left : from - 1) * step),
                     (int32_t)((right < 0 ? 0 : right) * step), centre - low };
}

/* ---- along x, bytes to floats ---------------------------------------------------------------- */

static void widen_gray(float *out, const unsigned char *row, const column *c, int64_t width)
{
    for (int64_t i = 0; i < width; i++) {
        const float a = row[c[i].left], b = row[c[i].right];
        out[i] = a + (b - a) * c[i].part;
    }
}

typedef uint8_t bytes16 __attribute__((vector_size(16)));
typedef int32_t ints4 __attribute__((vector_size(16)));
typedef float floats4 __attribute__((vector_size(16), aligned(4), may_alias));

INLINE floats4 widened(const unsigned char *p)
{
    uint32_t four;
    memcpy(&four, p, sizeof four);
    const bytes16 zero = { 0 }, v = (bytes16)(ints4){ (int32_t)four };
    const bytes16 apart = __builtin_shufflevector(v, zero, 0, 16, 16, 16, 1, 16, 16, 16, 2, 16, 16,
                                                  16, 3, 16, 16, 16);
    return __builtin_convertvector((ints4)apart, floats4);
}

/* Four values at a time; of three channels the last belongs to the next pixel and is written again
 * with it. Pixels at the end of the row, where four would be too many, one value at a time. */
INLINE void widen_pixels(float *out, const unsigned char *row, const column *c, int64_t width,
                         size_t stride, int n)
{
    int64_t i = 0;
    for (; i + 1 < width && (size_t)c[i].right + sizeof(uint32_t) <= stride; i++) {
        const floats4 a = widened(row + c[i].left), b = widened(row + c[i].right);
        *(floats4 *)(out + n * i) = a + (b - a) * c[i].part;
    }
    for (; i < width; i++)
        for (int k = 0; k < n; k++) {
            const float a = row[c[i].left + k], b = row[c[i].right + k];
            out[n * i + k] = a + (b - a) * c[i].part;
        }
}

KEEL_CLONES static void widen_colour(float *out, const unsigned char *row, const column *c,
                                     int64_t width, size_t stride, int n)
{
    if (n == 3)
        widen_pixels(out, row, c, width, stride, 3);
    else
        widen_pixels(out, row, c, width, stride, 4);
}

/* With AVX-512 VBMI an instruction picks LANES of REACH bytes, which does all of a row's values of
 * any number of channels, unless the image shrinks so far that they lie further apart. */
enum { LANES = 16, REACH = 64 };

enum { CACHE_LINE = 64 }; /* vectors across two of them take a quarter longer in all */

typedef struct group {                                      /* LANES values of an output row */
    _Alignas(CACHE_LINE) int32_t left[LANES], right[LANES]; /* which of REACH bytes */
    int64_t to, at; /* of the first value, and of the first byte */
} group;

#if defined(__x86_64__) && defined(__GNUC__) && !defined(__clang__)
#define VBMI __attribute__((target("avx512f,avx512bw,avx512dq,avx512vl,avx512vbmi")))
typedef uint8_t bytes64 __attribute__((vector_size(REACH), aligned(1), may_alias));
typedef int32_t ints16 __attribute__((vector_size(4 * LANES)));
typedef float floats16 __attribute__((vector_size(4 * LANES), aligned(4), may_alias));

static bool has_vbmi(void)
{
    __builtin_cpu_init();
    return __builtin_cpu_supports("avx512vbmi") && __builtin_cpu_supports("avx512bw") &&
           __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl");
}

VBMI INLINE floats16 picked(const bytes64 *from, const int32_t index[LANES])
{
    const bytes64 bytes = __builtin_shuffle(*from, *(const bytes64 *)index);
    return __builtin_convertvector((ints16)bytes & 0xFF, floats16);
}

VBMI static void widen_groups(float *out, const unsigned char *row, const group *g, int64_t count,
                              const float *parts)
{
    for (int64_t i = 0; i < count; i++, g++) {
        const bytes64 *from = (const bytes64 *)(row + g->at);
        const floats16 a = picked(from, g->left), b = picked(from, g->right);
        *(floats16 *)(out + g->to) = a + (b - a) * *(const floats16 *)(parts + g->to);
    }
}
#else
static bool has_vbmi(void)
{
    return false;
}

static void widen_groups(float *out, const unsigned char *row, const group *g, int64_t count,
                         const float *parts)
{
    (void)out, (void)row, (void)g, (void)count, (void)parts;
}
#endif

/* False: not all values can be made in groups. The last group may overlap the one before. */
static bool make_groups(group *g, int64_t count, float *parts, const column *columns, int64_t line,
                        int64_t stride, int n)
{
    if (line < LANES || stride < REACH || !has_vbmi()) return false;
    for (int64_t i = 0; i < count; i++, g++) {
        const int64_t to = i < count - 1 ? i * LANES : line - LANES;
        const int64_t first = columns[to / n].left + to % n, last = stride - REACH;
        g->to = to;
        g->at = first < last ? first : last;
        for (int k = 0; k < LANES; k++) {
            const column *c = &columns[(to + k) / n];
            const int64_t left = c->left + (to + k) % n - g->at;
            const int64_t right = c->right + (to + k) % n - g->at;
            if (left < 0 || left >= REACH || right < 0 || right >= REACH) return false;
            g->left[k] = (int32_t)left;
            g->right[k] = (int32_t)right;
            parts[to + k] = c->part;
        }
    }
    return true;
}

/* ---- along y --------------------------------------------------------------------------------- */

KEEL_CLONES static void mix(float *restrict out, const float *restrict upper,
                            const float *restrict lower, float part, size_t count)
{
    for (size_t i = 0; i < count; i++) out[i] = upper[i] + (lower[i] - upper[i]) * part;
}

KEEL_CLONES static void widen_all(float *restrict out, const unsigned char *restrict in,
                                  size_t count)
{
    for (size_t i = 0; i < count; i++) out[i] = in[i];
}

/* Lines of the size of the result are only widened. */
static keel_status widen_lines(const keel_image_lines *from, float *out)
{
    const size_t line = (size_t)from->width * (size_t)from->channels;
    for (int64_t y = 0; y < from->height; y++, out += line) {
        const unsigned char *row = from->line(from->context, y);
        if (!row) return KEEL_EFORMAT;
        widen_all(out, row, line);
    }
    return KEEL_OK;
}

static size_t groups_of(int64_t width, int channels)
{
    return ((size_t)width * (size_t)channels + LANES - 1) / LANES;
}

/* Floats of a row in the space. */
static size_t padded(int64_t width, int channels)
{
    return groups_of(width, channels) * LANES;
}

size_t keel_resize_space(int64_t width, int channels)
{
    return CACHE_LINE + 3 * padded(width, channels) * sizeof(float) +
           groups_of(width, channels) * sizeof(group) + (size_t)width * sizeof(column);
}

keel_status keel_resize_lines(const keel_image_lines *from, float *out, int64_t height,
                              int64_t width, keel_scratch *scratch, int buffer)
{
    const int n = from->channels;
    const size_t line = (size_t)width * (size_t)n, stride = (size_t)from->width * (size_t)n;
    if (from->height == height && from->width == width) return widen_lines(from, out);
    const size_t n_group = groups_of(width, n), pad = padded(width, n);
    char *space = keel_scratch_reserve(scratch, buffer, keel_resize_space(width, n));
    if (!space) return KEEL_ENOMEM;
    space += CACHE_LINE - (uintptr_t)space % CACHE_LINE;
    float *rows[2] = { (float *)(void *)space, (float *)(void *)space + pad };
    float *parts = rows[1] + pad;
    group *groups = (group *)(void *)(parts + pad);
    column *columns = (column *)(void *)(groups + n_group);
    int64_t holds[2] = { -1, -1 }; /* the source row that each buffer has */
    for (int64_t i = 0; i < width; i++) columns[i] = place(i, from->width, width, n);
    const bool grouped =
        make_groups(groups, (int64_t)n_group, parts, columns, (int64_t)line, (int64_t)stride, n);

    for (int64_t y = 0; y < height; y++, out += line) {
        const column at = place(y, from->height, height, 1);
        const int64_t need[2] = { at.left, at.right };
        if (holds[0] != need[0] && holds[1] == need[0]) { /* the lower row becomes the upper */
            float *const swap = rows[0];
            rows[0] = rows[1];
            rows[1] = swap;
            holds[1] = holds[0];
            holds[0] = need[0];
        }
        for (int k = 0; k < 2; k++) {
            if (holds[k] == need[k] || (k && need[1] == need[0])) continue;
            const unsigned char *row = from->line(from->context, need[k]);
            if (!row) return KEEL_EFORMAT;
            if (grouped)
                widen_groups(rows[k], row, groups, (int64_t)n_group, parts);
            else if (n == 1)
                widen_gray(rows[k], row, columns, width);
            else
                widen_colour(rows[k], row, columns, width, stride, n);
            holds[k] = need[k];
        }
        mix(out, rows[0], need[1] == need[0] ? rows[0] : rows[1], at.part, line);
    }
    return KEEL_OK;
}

static const unsigned char *line_of(void *image, int64_t y)
{
    const keel_image *m = image;
    return m->pixels + (size_t)y * (size_t)m->width * (size_t)m->channels;
}

keel_status keel_resize(const keel_image *image, float *out, int64_t height, int64_t width,
                        keel_scratch *scratch, int buffer)
{
    keel_image own = *image;
    const keel_image_lines from = { line_of, &own, own.height, own.width, own.channels };
    return keel_resize_lines(&from, out, height, width, scratch, buffer);
}

static int64_t nearest(int64_t i, int64_t from, int64_t to)
{
    const int64_t p = (int64_t)floorf(middle(i, from, to));
    return p < from - 1 ? p : from - 1;
}

/* `count` pixels of a row, at the byte offsets `at`. */
INLINE void pick_pixels(unsigned char *out, const unsigned char *row, const int32_t *at, int count,
                        size_t n)
{
    for (int i = 0; i < count; i++, out += n) memcpy(out, row + at[i], n);
}

void keel_resize_nearest(const keel_image *image, unsigned char *out, int64_t height, int64_t width)
{
    enum { COLUMNS = 512 }; /* whose places are worked out at a time, for all rows */
    const int64_t n = image->channels, stride = image->width * n;
    int32_t at[COLUMNS];
    for (int64_t x = 0; x < width; x += COLUMNS) {
        const int count = (int)(width - x < COLUMNS ? width - x : COLUMNS);
        for (int i = 0; i < count; i++) at[i] = (int32_t)(nearest(x + i, image->width, width) * n);
        for (int64_t y = 0; y < height; y++) {
            unsigned char *to = out + (y * width + x) * n;
            const unsigned char *row = image->pixels + nearest(y, image->height, height) * stride;
            if (n == 1)
                pick_pixels(to, row, at, count, 1);
            else if (n == 3)
                pick_pixels(to, row, at, count, 3);
            else
                pick_pixels(to, row, at, count, (size_t)n);
        }
    }
}
