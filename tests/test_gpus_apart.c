/* GPUs of processes that see the same ones: each process that asks for all has a part of them. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include "train/gpus_apart.h"

enum { MOST = 4, ALL = 0 };

static const struct {
    const char *name;
    int n;
    struct {
        int64_t n;
        uint64_t id[4], asked; /* asked: bits of the numbers, or ALL */
    } of[MOST];
    bool refused;
    uint64_t want[MOST];
    int first, second; /* that share one; both 0: none do */
} cases[] = {
    { "one process of a machine has all its GPUs",
      2,
      { { 2, { 11, 12 }, ALL }, { 3, { 21, 22, 23 }, ALL } },
      false,
      { 3, 7 },
      0,
      0 },
    { "processes of one machine divide them",
      2,
      { { 4, { 11, 12, 13, 14 }, ALL }, { 4, { 11, 12, 13, 14 }, ALL } },
      false,
      { 3, 12 },
      0,
      0 },
    { "they divide them as evenly as they can",
      3,
      { { 4, { 11, 12, 13, 14 }, ALL },
        { 4, { 11, 12, 13, 14 }, ALL },
        { 4, { 11, 12, 13, 14 }, ALL } },
      false,
      { 1, 2, 12 },
      0,
      0 },
    { "processes that a launcher has given GPUs of their own keep them",
      2,
      { { 1, { 11 }, ALL }, { 1, { 12 }, ALL } },
      false,
      { 1, 1 },
      0,
      0 },
    { "two machines with two processes each",
      4,
      { { 2, { 11, 12 }, ALL },
        { 2, { 21, 22 }, ALL },
        { 2, { 11, 12 }, ALL },
        { 2, { 21, 22 }, ALL } },
      false,
      { 1, 1, 2, 2 },
      0,
      0 },
    { "more processes than GPUs",
      3,
      { { 2, { 11, 12 }, ALL }, { 2, { 11, 12 }, ALL }, { 2, { 11, 12 }, ALL } },
      true,
      { 0 },
      0,
      0 },
    { "numbers are those of the process that names them",
      2,
      { { 2, { 11, 12 }, 1 }, { 2, { 11, 12 }, 2 } },
      false,
      { 1, 2 },
      0,
      0 },
    { "two name the same one",
      3,
      { { 2, { 11, 12 }, 1 }, { 2, { 11, 12 }, 2 }, { 2, { 12, 11 }, 1 } },
      false,
      { 1, 2, 1 },
      1,
      2 },
    { "one has all, and another names one of them",
      2,
      { { 2, { 11, 12 }, ALL }, { 2, { 11, 12 }, 2 } },
      false,
      { 3, 2 },
      0,
      1 },
    { "GPUs that cannot be asked are nobody else's",
      2,
      { { 1, { 0 }, ALL }, { 1, { 0 }, ALL } },
      false,
      { 0, 0 },
      0,
      0 },
    { "a process of cores alone",
      3,
      { { 1, { 11 }, ALL }, { 0, { 0 }, ALL }, { 1, { 21 }, ALL } },
      false,
      { 1, 0, 1 },
      0,
      0 },
};

static void each_process_has_gpus_of_its_own(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        keel_gpus_of of[MOST] = { 0 };
        int first, second;
        for (int q = 0; q < cases[i].n; q++) {
            of[q].n = cases[i].of[q].n;
            for (int k = 0; k < of[q].n; k++) of[q].id[k] = cases[i].of[q].id[k];
            of[q].chosen = cases[i].of[q].asked;
            of[q].all = of[q].chosen == ALL;
        }
        const keel_status s = keel_gpus_choose(of, cases[i].n);
        if ((s == KEEL_EARG) != cases[i].refused) fail_msg("%s: %s", cases[i].name, keel_error());
        if (s < 0) continue;
        for (int q = 0; q < cases[i].n; q++)
            if (of[q].chosen != cases[i].want[q])
                fail_msg("%s: process %d has %llx", cases[i].name, q,
                         (unsigned long long)of[q].chosen);
        const bool shared = keel_gpus_shared(of, cases[i].n, &first, &second);
        if (shared != (cases[i].second > 0) ||
            (shared && (first != cases[i].first || second != cases[i].second)))
            fail_msg("%s: shared by %d and %d", cases[i].name, first, second);
    }
}

static void what_a_text_names_is_known(void **state)
{
    static const struct {
        const char *text;
        bool wrong, all;
        uint64_t numbers;
        const char *beside;
    } texts[] = { { "cuda", false, true, 0, NULL },
                  { "cuda,cpu", false, true, 0, "cpu" },
                  { "cuda:0", false, false, 1, NULL },
                  { "cuda:1-3", false, false, 14, NULL },
                  { "cuda:0x4", false, false, 1, NULL },
                  { "cuda:2,cuda:0,cpu:0-1", false, false, 5, "cpu:0-1" },
                  { "cuda:70", false, false, 0, NULL },
                  { "cuda:x", true, false, 0, NULL } };
    (void)state;
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        keel_gpus_text said = { 0 };
        const bool wrong = keel_gpus_read(&said, texts[i].text) == KEEL_EARG;
        if (wrong != texts[i].wrong || said.all != texts[i].all ||
            said.numbers != texts[i].numbers || !said.beside != !texts[i].beside)
            fail_msg("'%s': all %d, numbers %llx, beside %s", texts[i].text, said.all,
                     (unsigned long long)said.numbers, said.beside ? said.beside : "none");
        if (said.beside) assert_string_equal(said.beside, texts[i].beside);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_process_has_gpus_of_its_own),
        cmocka_unit_test(what_a_text_names_is_known),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
