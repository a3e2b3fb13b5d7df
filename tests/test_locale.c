/* A program may have set a locale whose decimal point is a comma. What Keel writes and reads has a
 * point all the same. */
#include "must.h"
#include "base/text.h"
#include "keel/callback.h"
#include "train/callbacks/_texts.h"
#include <locale.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static char folder[256];

/* Whether printf has a comma now. Where no such locale is installed, one is made. */
static bool with_a_comma(void)
{
    char command[600], number[8];
    snprintf(command, sizeof command, "localedef -i de_DE -f UTF-8 '%s/de_DE.UTF-8' 2>/dev/null",
             folder);
    if (!setlocale(LC_ALL, "de_DE.UTF-8")) {
        if (system(command) < 0 || setenv("LOCPATH", folder, 1)) return false;
        setlocale(LC_ALL, "de_DE.UTF-8");
    }
    snprintf(number, sizeof number, "%.1f", 0.5);
    return !strcmp(number, "0,5");
}

static void message(char *out, size_t size)
{
    keel_fail(KEEL_EARG, "half is %g", 0.5);
    snprintf(out, size, "%s", keel_error());
}

static void longer_text(char *out, size_t size)
{
    keel_text t = { 0 };
    keel_text_add(&t, "%.2f and %s", 0.5, "more");
    snprintf(out, size, "%s", t.data);
    keel_text_free(&t);
}

static void bytes(char *out, size_t size)
{
    char text[32];
    snprintf(out, size, "%s", keel_bytes_text(text, 3 << 19));
}

static void number_of_a_log(char *out, size_t size)
{
    char number[40];
    snprintf(out, size, "%s", keel_python_number(number, 0.984412));
}

static void name_of_a_file(char *out, size_t size)
{
    keel_logs logs = { .count = 1, .name = { "loss" }, .value = { 2.625 } };
    keel_text t = { 0 };
    must(keel_python_format(&t, "best-{epoch:02d}-{loss:.3f}-{loss}", 7, 0, &logs));
    snprintf(out, size, "%s", t.data);
    keel_text_free(&t);
}

static void argument(char *out, size_t size)
{
    keel_callback *c;
    const keel_status s = keel_callback_parse(&c, "ReduceLROnPlateau(factor=.25)");
    snprintf(out, size, "%s", s < 0 ? keel_error() : "read");
    if (s >= 0) keel_callback_destroy(c);
}

static void bound_of_an_argument(char *out, size_t size)
{
    keel_callback *c;
    const keel_status s = keel_callback_parse(&c, "ReduceLROnPlateau(factor=1.5)");
    snprintf(out, size, "%s", s < 0 ? keel_error() : "read");
    if (s >= 0) keel_callback_destroy(c);
}

static void history(char *out, size_t size)
{
    char path[300];
    char loss[] = "loss", error[] = "mae";
    double value[] = { 0.25, 1.5 };
    const keel_history h = { .epochs = 1, .count = 2, .name = { loss, error }, .value = value };
    snprintf(path, sizeof path, "%s/h.csv", folder);
    must(keel_history_save(&h, path));
    FILE *f = fopen(path, "r");
    assert_non_null(f);
    out[fread(out, 1, size - 1, f)] = 0;
    fclose(f);
}

static const struct {
    const char *name;
    void (*make)(char *out, size_t size);
    const char *want;
} cases[] = {
    { "an error", message, "half is 0.5" },
    { "a longer text", longer_text, "0.50 and more" },
    { "a number of bytes", bytes, "1.5 MiB" },
    { "a number in the file of CSVLogger", number_of_a_log, "0.984412" },
    { "the name of a file of ModelCheckpoint", name_of_a_file, "best-07-2.625-2.625" },
    { "an argument as in Python", argument, "read" },
    { "the bound of an argument", bound_of_an_argument,
      "ReduceLROnPlateau: factor must be at most 1, not 1.5" },
    { "the history of a fit", history, "epoch,loss,mae\n0,0.25,1.5\n" },
};

static void a_decimal_comma_changes_nothing(void **state)
{
    char got[400];
    (void)state;
    if (!with_a_comma()) skip();
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        cases[i].make(got, sizeof got);
        if (strcmp(got, cases[i].want) != 0)
            fail_msg("%s: '%s', not '%s'", cases[i].name, got, cases[i].want);
    }
    setlocale(LC_ALL, "C");
}

int main(void)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(a_decimal_comma_changes_nothing) };
    const char *tmp = getenv("KEEL_TEST_TMP");
    snprintf(folder, sizeof folder, "%s", tmp ? tmp : "/tmp");
    return cmocka_run_group_tests(tests, NULL, NULL);
}
