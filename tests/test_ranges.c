/* Loops over many elements that threads share: each element is visited once, and what they make of
 * a table is what one thread makes. */
#include "data/ranges.h"
#include "base/memory.h"
#include "data/sources/csv.h"
#include "keel/keel.h"
#include "must.h"
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

enum { MOST = 300001 };

static unsigned char visits[MOST];

static void visit(void *context, int64_t begin, int64_t end)
{
    (void)context;
    for (int64_t i = begin; i < end; i++) visits[i]++;
}

static void each_element_is_visited_once(void **state)
{
    (void)state;
    static const int64_t counts[] = { 0, 1, 65535, 131071, 131072, 196609, MOST };
    for (size_t k = 0; k < sizeof counts / sizeof *counts; k++) {
        memset(visits, 0, sizeof visits);
        must(keel_ranges(counts[k], visit, NULL));
        for (int64_t i = 0; i < MOST; i++) assert_int_equal(visits[i], i < counts[k]);
    }
}

static void without_memory_nothing_is_visited(void **state)
{
    (void)state;
    keel_status s = KEEL_ENOMEM;
    const int64_t live = keel_memory_live();
    for (int64_t k = 0; s == KEEL_ENOMEM; k++) {
        memset(visits, 0, sizeof visits);
        keel_memory_fail_at(k);
        s = keel_ranges(MOST, visit, NULL);
        keel_memory_fail_at(-1);
        assert_int_equal(visits[0], s == KEEL_OK);
        assert_int_equal(keel_memory_live(), live);
    }
    must(s);
}

/* 140,000 rows: words come in an order that is not theirs, and labels are numbers. */
static void a_long_table_has_its_words_and_labels(void **state)
{
    (void)state;
    enum { LONG = 140000, WORDS = 97 };
    char *text = malloc((size_t)LONG * 32);
    assert_non_null(text);
    size_t n = (size_t)sprintf(text, "a,w,v,y\n");
    for (int i = 0; i < LONG; i++)
        n += (size_t)sprintf(text + n, "%d,w%02d,v%02d,%d\n", i % 1000, i * 31 % WORDS,
                             (WORDS - 1) - i % WORDS, i % 7);
    keel_vocabulary words[2] = { { .column = "w" }, { .column = "v" } };
    keel_dataset_options o = KEEL_DATASET_OPTIONS;
    o.vocabularies = words;
    o.n_vocabulary = 2;
    keel_dataset *d = NULL;
    must(keel_csv_decode(&d, text, n, "y", &o, "long.csv"));
    free(text);
    keel_reader *r = NULL;
    const keel_tensor *field;
    must(keel_reader_create(&r, d, NULL));
    for (int i = 0; i < LONG; i++) {
        must(keel_reader_next(r, &field));
        const float *x = field[0].data;
        const int label = *(const int32_t *)field[1].data;
        if (x[0] != (float)(i % 1000) || x[1] != (float)(i * 31 % WORDS) ||
            x[2] != (float)((WORDS - 1) - i % WORDS) || label != i % 7)
            fail_msg("row %d: %g %g %g %d", i, (double)x[0], (double)x[1], (double)x[2], label);
    }
    keel_reader_destroy(r);
    keel_dataset_destroy(d);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_element_is_visited_once),
        cmocka_unit_test(without_memory_nothing_is_visited),
        cmocka_unit_test(a_long_table_has_its_words_and_labels),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
