/* A hundred times a fit is killed at some moment, also while it saves, and begun again: in the end
 * its weights have the same bits as those of a fit that was never killed. Each attempt runs on
 * another number of lanes. */
#include "checkpoint_runs.h"
#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
enum { KILLS = 10 };
#else
enum { KILLS = 100 };
#endif
enum { EPOCHS = 5, STEP_MICROSECONDS = 700 };

static const char *self, *tmp;
/* Rows by number, EarlyStopping, averages of weights, a generator, a stateful layer. */
static const int of_cases[] = { 0, 15, 2, 10, 9 };
enum { CASES = sizeof of_cases / sizeof *of_cases };

/* ---- the child ------------------------------------------------------------------------------- */

static keel_status on_step(void *context, const keel_moment *at)
{
    (void)context;
    (void)at;
    usleep(STEP_MICROSECONDS); /* so that most kills come while it trains */
    return KEEL_OK;
}

/* Train, and go on from what is in the folder; folder "": neither. Write all bits to a file. */
static int train(const run_case *c, const char *devices, const char *folder, const char *out)
{
    run_data d;
    keel_strategy *s;
    keel_history h;
    keel_callback *named = NULL;
    const keel_callback slow = { KEEL_CALLBACK, .on_train_batch_end = on_step };
    const keel_checkpoint_options checkpoint = { KEEL_CHECKPOINT_OPTIONS, .folder = folder,
                                                 .every_steps = 2, .resume = true };
    run_open(&d, c);
    keel_model *m = run_model(c);
    keel_fit_options o = run_options(c, &d);
    o.epochs = EPOCHS;
    if (c->callback) must(keel_callback_parse(&named, c->callback));
    if (*folder) o.checkpoint = &checkpoint;
    o.callbacks = *folder ? KEEL_CALLBACKS(&slow, named) : KEEL_CALLBACKS(named);
    must(keel_strategy_create(&s, devices));
    must(keel_strategy_reproducible(s, KEEL_SHARDS));
    if (keel_fit(m, s, d.rows, &o, &h) < 0) {
        fprintf(stderr, "%s: %s\n", c->name, keel_error());
        return 1;
    }
    FILE *f = fopen(out, "wb");
    for (int i = 0; f && i < m->n_weight; i++)
        fwrite(m->weight[i].data, keel_dtype_size(m->dtype),
               (size_t)keel_shape_count(&m->weight[i].info.spec.shape), f);
    for (int i = 0; f && i < m->compiled.n_state; i++)
        if (m->compiled.state[i].data)
            fwrite(m->compiled.state[i].data, keel_dtype_size(m->dtype),
                   (size_t)keel_shape_count(&m->compiled.state[i].shape), f);
    if (f) fwrite(h.value, sizeof *h.value, (size_t)(h.epochs * h.count), f);
    if (!f || fclose(f)) return 1;
    keel_history_free(&h);
    keel_model_destroy(m);
    keel_strategy_destroy(s);
    run_close(&d);
    keel_callback_destroy(named);
    return 0;
}

/* ---- the parent ------------------------------------------------------------------------------ */

static pid_t begin(int k, int lanes, const char *folder, const char *out)
{
    char number[16], devices[16];
    snprintf(number, sizeof number, "%d", k);
    snprintf(devices, sizeof devices, lanes == 1 ? "cpu:0" : "cpu:0-%d", lanes - 1);
    const pid_t pid = fork();
    if (pid == 0) {
        execl(self, self, "--child", number, devices, folder, out, (char *)NULL);
        _exit(127);
    }
    assert_true(pid > 0);
    return pid;
}

/* The exit status; -1: it was killed. */
static int end(pid_t pid)
{
    int status;
    while (waitpid(pid, &status, 0) < 0) assert_int_equal(errno, EINTR);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static void compare(const char *a, const char *b, const char *what)
{
    char x[4096], y[4096];
    FILE *f = fopen(a, "rb"), *g = fopen(b, "rb");
    size_t n;
    assert_non_null(f);
    assert_non_null(g);
    do {
        n = fread(x, 1, sizeof x, f);
        if (fread(y, 1, sizeof y, g) != n || memcmp(x, y, n) != 0)
            fail_msg("%s: other bits than without kills", what);
    } while (n);
    fclose(f);
    fclose(g);
}

static void remove_folder(const char *folder)
{
    char command[400];
    snprintf(command, sizeof command, "rm -rf '%s'", folder);
    assert_int_equal(system(command), 0);
}

static void a_hundred_kills_change_nothing(void **state)
{
    char folder[300], out[300], want[300];
    uint32_t seed = 5;
    int kills = 0, ends = 0, attempt = 0;
    (void)state;
    for (int k = 0; kills < KILLS; k = (k + 1) % CASES) {
        snprintf(folder, sizeof folder, "%s/kills-%d", tmp, k);
        snprintf(out, sizeof out, "%s/out-%d", tmp, k);
        snprintf(want, sizeof want, "%s/want-%d", tmp, k);
        remove_folder(folder);
        assert_int_equal(end(begin(of_cases[k], 1, "", want)), 0);
        const double start = now();
        assert_int_equal(end(begin(of_cases[k], 1, folder, out)), 0);
        const double whole = now() - start; /* never killed, but with checkpoints */
        compare(want, out, run_cases[of_cases[k]].name);
        remove_folder(folder);
        for (bool ended = false; !ended;) {
            const pid_t pid = begin(of_cases[k], 1 + attempt++ % 4, folder, out);
            seed = seed * 1664525u + 1013904223u;
            const double after = whole * 1.1 * (double)(seed >> 8) / (1 << 24);
            usleep((useconds_t)(after * 1e6));
            kill(pid, SIGKILL);
            const int status = end(pid);
            kills += status < 0;
            ended = status >= 0;
            if (ended) assert_int_equal(status, 0);
        }
        ends++;
        compare(want, out, run_cases[of_cases[k]].name);
    }
    print_message("%d kills, %d runs to the end\n", kills, ends);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(a_hundred_kills_change_nothing) };
    if (argc == 6) return train(&run_cases[atoi(argv[2])], argv[3], argv[4], argv[5]);
    self = argv[0];
    tmp = getenv("KEEL_TEST_TMP");
    if (!tmp) tmp = "/tmp";
    return cmocka_run_group_tests(tests, NULL, NULL);
}
