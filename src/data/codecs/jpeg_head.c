/* What the markers of a JPEG tell before it is decoded: its size, how many scans it has, and the
 * memory that libjpeg-turbo takes for it. tests/test_image_memory.c compares that with what the
 * library allocates. */
#include "data/codecs/jpeg.h"
#include <string.h>

enum { TABLES = 0xC4, EXTENSION = 0xC8, CONDITIONS = 0xCC, SCAN = 0xDA };

/* The code of the next marker from *at on, which moves past it; -1: none. Bytes between two markers
 * are skipped, as the library does. */
static int next_marker(const unsigned char *b, size_t n, size_t *at)
{
    while (*at + 1 < n) {
        const unsigned char *marker = memchr(b + *at, 0xFF, n - *at - 1);
        if (!marker) return -1;
        *at = (size_t)(marker - b) + (marker[1] == 0xFF ? 1 : 2); /* fill bytes may be repeated */
        if (marker[1] != 0 && marker[1] != 0xFF) return marker[1];
    }
    return -1;
}

static bool stands_alone(int code) /* no length follows */
{
    return code < 0xC0 || (code >= 0xD0 && code < 0xD9);
}

static void skip_segment(const unsigned char *b, size_t n, size_t *at)
{
    const size_t left = n - *at, length = left < 2 ? left : (size_t)b[*at] << 8 | b[*at + 1];
    *at += length < left ? length : left;
}

int keel_jpeg_scans(const unsigned char *b, size_t n)
{
    int scans = 0, code;
    size_t at = 2;
    while ((code = next_marker(b, n, &at)) >= 0 && code != 0xD9 /* the end */) {
        if (stands_alone(code)) continue;
        scans += code == 0xDA;
        skip_segment(b, n, &at);
    }
    return scans;
}

static bool is_frame(int code)
{
    return code >= 0xC0 && code <= 0xCF && code != TABLES && code != EXTENSION &&
           code != CONDITIONS;
}

/* Read a frame header at b, of which n bytes are there. Tells the size in any case, and true if it
 * tells the rest. */
static bool read_frame(keel_jpeg_head *h, const unsigned char *b, size_t n)
{
    enum { COMPONENTS = 7, EACH = 3 };
    h->height = b[3] << 8 | b[4];
    h->width = b[5] << 8 | b[6];
    h->components = n > COMPONENTS ? b[COMPONENTS] : 0;
    if (h->components < 1 || h->components > 4 || n < COMPONENTS + 1 + EACH * (size_t)h->components)
        return false;
    bool good = true;
    for (int i = 0; i < h->components; i++) {
        const int factors = b[COMPONENTS + 1 + EACH * i + 1];
        h->h[i] = factors >> 4;
        h->v[i] = factors & 15;
        good = good && h->h[i] >= 1 && h->h[i] <= 4 && h->v[i] >= 1 && h->v[i] <= 4;
    }
    return good;
}

/* From the frame header, which tables and comments may precede. *all: also what follows it. */
static bool look(keel_jpeg_head *h, const unsigned char *b, size_t n, bool all)
{
    enum { FRAME_HEAD = 7, COUNT = 2 };
    size_t at = 2;
    bool framed = false;
    int code;
    while ((code = next_marker(b, n, &at)) >= 0) {
        if (stands_alone(code)) continue;
        if (code == SCAN && framed && n - at > COUNT) {
            h->several_scans |= b[at + COUNT] < h->components;
            return true;
        }
        if (code >= 0xD9 && code <= SCAN) return false; /* the image has begun or ended */
        if (n - at < FRAME_HEAD) return false;
        if (is_frame(code)) {
            framed = read_frame(h, b + at, n - at);
            h->several_scans = (code & 3) == 2; /* progressive */
            if (!all || !framed) return !all;
        }
        skip_segment(b, n, &at);
    }
    return false;
}

bool keel_jpeg_size(const unsigned char *b, size_t n, int64_t *height, int64_t *width)
{
    keel_jpeg_head h = { 0 };
    if (!look(&h, b, n, false)) return false;
    *height = h.height;
    *width = h.width;
    return true;
}

bool keel_jpeg_look(keel_jpeg_head *out, const void *data, size_t n_bytes)
{
    *out = (keel_jpeg_head){ .shrunk = 1 };
    return keel_jpeg_begins(data, n_bytes) && look(out, data, n_bytes, true) && out->height > 0 &&
           out->width > 0;
}

int keel_jpeg_shrunk(const keel_jpeg_head *h, int64_t height, int64_t width)
{
    int by = 8;
    while (by > 1 && ((h->height + by - 1) / by < height || (h->width + by - 1) / by < width))
        by /= 2;
    return by;
}

static int most_of(const int *factor, int n)
{
    int most = 1;
    for (int i = 0; i < n; i++)
        if (factor[i] > most) most = factor[i];
    return most;
}

int64_t keel_jpeg_columns(const keel_jpeg_head *j, int64_t left, int64_t width)
{
    enum { BLOCK = 8 };
    const int most = most_of(j->h, j->components);
    const int64_t all = (j->width + j->shrunk - 1) / j->shrunk, beside = (int64_t)BLOCK * most;
    const int64_t begin = left > beside ? left - beside : 0;
    const int64_t end = left + width + beside < all ? left + width + beside : all;
    const int64_t at = (j->components == 1 ? 1 : most) * BLOCK / j->shrunk; /* lines begin there */
    return end - begin + 2 * beside < all ? end - begin / at * at : all;
}

/* ---- memory -----------------------------------------------------------------------------------
 */

static int64_t up(int64_t n, int64_t to)
{
    return (n + to - 1) / to * to;
}

/* Of one component, whose blocks give s x s pixels and those of the least of them m x m. */
static int64_t component_bytes(const keel_jpeg_head *j, int i, int h_most, int v_most, int m)
{
    enum { BLOCK = 8, COEFFICIENTS = 128 /* bytes of a block */, LINE = 64, POINTER = 8, ROWS = 2 };
    int s = m;
    while (s < BLOCK && h_most * m % (j->h[i] * s * 2) == 0 && v_most * m % (j->v[i] * s * 2) == 0)
        s *= 2;
    const int64_t wide = (j->width * j->h[i] + BLOCK * h_most - 1) / (BLOCK * h_most);
    const int64_t high = (j->height * j->v[i] + BLOCK * v_most - 1) / (BLOCK * v_most);
    const int64_t group = (int64_t)j->v[i] * s / m; /* lines that are upsampled together */
    /* lines of a row of blocks, and of those above and below */
    int64_t sum =
        (up(wide * s, LINE) + POINTER) * group * (m + ROWS) + 2 * POINTER * group * (m + 2 * ROWS);
    if (j->h[i] * s != h_most * m || j->v[i] * s != v_most * m)
        sum += (up(up((j->width + j->shrunk - 1) / j->shrunk, h_most), LINE) + POINTER) * v_most;
    if (j->several_scans) sum += up(high, j->v[i]) * (up(wide, j->h[i]) * COEFFICIENTS + POINTER);
    return sum;
}

int64_t keel_jpeg_own(const keel_jpeg_head *j)
{
    enum { FIXED = 24 << 10 /* tables, state, and the least that its pools allocate */ };
    const int h_most = most_of(j->h, j->components), v_most = most_of(j->v, j->components);
    int64_t sum = FIXED + j->width * j->components; /* a line of inks, or one that nobody reads */
    for (int i = 0; i < j->components; i++)
        sum += component_bytes(j, i, h_most, v_most, 8 / j->shrunk);
    return sum;
}
