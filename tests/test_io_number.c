/* Numbers of texts: every way to a double gives the one of strtod, and what is no decimal number is
 * none. */
#include "io/number.h"
#include <locale.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

static uint64_t seed = 1;

/* splitmix64 */
static uint64_t draw(void)
{
    uint64_t z = seed += 0x9E3779B97F4A7C15;
    z = (z ^ z >> 30) * 0xBF58476D1CE4E5B9;
    z = (z ^ z >> 27) * 0x94D049BB133111EB;
    return z ^ z >> 31;
}

/* The text must be read whole, with the bits of strtod. */
static void check(const char *text)
{
    double got = 0, want = strtod(text, NULL);
    const char *end = keel_number_scan(text, text + strlen(text), &got);
    if (*end || memcmp(&got, &want, sizeof got))
        fail_msg("'%s' is %a, not %a; read to '%s'", text, want, got, end);
}

static void random_digits_are_those_of_strtod(void **state)
{
    char text[128];
    for (int i = 0; i < 300000; i++) {
        const uint64_t w = draw() >> draw() % 64;
        const int digits =
            snprintf(text, sizeof text, "%s%llu", draw() % 4 ? "" : "-", (unsigned long long)w);
        const int place = (int)(draw() % (unsigned)(digits + 1));
        char *point = text + (*text == '-') + (place ? place - 1 : 0);
        if (draw() % 4) {
            memmove(point + 1, point, strlen(point) + 1);
            *point = '.';
        }
        if (draw() % 2)
            sprintf(text + strlen(text), "%c%d", draw() % 2 ? 'e' : 'E',
                    (int)(draw() % (draw() % 4 ? 60 : 700)) - (draw() % 2 ? 30 : 350));
        check(text);
    }
}

static void doubles_come_back_from_their_shortest_and_longest_texts(void **state)
{
    char text[1600];
    for (int i = 0; i < 200000; i++) {
        uint64_t bits = draw();
        double v;
        if (i % 2) bits = (bits & ~(UINT64_C(0x7FF) << 52)) | (uint64_t)(923 + draw() % 200) << 52;
        memcpy(&v, &bits, sizeof v);
        if (!isfinite(v)) continue;
        snprintf(text, sizeof text, "%.17g", v);
        check(text);
        snprintf(text, sizeof text, "%.*g", 1 + (int)(draw() % 19), v);
        check(text);
        if (i % 100) continue;
        snprintf(text, sizeof text, "%.1100g", v); /* all digits */
        check(text);
    }
}

/* The middle between two doubles, and its neighbours one digit away. */
static void ties_go_to_the_even_double(void **state)
{
    char text[128];
    for (int i = 0; i < 100000; i++) {
        const uint64_t m = (UINT64_C(1) << 53) + (draw() & ((UINT64_C(1) << 53) - 1));
        for (int k = -1; k <= 1; k++) { /* odd m: the middle of two doubles */
            snprintf(text, sizeof text, "%llu", (unsigned long long)((m | 1) + (unsigned)k));
            check(text);
            snprintf(text, sizeof text, "%llu.%de%d", (unsigned long long)((m | 1) + (unsigned)k),
                     (int)(draw() % 10), (int)(draw() % 12) - 6);
            check(text);
        }
    }
    uint64_t five = 625;             /* 5^|q| */
    for (int q = -4; q <= 23; q++) { /* all powers of ten that have middles of 64 bits */
        const uint64_t low = UINT64_C(1) << 53;
        for (uint64_t k = 0, w = q < 0 ? five * low + five : low / five + 1; k < 8;
             w += q < 0 ? 4 * five : 1) {
            const uint64_t m = q < 0 ? w / five : w * five;
            if (m >= 2 * low) break;
            if ((m & 3) != 1) continue;
            snprintf(text, sizeof text, "%llue%d", (unsigned long long)w, q);
            check(text);
            k++;
        }
        five = q < 0 ? five / 5 : five * 5;
    }
    static const char *const texts[] = {
        "9007199254740993",
        "9007199254740993.0",
        "9007199254740993.00000000000000000001",
        "9007199254740995",
        "1.00000000000000011102230246251565404",
        "1e23",
        "8.5e22",
        "1e22",
        "1e-22",
        "2.2250738585072011e-308",
        "2.2250738585072014e-308",
        "4.9e-324",
        "2e-324",
        "1.7976931348623157e308",
        "1.7976931348623159e308",
        "1e400",
        "1e-400",
        "0",
        "-0",
        "0e999999999999999999999",
        "0.000000000000000000000000000000000001",
        "5.",
        ".5",
        "+1",
        "00000000000000000000000000012",
        "1e00000000000000000000005",
        "18446744073709551615",
        "18446744073709551616",
        "9999999999999999999",
        "100000000000000000000000000000000000000000000000000",
    };
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) check(texts[i]);
}

static void what_is_no_decimal_number_is_none(void **state)
{
    static const struct {
        const char *text;
        size_t read;
    } cases[] = {
        { "", 0 },      { "-", 0 },           { "+", 0 },         { ".", 0 },    { "-.", 0 },
        { "e5", 0 },    { ".e5", 0 },         { "inf", 0 },       { "-inf", 0 }, { "nan", 0 },
        { "x1", 0 },    { " 1", 0 },          { "--1", 0 },       { "0x10", 1 }, { "1e", 1 },
        { "1e+", 1 },   { "1.2.3", 3 },       { "1,5", 1 },       { "1e5x", 3 }, { "12 ", 2 },
        { "1_000", 1 }, { "1234567\xff", 7 }, { "12345678:", 8 }, { "1/", 1 },
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const char *text = cases[i].text;
        double v = 77;
        const char *end = keel_number_scan(text, text + strlen(text), &v);
        if ((size_t)(end - text) != cases[i].read)
            fail_msg("'%s': read %zu bytes", text, (size_t)(end - text));
        if (!cases[i].read) assert_true(v == 77);
    }
}

/* Where eight bytes may be read, a short number is read at once; where not, digit by digit. */
static void a_short_number_is_the_same_whatever_follows_it(void **state)
{
    static const char letters[] = "0123456789012345678901.9.e-+E,: ";
    enum { MOST = 10, PAD = 16 };
    for (int i = 0; i < 1000000; i++) {
        char text[MOST + PAD] = { 0 };
        const int n = (int)(draw() % MOST);
        double one = 77, other = 77;
        for (int k = 0; k < n; k++) text[k] = letters[draw() % (sizeof letters - 1)];
        const char *tight = keel_number_scan(text, text + n, &one);
        const char *wide = keel_number_scan(text, text + n + PAD, &other);
        if (tight != wide || memcmp(&one, &other, sizeof one))
            fail_msg("'%s': %a, %td bytes; with room behind it %a, %td bytes", text, one,
                     tight - text, other, wide - text);
    }
}

/* Where 32 bytes may be read, a point and many digits are read at once. */
static void a_long_number_is_that_of_strtod_whatever_follows_it(void **state)
{
    static const char *const ends[] = { "", "e5", "E-7", ".5", "e", "x", "-1", "e+", ":" };
    enum { PAD = 48 };
    for (int i = 0; i < 400000; i++) {
        char text[128] = { 0 }, *end;
        int n = draw() % 2 ? snprintf(text, 3, "-") : 0;
        const int whole = (int)(draw() % 3 ? 1 : draw() % 10), zeros = (int)(draw() % 8);
        const int fraction = (int)(draw() % 24);
        for (int k = 0; k < whole; k++) text[n++] = (char)('0' + draw() % (draw() % 2 ? 10 : 1));
        text[n++] = '.';
        for (int k = 0; k < fraction; k++)
            text[n++] = (char)('0' + (k < zeros && i % 2 ? 0 : draw() % 10));
        strcpy(text + n, i % 4 ? "" : ends[draw() % (sizeof ends / sizeof *ends)]);
        n = (int)strlen(text) + 1;
        for (int k = 0; k < PAD; k++) text[n + k] = "0123456789.,\"\n"[draw() % 14];
        double want = strtod(text, &end), got = want;
        const char *tight = keel_number_scan(text, text + n - 1, &got);
        if (tight != end || memcmp(&got, &want, sizeof got))
            fail_msg("'%s': %a, %td bytes, not %a, %td bytes", text, got, tight - text, want,
                     end - text);
        got = want;
        if (keel_number_scan(text, text + n + PAD, &got) != end || memcmp(&got, &want, sizeof got))
            fail_msg("'%s' with room behind it: %a, not %a", text, got, want);
    }
}

static void a_million_digits_take_no_time(void **state)
{
    enum { N = 1 << 20 };
    char *text = malloc(N + 1);
    double v = 0;
    memset(text, '7', N);
    text[N] = 0;
    text[1] = '.';
    assert_ptr_equal(keel_number_scan(text, text + N, &v), text + N);
    assert_true(v > 7.7777777777 && v < 7.7777777778);
    memset(text, '0', N);
    text[1] = '.';
    text[N - 1] = '1';
    assert_ptr_equal(keel_number_scan(text, text + N, &v), text + N);
    assert_true(v == 0);
    free(text);
}

static void the_users_locale_does_not_matter(void **state)
{
    if (!setlocale(LC_ALL, "de_DE.UTF-8") && !setlocale(LC_ALL, "fr_FR.UTF-8")) skip();
    double v = 0;
    static const char *const texts[] = { "1.5", "123456789012345678901234.5", "1.5e300" };
    static const double want[] = { 1.5, 123456789012345678901234.5, 1.5e300 };
    for (int i = 0; i < 3; i++) {
        const char *end = keel_number_scan(texts[i], texts[i] + strlen(texts[i]), &v);
        assert_true(!*end && v == want[i]);
    }
    setlocale(LC_ALL, "C");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(random_digits_are_those_of_strtod),
        cmocka_unit_test(doubles_come_back_from_their_shortest_and_longest_texts),
        cmocka_unit_test(ties_go_to_the_even_double),
        cmocka_unit_test(what_is_no_decimal_number_is_none),
        cmocka_unit_test(a_short_number_is_the_same_whatever_follows_it),
        cmocka_unit_test(a_long_number_is_that_of_strtod_whatever_follows_it),
        cmocka_unit_test(a_million_digits_take_no_time),
        cmocka_unit_test(the_users_locale_does_not_matter),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
