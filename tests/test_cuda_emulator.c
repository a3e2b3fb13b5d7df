/* The emulator of CUDA finds each seeded fault, for any order of the threads, names its line, and
 * says nothing of what is right. Sums of its blocks have the same bits in any order. */
#include "emulator.h"
#include "emulator/bugs.h"
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

enum { ORDERS = 4 };

/* The line that the report names has the code. */
static void assert_line_has(const emu_bug *b, const char *report)
{
    char line[300] = "";
    const char *at = strstr(report, "; bugs.cu:");
    FILE *f = fopen("emulator/bugs.cu", "r");
    assert_non_null(f);
    if (!at) fail_msg("%s: no line in '%s'", b->what, report);
    for (int n = atoi(at + strlen("; bugs.cu:")); n > 0; n--)
        assert_non_null(fgets(line, sizeof line, f));
    fclose(f);
    if (!strstr(line, b->code)) fail_msg("%s: '%s', where '%s' stands", b->what, report, line);
}

static void faults_are_found_and_nothing_else(void **state)
{
    (void)state;
    for (const emu_bug *b = emu_bugs; b->what; b++)
        for (uint32_t order = 0; order < ORDERS; order++) {
            char text[1000];
            emu_seed(order);
            const char *why = b->run();
            const char *report = emu_report();
            snprintf(text, sizeof text, "%s", why ? why : report ? report : "");
            if (b->launch ? !why : why != NULL)
                fail_msg("%s: the launch: %s", b->what, why ? why : "did not fail");
            if (!b->says && text[0]) fail_msg("%s, order %u: %s", b->what, order, text);
            if (b->says && (!strstr(text, b->says) || (b->more && !strstr(text, b->more))))
                fail_msg("%s, order %u: '%s' does not say '%s' and '%s'", b->what, order, text,
                         b->says, b->more ? b->more : "");
            if (b->code) assert_line_has(b, text);
            emu_release_all();
        }
}

static void a_report_names_a_line_of_a_kernel(void **state)
{
    (void)state;
    for (const emu_bug *b = emu_bugs; b->what; b++) {
        if (!b->says || b->launch) continue;
        emu_seed(3);
        b->run();
        const char *report = emu_report();
        assert_non_null(report);
        if (!strstr(report, "; bugs.cu:") && !strstr(report, "; gpu.h:"))
            fail_msg("%s: no line in '%s'", b->what, report);
        emu_release_all();
    }
}

static void the_order_of_threads_changes_no_bit(void **state)
{
    (void)state;
    enum { COUNT = 1000 };
    static float x[4 * COUNT];
    float first[4], other[4];
    for (int i = 0; i < 4 * COUNT; i++) x[i] = (float)(i * 37 % 101) * 0.37f;
    for (uint32_t order = 0; order < 8; order++) {
        emu_seed(order);
        emu_block_sums(order ? other : first, x, COUNT);
        assert_null(emu_report());
        if (order) assert_memory_equal(first, other, sizeof first);
        emu_release_all();
    }
}

static void the_launch_that_was_asked_for_fails(void **state)
{
    (void)state;
    const emu_bug *right = emu_bugs;
    while (strcmp(right->what, "a fold without a fault") != 0) right++;
    emu_fail_launch(2);
    assert_null(right->run());
    assert_non_null(right->run());
    assert_null(right->run());
    assert_null(emu_report());
    emu_release_all();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(faults_are_found_and_nothing_else),
        cmocka_unit_test(a_report_names_a_line_of_a_kernel),
        cmocka_unit_test(the_order_of_threads_changes_no_bit),
        cmocka_unit_test(the_launch_that_was_asked_for_fails),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
