/* The memory of decoders: what the head of a file says that its row takes is what is taken from the
 * account, and covers what the libraries allocate; a byte less is refused. */
#include "must.h"
#include "base/memory.h"
#include "data/photo.h"
#include "io/png_write.h"
#include "made_jpegs.h"
#include <gif_lib.h>
#include <malloc.h>
#include <spng.h>
#include <string.h>
#include <webp/encode.h>

/* ---- what the process allocates ---------------------------------------------------------------
 * glibc's allocator by its other names, so that the libraries are counted too. Not under a
 * sanitizer, which has an allocator of its own. */

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__) || defined(__clang__)
enum { COUNTS = 0 };
static int64_t now_allocated, most_allocated;
#else
enum { COUNTS = 1 };
static _Thread_local int64_t now_allocated, most_allocated;

extern void *__libc_malloc(size_t n);
extern void *__libc_calloc(size_t count, size_t each);
extern void *__libc_realloc(void *at, size_t n);
extern void __libc_free(void *at);
void *malloc(size_t n);
void *calloc(size_t count, size_t each);
void *realloc(void *at, size_t n);
void free(void *at);

static void *counted(void *at)
{
    if (at) now_allocated += (int64_t)malloc_usable_size(at);
    if (now_allocated > most_allocated) most_allocated = now_allocated;
    return at;
}

void *malloc(size_t n)
{
    return counted(__libc_malloc(n));
}

void *calloc(size_t count, size_t each)
{
    return counted(__libc_calloc(count, each));
}

void *realloc(void *at, size_t n)
{
    if (at) now_allocated -= (int64_t)malloc_usable_size(at);
    return counted(__libc_realloc(at, n));
}

void free(void *at)
{
    if (at) now_allocated -= (int64_t)malloc_usable_size(at);
    __libc_free(at);
}
#endif

/* ---- files ------------------------------------------------------------------------------------
 */

typedef struct file {
    void *data;
    size_t n;
} file;

static unsigned char *pixels(int height, int width, int channels)
{
    unsigned char *p = malloc((size_t)(height * width * channels));
    for (int i = 0; i < height * width * channels; i++)
        p[i] = pixel(i / (width * channels), i / channels % width, i % channels % 3);
    return p;
}

static file of_memory(const void *data, size_t n)
{
    file f = { malloc(n), n };
    memcpy(f.data, data, n);
    return f;
}

static file jpeg(int height, int width, int sampling, bool progressive)
{
    const made_jpeg j = made_jpeg_of(height, width, sampling / 10, sampling % 10, !sampling,
                                     progressive ? PROGRESSIVE : PLAIN);
    return (file){ j.data, j.n };
}

static file jpeg_420(int h, int w)
{
    return jpeg(h, w, 22, false);
}
static file jpeg_422(int h, int w)
{
    return jpeg(h, w, 21, false);
}
static file jpeg_444(int h, int w)
{
    return jpeg(h, w, 11, false);
}
static file jpeg_gray(int h, int w)
{
    return jpeg(h, w, 0, false);
}
static file progressive_420(int h, int w)
{
    return jpeg(h, w, 22, true);
}
static file progressive_444(int h, int w)
{
    return jpeg(h, w, 11, true);
}
static file progressive_gray(int h, int w)
{
    return jpeg(h, w, 0, true);
}

static file jpeg_cmyk(int h, int w)
{
    const made_jpeg j = made_jpeg_in(JCS_CMYK, h, w, 1, 1, PLAIN);
    return (file){ j.data, j.n };
}
static file progressive_ycck(int h, int w)
{
    const made_jpeg j = made_jpeg_in(JCS_YCCK, h, w, 2, 2, PROGRESSIVE);
    return (file){ j.data, j.n };
}

static file png(int h, int w, int channels)
{
    void *data;
    size_t n;
    unsigned char *p = pixels(h, w, channels);
    must(keel_png_write(&data, &n, p, h, w, channels));
    const file f = of_memory(data, n);
    keel_free(data);
    free(p);
    return f;
}

static file png_rgb(int h, int w)
{
    return png(h, w, 3);
}
static file png_gray(int h, int w)
{
    return png(h, w, 1);
}

static file spng_file(int h, int w, int depth, bool interlaced, bool text)
{
    size_t n;
    int error;
    unsigned char *p = pixels(h, w, 3 * depth / 8);
    spng_ctx *c = spng_ctx_new(SPNG_CTX_ENCODER);
    struct spng_ihdr head = { .width = (uint32_t)w,
                              .height = (uint32_t)h,
                              .bit_depth = (uint8_t)depth,
                              .color_type = SPNG_COLOR_TYPE_TRUECOLOR,
                              .interlace_method = interlaced };
    char words[5000];
    memset(words, 'w', sizeof words - 1);
    words[sizeof words - 1] = 0;
    struct spng_text t = {
        .keyword = "Comment", .type = SPNG_TEXT, .text = words, .length = sizeof words - 1
    };
    spng_set_option(c, SPNG_ENCODE_TO_BUFFER, 1);
    spng_set_ihdr(c, &head);
    if (text) spng_set_text(c, &t, 1);
    assert_int_equal(spng_encode_image(c, p, (size_t)(h * w * 3 * depth / 8), SPNG_FMT_PNG,
                                       SPNG_ENCODE_FINALIZE),
                     0);
    void *data = spng_get_png_buffer(c, &n, &error);
    spng_ctx_free(c);
    free(p);
    return (file){ data, n };
}

static file png_16(int h, int w)
{
    return spng_file(h, w, 16, false, false);
}
static file png_interlaced(int h, int w)
{
    return spng_file(h, w, 8, true, false);
}
static file png_with_text(int h, int w)
{
    return spng_file(h, w, 8, false, true);
}

static file webp(int h, int w, int channels, bool lossless)
{
    unsigned char *p = pixels(h, w, channels);
    uint8_t *data;
    const size_t n = channels == 4 ? lossless ? WebPEncodeLosslessRGBA(p, w, h, w * 4, &data)
                                              : WebPEncodeRGBA(p, w, h, w * 4, 80, &data)
                     : lossless ? WebPEncodeLosslessRGB(p, w, h, w * 3, &data)
                                   : WebPEncodeRGB(p, w, h, w * 3, 80, &data);
    const file f = of_memory(data, n);
    WebPFree(data);
    free(p);
    return f;
}

static file webp_lossy(int h, int w)
{
    return webp(h, w, 3, false);
}
static file webp_alpha(int h, int w)
{
    return webp(h, w, 4, false);
}
static file webp_lossless(int h, int w)
{
    return webp(h, w, 3, true);
}

static int append(GifFileType *g, const GifByteType *from, int n)
{
    file *f = g->UserData;
    f->data = realloc(f->data, f->n + (size_t)n);
    memcpy((char *)f->data + f->n, from, (size_t)n);
    f->n += (size_t)n;
    return n;
}

static file gif(int h, int w)
{
    file f = { NULL, 0 };
    int error;
    GifColorType color[256];
    for (int i = 0; i < 256; i++) color[i] = (GifColorType){ (GifByteType)i, 0, 0 };
    ColorMapObject *map = GifMakeMapObject(256, color);
    unsigned char *p = pixels(h, w, 1);
    GifFileType *g = EGifOpen(&f, append, &error);
    EGifPutScreenDesc(g, w, h, 8, 0, map);
    EGifPutImageDesc(g, 0, 0, w, h, false, NULL);
    for (int y = 0; y < h; y++) EGifPutLine(g, p + y * w, w);
    EGifCloseFile(g, &error);
    GifFreeMapObject(map);
    free(p);
    return f;
}

static file bmp(int h, int w)
{
    const int line = (w * 3 + 3) / 4 * 4, n = 54 + line * h;
    unsigned char *b = calloc((size_t)n, 1);
    memcpy(b, "BM", 2);
    memcpy(b + 2, &n, 4);
    b[10] = 54, b[14] = 40, b[26] = 1, b[28] = 24;
    memcpy(b + 18, &w, 4);
    memcpy(b + 22, &h, 4);
    return (file){ b, (size_t)n };
}

/* ---- rows -------------------------------------------------------------------------------------
 */

static const struct kind {
    const char *what;
    file (*make)(int height, int width);
    int64_t spare; /* bytes that the head says, and that may not be taken */
    int64_t loose; /* more that the libraries may not allocate of what is taken */
    bool slow;     /* to encode */
    bool no_gray;  /* is made of it */
} kinds[] = {
    { "a JPEG with a quarter of the colours", jpeg_420 },
    { "a JPEG with half of the colours", jpeg_422 },
    { "a JPEG with all colours", jpeg_444 },
    { "a gray JPEG", jpeg_gray },
    { "a progressive JPEG with a quarter of the colours", progressive_420 },
    { "a progressive JPEG with all colours", progressive_444 },
    { "a progressive gray JPEG", progressive_gray },
    { "a JPEG in CMYK", jpeg_cmyk, .no_gray = true },
    { "a progressive JPEG in YCCK", progressive_ycck, .no_gray = true },
    { "a PNG", png_rgb, 4 << 10 },
    { "a gray PNG", png_gray, 4 << 10 },
    { "a PNG of 16 bits", png_16, 4 << 10 },
    { "an interlaced PNG", png_interlaced, 4 << 10 },
    { "a PNG with a text", png_with_text, 12 << 10 },
    { "a GIF", gif },
    { "a BMP", bmp },
    { "a lossy WebP", webp_lossy, .slow = true },
    { "a WebP with alpha", webp_alpha, .loose = 3 << 20, .slow = true },
    { "a lossless WebP", webp_lossless, .loose = 256 << 10, .slow = true },
};

static const struct size {
    int height, width;
} sizes[] = { { 16, 16 }, { 70, 45 }, { 201, 320 }, { 600, 590 } };

static const struct photo {
    const char *what;
    keel_photo p;
} photos[] = {
    { "resized", { .height = 64, .width = 64, .channels = 3 } },
    { "resized in gray", { .height = 64, .width = 48, .channels = 1 } },
    { "with alpha", { .height = 64, .width = 48, .channels = 4 } },
    { "resized by cubic curves",
      { .height = 64, .width = 64, .channels = 3, .interpolation = KEEL_BICUBIC } },
    { "the nearest pixels",
      { .height = 64, .width = 64, .channels = 3, .interpolation = KEEL_NEAREST, .exact = true } },
    { "cropped", { .height = 100, .width = 30, .channels = 3, .crop = true } },
    { "padded", { .height = 100, .width = 200, .channels = 3, .pad = true } },
    { "shrunk by the decoder", { .height = 32, .width = 32, .channels = 3, .shrinks = true } },
};

static keel_status read_photo(const keel_photo *p, const file *f, void *row, keel_account *a)
{
    keel_scratch scratch = { .account = a };
    keel_data_field field = { 0 };
    keel_photo_field(p, &field);
    const keel_status s =
        keel_photo_read(p, &field, f->data, f->n, row, field.dtype, &scratch, "it");
    keel_scratch_free(&scratch);
    keel_account_drop(a);
    return s;
}

static void check(const struct kind *k, const struct size *z, const struct photo *x, const file *f)
{
    enum { HANDLES = 4 << 10, LOOSE = 48 << 10 };
    const keel_photo *p = &x->p;
    keel_account a = { 0 };
    int64_t needs = -1;
    void *row = malloc((size_t)(p->height * p->width * p->channels) * sizeof(float));
    for (size_t n = 64; needs < 0; n = n * 2 < f->n ? n * 2 : f->n)
        if (!keel_photo_needs(p, f->data, n < f->n ? n : f->n, f->n, &needs)) needs = -1;
    most_allocated = now_allocated;
    const int64_t before = now_allocated;
    must(read_photo(p, f, row, &a));
    const int64_t most = most_allocated - before;
    if (a.peak > needs || a.peak < needs - k->spare)
        fail_msg("%s of %d x %d, %s: %lld bytes are taken, and its head says %lld", k->what,
                 z->height, z->width, x->what, (long long)a.peak, (long long)needs);
    if (COUNTS && (most > a.peak + HANDLES || most < a.peak - LOOSE - k->loose))
        fail_msg("%s of %d x %d, %s: %lld bytes are allocated, and %lld taken", k->what, z->height,
                 z->width, x->what, (long long)most, (long long)a.peak);
    assert_int_equal(a.used, 0);
    const int64_t peak = a.peak;
    a = (keel_account){ .limit = peak };
    must(read_photo(p, f, row, &a));
    assert_true(a.used == 0 && a.peak <= a.limit);
    a = (keel_account){ .limit = peak - 1 };
    assert_int_equal(read_photo(p, f, row, &a), KEEL_ENOMEM);
    assert_non_null(strstr(keel_error(), "input_memory"));
    assert_true(a.used == 0 && a.peak <= a.limit);
    free(row);
}

static void a_row_takes_what_its_head_says_and_no_library_more(void **unused)
{
    (void)unused;
    for (size_t k = 0; k < sizeof kinds / sizeof *kinds; k++)
        for (size_t z = 0; z < sizeof sizes / sizeof *sizes; z++) {
            if (kinds[k].slow && sizes[z].height * sizes[z].width > 1 << 17) continue;
            const file f = kinds[k].make(sizes[z].height, sizes[z].width);
            for (size_t x = 0; x < sizeof photos / sizeof *photos; x++)
                if (!kinds[k].no_gray || photos[x].p.channels > 1)
                    check(&kinds[k], &sizes[z], &photos[x], &f);
            free(f.data);
        }
}

static void each_allocation_that_fails_gives_all_back(void **unused)
{
    (void)unused;
    for (size_t k = 0; k < sizeof kinds / sizeof *kinds; k++) {
        const file f = kinds[k].make(70, 45);
        float row[64 * 64 * 3];
        for (int64_t at = 0;; at++) {
            keel_account a = { 0 };
            const int64_t live = keel_memory_live();
            keel_memory_fail_at(at);
            const keel_status s = read_photo(&photos[0].p, &f, row, &a);
            keel_memory_fail_at(-1);
            assert_int_equal(a.used, 0);
            assert_int_equal(keel_memory_live(), live);
            if (s >= 0) break;
            if (s != KEEL_ENOMEM) fail_msg("%s: %s", kinds[k].what, keel_error());
        }
        free(f.data);
    }
}

static void any_head_is_looked_at_without_harm(void **unused)
{
    (void)unused;
    for (size_t k = 0; k < sizeof kinds / sizeof *kinds; k++) {
        const file f = kinds[k].make(40, 40);
        for (int i = 0; i < 2000; i++) {
            const size_t n = chance() % (f.n < 400 ? f.n : 400) + 1;
            unsigned char *head = malloc(n);
            int64_t needs;
            memcpy(head, f.data, n);
            for (int m = 0; m < 3; m++) head[chance() % n] = (unsigned char)chance();
            keel_photo_needs(&photos[i % 8].p, head, n, i % 2 ? n : f.n, &needs);
            assert_true(needs >= 0);
            free(head);
        }
        free(f.data);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_row_takes_what_its_head_says_and_no_library_more),
        cmocka_unit_test(each_allocation_that_fails_gives_all_back),
        cmocka_unit_test(any_head_is_looked_at_without_harm),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
