/* The resize of images, by vectors, against its formula, bit for bit. */
#include "base/memory.h"
#include "data/resize.h"
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

static uint64_t chance_state;

static unsigned chance(void) /* splitmix64 */
{
    uint64_t z = chance_state += 0x9e3779b97f4a7c15u;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return (unsigned)((z ^ (z >> 31)) >> 32);
}

/* ---- resize ------------------------------------------------------------------------------------
 */

typedef struct place {
    int64_t left, right;
    float part;
} place;

static place place_of(int64_t i, int64_t from, int64_t to)
{
    const float scale = (float)from / (float)to, centre = ((float)i + 0.5f) * scale - 0.5f;
    int64_t left = (int64_t)floorf(centre), right = (int64_t)ceilf(centre);
    left = left < 0 ? 0 : left > from - 1 ? from - 1 : left;
    right = right < 0 ? 0 : right > from - 1 ? from - 1 : right;
    return (place){ left, right, centre - floorf(centre) };
}

static float between(float a, float b, float part)
{
    return a + (b - a) * part;
}

static void check_resize(int64_t fh, int64_t fw, int64_t th, int64_t tw, int n, keel_scratch *s)
{
    const int64_t count = fh * fw * n;
    unsigned char *pixels = malloc((size_t)count); /* no byte more: reading behind it is seen */
    float *out = malloc((size_t)(th * tw * n) * sizeof *out);
    for (int64_t i = 0; i < count; i++) pixels[i] = (unsigned char)chance();
    assert_int_equal(keel_resize(&(keel_image){ pixels, fh, fw, n }, out, th, tw, s, 0), KEEL_OK);
    for (int64_t y = 0; y < th; y++)
        for (int64_t x = 0; x < tw; x++)
            for (int k = 0; k < n; k++) {
                const place py = place_of(y, fh, th), px = place_of(x, fw, tw);
                const unsigned char *top = pixels + py.left * fw * n + k;
                const unsigned char *bottom = pixels + py.right * fw * n + k;
                const float upper = between(top[px.left * n], top[px.right * n], px.part);
                const float lower = between(bottom[px.left * n], bottom[px.right * n], px.part);
                const float want = between(upper, lower, py.part), got = out[(y * tw + x) * n + k];
                if (memcmp(&want, &got, sizeof want))
                    fail_msg("%dx%dx%d to %dx%d: at %d, %d, %d: %.9g, not %.9g", (int)fh, (int)fw,
                             n, (int)th, (int)tw, (int)y, (int)x, k, (double)got, (double)want);
            }
    free(pixels);
    free(out);
}

static void a_resize_has_the_bits_of_its_formula_for_all_sizes(void **state)
{
    keel_scratch scratch = { 0 };
    (void)state;
    chance_state = 3;
    for (int n = 1; n <= 4; n += n == 1 ? 2 : 1) {
        for (int64_t from = 1; from <= 90; from++)
            for (int64_t to = 1; to <= 40; to++) {
                check_resize(2, from, 2, to, n, &scratch);
                if (from % 7 == 1) check_resize(from, 3, to, 5, n, &scratch);
            }
        check_resize(37, 50, 22, 22, n, &scratch);
        check_resize(375, 500, 224, 224, n, &scratch);
        check_resize(20, 3000, 3, 224, n, &scratch);
        check_resize(61, 61, 61, 61, n, &scratch);
        check_resize(9, 64, 9, 224, n, &scratch);
    }
    keel_scratch_free(&scratch);
}

static void the_nearest_pixel_is_that_of_its_formula_for_all_sizes(void **state)
{
    static const int64_t sizes[][4] = { { 1, 1, 3, 4 },    { 5, 7, 5, 7 },      { 9, 20, 4, 7 },
                                        { 4, 7, 9, 20 },   { 3, 1300, 2, 600 }, { 2, 90, 3, 1100 },
                                        { 33, 77, 50, 64 } };
    (void)state;
    chance_state = 4;
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++)
        for (int n = 1; n <= 4; n += n == 1 ? 2 : 1) {
            const int64_t *s = sizes[i];
            unsigned char *pixels = malloc((size_t)(s[0] * s[1] * n));
            unsigned char *out = malloc((size_t)(s[2] * s[3] * n));
            for (int64_t k = 0; k < s[0] * s[1] * n; k++) pixels[k] = (unsigned char)chance();
            keel_resize_nearest(&(keel_image){ pixels, s[0], s[1], n }, out, s[2], s[3]);
            for (int64_t k = 0; k < s[2] * s[3] * n; k++) {
                const float down = (float)s[0] / (float)s[2], across = (float)s[1] / (float)s[3];
                int64_t y = (int64_t)floorf(((float)(k / n / s[3]) + 0.5f) * down);
                int64_t x = (int64_t)floorf(((float)(k / n % s[3]) + 0.5f) * across);
                if (y > s[0] - 1) y = s[0] - 1;
                if (x > s[1] - 1) x = s[1] - 1;
                assert_int_equal(out[k], pixels[(y * s[1] + x) * n + k % n]);
            }
            free(pixels);
            free(out);
        }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_resize_has_the_bits_of_its_formula_for_all_sizes),
        cmocka_unit_test(the_nearest_pixel_is_that_of_its_formula_for_all_sizes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
