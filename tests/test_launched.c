/* A program that was started by a large one: what a fit says of its memory is its own. */
#include "must.h"
#include "keel/train.h"
#include <spawn.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>

#define LARGE ((size_t)256 << 20)
extern char **environ;

/* What a fit of a model of 8 numbers says that it used. */
static int64_t used_by_a_small_fit(void)
{
    static float x[16][8], y[16][1];
    keel_model *m;
    keel_strategy *s;
    keel_dataset *d;
    keel_history h = { 0 };
    must(keel_model_create(&m, NULL, KEEL_FLOAT32, 3));
    must(keel_model_add(m, "InputLayer", KEEL_ARGS(KEEL_ARG_INTS("shape", 8))));
    must(keel_model_add(m, "Dense", KEEL_ARGS(KEEL_ARG_INT("units", 1))));
    must(keel_model_compile(m, &(keel_compile){ KEEL_COMPILE, .optimizer = { "SGD" },
                                                .loss = { { "mean_squared_error" } } }));
    must(keel_strategy_create(&s, "cpu:0"));
    const keel_tensor in = { KEEL_FLOAT32, { 2, { 16, 8 } }, x };
    const keel_tensor out = { KEEL_FLOAT32, { 2, { 16, 1 } }, y };
    must(keel_dataset_from_arrays(&d, &in, &out, NULL));
    must(keel_fit(m, s, d, &(keel_fit_options){ KEEL_FIT_OPTIONS, .batch_size = 4, .epochs = 1 },
                  &h));
    const int64_t used = h.memory_used;
    keel_history_free(&h);
    keel_dataset_destroy(d);
    keel_strategy_destroy(s);
    keel_model_destroy(m);
    return used;
}

static void memory_is_not_that_of_who_started_it(void **unused)
{
    (void)unused;
    char name[] = "launched", word[] = "child", *args[] = { name, word, NULL };
    int status = -1;
    pid_t child;
    char *large = malloc(LARGE);
    assert_non_null(large);
    memset(large, 1, LARGE); /* a vfork's child has it until exec */
    assert_int_equal(posix_spawn(&child, "/proc/self/exe", NULL, NULL, args, environ), 0);
    assert_true(waitpid(child, &status, 0) == child);
    free(large);
    assert_int_equal(status, 0);
}

int main(int argc, char **argv)
{
    if (argc == 2 && !strcmp(argv[1], "child")) return used_by_a_small_fit() >= (int64_t)LARGE / 2;
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(memory_is_not_that_of_who_started_it),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
