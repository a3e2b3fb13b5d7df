/* Statuses and the text of the last error. */
#include "base/error.h"
#include "base/text.h"
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

static void every_status_has_its_name(void **state)
{
    assert_string_equal(keel_status_name(KEEL_OK), "KEEL_OK");
    assert_string_equal(keel_status_name(KEEL_END), "KEEL_END");
    assert_string_equal(keel_status_name(KEEL_EREMOTE), "KEEL_EREMOTE");
    assert_string_equal(keel_status_name((keel_status)77), "KEEL_?");
}

static void a_failure_returns_its_status_and_sets_the_text(void **state)
{
    assert_int_equal(keel_fail(KEEL_ESHAPE, "row %d of %s", 3, "x"), KEEL_ESHAPE);
    assert_string_equal(keel_error(), "row 3 of x");
}

static void a_caller_puts_the_place_before_the_text(void **state)
{
    keel_fail(KEEL_EARG, "no such key");
    assert_int_equal(keel_fail_within(KEEL_EIO, "%s", "a.json"), KEEL_EIO);
    assert_string_equal(keel_error(), "a.json: no such key");
    keel_fail(KEEL_EIO, "again: %s", keel_error());
    assert_string_equal(keel_error(), "again: a.json: no such key");
}

static void texts_are_one_line_without_control_characters(void **state)
{
    keel_fail(KEEL_EARG, "%s", "a\nb\tc\033[2Jd");
    assert_string_equal(keel_error(), "a b c?[2Jd");
}

static void only_whole_printable_characters_reach_a_terminal(void **state)
{
    static const struct {
        const char *given, *shown;
    } cases[] = {
        { "plain \xC3\xA9 \xE2\x82\xAC \xF0\x9F\x98\x80",
          "plain \xC3\xA9 \xE2\x82\xAC \xF0\x9F\x98\x80" },
        { "\x1B[2J\x07\x7F", "?[2J??" },
        { "\xC2\x9B"
          "2J\xC2\x80\xC2\xA0",
          "?2J?\xC2\xA0" }, /* U+009B begins a sequence too */
        { "\x9B"
          "2J \xFF\xFE",
          "?2J ??" },
        { "\xC0\x9B \xE0\x82\x9B \xED\xA0\x80 \xF4\x90\x80\x80", "?? ??? ??? ????" },
        { "a\xE2\x80\xAE"
          "b\xE2\x81\xA9"
          "c\xE2\x80\xA8"
          "d",
          "a?b?c?d" },
        { "cut \xE2\x82", "cut ??" },
        { "a\tb\nc\rd", "a b c?d" },
        { "", "" },
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char out[64], in_place[64];
        assert_string_equal(keel_printable(out, sizeof out, cases[i].given), cases[i].shown);
        snprintf(in_place, sizeof in_place, "%s", cases[i].given);
        assert_string_equal(keel_printable(in_place, sizeof in_place, in_place), cases[i].shown);
        keel_fail(KEEL_EARG, "%s", cases[i].given);
        assert_string_equal(keel_error(), cases[i].shown);
    }
    char small[5];
    assert_string_equal(keel_printable(small, sizeof small, "ab\xE2\x82\xAC"), "ab");
    assert_string_equal(keel_printable(small, 1, "ab"), "");

    keel_text t = { 0 };
    keel_text_add_name(&t, 4, "\xC3\xA9\xC2\x9B");
    keel_text_add_name(&t, 0, "\n|");
    assert_string_equal(t.data, "\xC3\xA9?   |");
    assert_int_equal(t.length, strlen(t.data));
    keel_text_free(&t);
}

static void long_texts_are_cut_with_a_mark(void **state)
{
    char big[3 * KEEL_ERROR_MAX];
    memset(big, 'x', sizeof big);
    big[sizeof big - 1] = 0;
    keel_fail(KEEL_EARG, "%s", big);
    assert_int_equal(strlen(keel_error()), KEEL_ERROR_MAX - 1);
    assert_string_equal(keel_error() + KEEL_ERROR_MAX - 4, "...");
    for (int i = 0; i < 3; i++) keel_fail_within(KEEL_EARG, "%s", i ? big : "where");
    assert_int_equal(strlen(keel_error()), KEEL_ERROR_MAX - 1);
    for (size_t i = 0; i + 1 < sizeof big; i += 2) memcpy(big + i, "\xC3\xA9", 2); /* e acute */
    big[sizeof big - 2] = 0;
    for (int shift = 0; shift < 2; shift++) {
        keel_fail(KEEL_EARG, "%s%s", shift ? "x" : "", big);
        const char *dots = strstr(keel_error(), "...");
        assert_non_null(dots);
        assert_int_equal((unsigned char)dots[-1], 0xA9); /* no half of a character */
    }
}

static void *fail_elsewhere(void *p)
{
    keel_failure_take(p, keel_fail(KEEL_ENUMERIC, "from the worker"));
    return NULL;
}

static void a_failure_travels_between_threads(void **state)
{
    keel_failure f;
    pthread_t t;
    keel_fail(KEEL_EARG, "mine");
    assert_int_equal(pthread_create(&t, NULL, fail_elsewhere, &f), 0);
    pthread_join(t, NULL);
    assert_string_equal(keel_error(), "mine");
    assert_int_equal(keel_failure_raise(&f), KEEL_ENUMERIC);
    assert_string_equal(keel_error(), "from the worker");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_status_has_its_name),
        cmocka_unit_test(a_failure_returns_its_status_and_sets_the_text),
        cmocka_unit_test(a_caller_puts_the_place_before_the_text),
        cmocka_unit_test(texts_are_one_line_without_control_characters),
        cmocka_unit_test(only_whole_printable_characters_reach_a_terminal),
        cmocka_unit_test(long_texts_are_cut_with_a_mark),
        cmocka_unit_test(a_failure_travels_between_threads),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
