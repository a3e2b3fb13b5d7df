/* Checkpoints: a fit that was stopped anywhere and resumed ends with the bits of one that was not;
 * what does not belong to a run, or is damaged, is refused or passed over by name. */
#include "checkpoint_runs.h"
#include <dirent.h>
#include <math.h>
#include <pthread.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>
#include "base/hash.h"
#include "base/memory.h"
#include "io/file.h"
#include "io/sections.h"
#include "train/checkpoint.h"

static char folder[256];
static char lines[4096];

static void on_line(void *context, const char *line)
{
    (void)context;
    snprintf(lines + strlen(lines), sizeof lines - strlen(lines), "%s\n", line);
}

static bool always(void *context)
{
    (void)context;
    return true;
}

static void empty_folder(void)
{
    char command[300];
    snprintf(command, sizeof command, "rm -rf '%s'", folder);
    assert_int_equal(system(command), 0);
}

static int count_files(const char *ending)
{
    int n = 0;
    const struct dirent *e;
    DIR *d = opendir(folder);
    while (d && (e = readdir(d)))
        n += strlen(e->d_name) > strlen(ending) &&
             !strcmp(e->d_name + strlen(e->d_name) - strlen(ending), ending);
    if (d) closedir(d);
    return n;
}

static int start(void **state)
{
    const char *tmp = getenv("KEEL_TEST_TMP");
    (void)state;
    snprintf(folder, sizeof folder, "%s/ckpt", tmp ? tmp : "/tmp");
    return 0;
}

/* ---- stopped and resumed --------------------------------------------------------------------- */

static int64_t stop_after, steps_seen;
static int files_seen; /* checkpoints that are there after the fifth step */
static bool slow;      /* so that a checkpoint is written after each step */
static bool fails;     /* it does not stop the fit, but fails */
static bool sets;      /* the learning rate of the next step */

static keel_status on_step(void *context, const keel_moment *at)
{
    (void)context;
    if (sets)
        must(keel_model_set_learning_rate(at->model,
                                          0.001 * (double)(1 + (at->epoch + at->step) % 3)));
    if (slow) usleep(100000);
    if (steps_seen == 4) files_seen = count_files(".keras");
    if (++steps_seen != stop_after) return KEEL_OK;
    return fails ? keel_error_set(KEEL_EIO, "no camera") : KEEL_END;
}

static keel_strategy *strategy_of(const char *devices, bool reproducible)
{
    keel_strategy *s;
    must(keel_strategy_create(&s, devices));
    if (reproducible) must(keel_strategy_reproducible(s, KEEL_SHARDS));
    return s;
}

typedef struct outcome {
    keel_status status;
    keel_model *model;
    keel_history history;
} outcome;

static void outcome_free(outcome *r)
{
    keel_model_destroy(r->model);
    keel_history_free(&r->history);
}

static outcome run_with(const run_case *c, const char *devices,
                        const keel_checkpoint_options *checkpoint, int64_t stop,
                        void (*change)(keel_fit_options *o, keel_model *m))
{
    run_data d;
    outcome r = { 0 };
    keel_strategy *s = strategy_of(devices, true);
    const keel_callback stops = { KEEL_CALLBACK, .name = "stop", .on_train_batch_end = on_step };
    run_open(&d, c);
    r.model = run_model(c);
    keel_fit_options o = run_options(c, &d);
    keel_callback *named = NULL;
    if (c->callback) must(keel_callback_parse(&named, c->callback));
    o.callbacks = KEEL_CALLBACKS(&stops, named);
    o.checkpoint = checkpoint;
    if (change) change(&o, r.model);
    stop_after = stop;
    steps_seen = 0;
    lines[0] = 0;
    r.status = keel_fit(r.model, s, d.rows, &o, &r.history);
    run_close(&d);
    keel_callback_destroy(named);
    keel_strategy_destroy(s);
    return r;
}

static void a_fit_goes_on_from_any_step_with_the_same_bits(void **state)
{
    (void)state;
    for (int i = 0; i < RUN_CASES; i++) {
        const run_case *c = &run_cases[i];
        const keel_checkpoint_options first = { KEEL_CHECKPOINT_OPTIONS, .folder = folder,
                                                .every_steps = 2, .interrupted = always };
        keel_checkpoint_options again = first;
        again.resume = true;
        again.on_line = on_line;
        outcome whole = run_with(c, "cpu:0", NULL, -1, NULL);
        if (whole.status < 0) fail_msg("%s: %s", c->name, keel_error());
        const int64_t all = steps_seen;
        for (int64_t stop = 1; stop < all; stop += all / 7 + 1) {
            char what[160];
            snprintf(what, sizeof what, "%s, stopped after step %lld of %lld", c->name,
                     (long long)stop, (long long)all);
            empty_folder();
            outcome part = run_with(c, "cpu:0-2", &first, stop, NULL);
            if (part.status < 0 || !part.history.stopped) fail_msg("%s: %s", what, keel_error());
            outcome rest = run_with(c, stop % 2 ? "cpu:0" : "cpu:0-3", &again, -1, NULL);
            if (rest.status < 0) fail_msg("%s: %s", what, keel_error());
            if (steps_seen != all - stop)
                fail_msg("%s: went on for %lld steps; %s", what, (long long)steps_seen, lines);
            run_equal(whole.model, rest.model, what);
            run_equal_histories(&whole.history, &rest.history, what);
            outcome_free(&part);
            outcome_free(&rest);
        }
        outcome_free(&whole);
    }
}

static void a_callback_leaves_a_checkpoint_of_the_step_that_was_made(void **state)
{
    (void)state;
    static const struct {
        const char *name;
        bool fails, sets;
    } cases[] = { { "fails", true, false },
                  { "sets the rate and the fit is interrupted", false, true },
                  { "sets the rate and fails", true, true } };
    const run_case *c = &run_cases[0];
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const keel_checkpoint_options first = { KEEL_CHECKPOINT_OPTIONS, .folder = folder,
                                                .every_steps = 2,
                                                .interrupted = cases[i].fails ? NULL : always };
        keel_checkpoint_options again = first;
        again.resume = true;
        sets = cases[i].sets;
        outcome whole = run_with(c, "cpu:0", NULL, -1, NULL);
        const int64_t all = steps_seen;
        for (int64_t stop = 1; stop < all; stop += 3) {
            char what[80];
            snprintf(what, sizeof what, "%s after step %lld", cases[i].name, (long long)stop);
            empty_folder();
            fails = cases[i].fails;
            outcome part = run_with(c, "cpu:0", &first, stop, NULL);
            fails = false;
            assert_int_equal(part.status, cases[i].fails ? KEEL_ECALLBACK : KEEL_OK);
            outcome rest = run_with(c, "cpu:0", &again, -1, NULL);
            if (rest.status < 0) fail_msg("%s: %s", what, keel_error());
            if (steps_seen != all - stop)
                fail_msg("%s: went on for %lld steps", what, (long long)steps_seen);
            run_equal(whole.model, rest.model, what);
            outcome_free(&part);
            outcome_free(&rest);
        }
        sets = false;
        outcome_free(&whole);
    }
}

/* What a stream costs is said before it is read again and after; rows by number cost nothing. */
static void what_is_read_again_is_told_before_and_after(void **state)
{
    static const struct {
        const char *name, *before, *after; /* NULL: nothing is told */
        int64_t stop;
    } cases[] = {
        { "Adam, dropout and BatchNorm", NULL, NULL, 10 },
        { "a pipeline of rows by number", NULL, NULL, 10 },
        { "a pipeline with layers that draw", NULL, NULL, 10 },
        { "a generator", "reads 24 rows again", "goes on after 24 rows, ", 3 },
        { "a generator", "reads rows again", "goes on after 75 rows, ", 10 },
        { "a generator whose epochs begin anywhere", "reads 48 rows again", "goes on after 48 rows",
          6 },
        { "a shuffled sequence", "reads 16 rows again", "goes on after 16 rows, ", 8 },
        { "a pipeline that is a stream", "reads 24 rows again", "goes on after 24 rows, ", 3 },
    };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const keel_checkpoint_options o = { KEEL_CHECKPOINT_OPTIONS, .folder = folder,
                                            .interrupted = always, .on_line = on_line,
                                            .resume = true };
        const run_case *c = run_cases;
        while (strcmp(c->name, cases[i].name) != 0) c++;
        empty_folder();
        outcome part = run_with(c, "cpu:0", &o, cases[i].stop, NULL);
        must(part.status);
        outcome rest = run_with(c, "cpu:0", &o, -1, NULL);
        must(rest.status);
        const char *before = strstr(lines, cases[i].before ? cases[i].before : "again");
        if (!cases[i].before != !before) fail_msg("%s: %s", c->name, lines);
        if (before && (!strstr(before, ", since a stream cannot") ||
                       !strstr(before, cases[i].after) || !strstr(before, "were read again in 0.")))
            fail_msg("%s: %s", c->name, lines);
        outcome_free(&part);
        outcome_free(&rest);
    }
}

/* The place in the data, the budgets and what the data is known by, of any kind of data. */
static void the_input_takes_less_than_4_kb_of_a_checkpoint(void **state)
{
    static const char *const keys[] = { "identity", "epoch", "step", "rows", "budgets" };
    const keel_checkpoint_options o = { KEEL_CHECKPOINT_OPTIONS, .folder = folder,
                                        .interrupted = always };
    (void)state;
    for (int i = 0; i < RUN_CASES; i++) {
        keel_checkpoint c;
        char path[600];
        struct dirent *e = NULL;
        size_t n = 0;
        empty_folder();
        outcome part = run_with(&run_cases[i], "cpu:0", &o, 3, NULL);
        must(part.status);
        DIR *d = opendir(folder);
        while (d && (e = readdir(d)) && !strstr(e->d_name, ".keras")) {}
        assert_non_null(e);
        snprintf(path, sizeof path, "%s/%s", folder, e->d_name);
        closedir(d);
        must(keel_checkpoint_load(&c, path));
        for (size_t k = 0; k < sizeof keys / sizeof *keys; k++) {
            char *text =
                json_dumps(json_object_get(c.head, keys[k]), JSON_ENCODE_ANY | JSON_COMPACT);
            assert_non_null(text);
            n += strlen(text);
            free(text);
        }
        if (getenv("KEEL_TEST_SHOW")) print_message("%s: %zu bytes\n", run_cases[i].name, n);
        if (n > 4096) fail_msg("%s: %zu bytes", run_cases[i].name, n);
        keel_checkpoint_free(&c);
        outcome_free(&part);
    }
}

static void a_complete_run_has_nothing_left_to_do_and_may_have_more_epochs(void **state)
{
    const keel_checkpoint_options o = { KEEL_CHECKPOINT_OPTIONS, .folder = folder, .resume = true };
    const run_case *c = &run_cases[2]; /* weights become averages when training ends */
    (void)state;
    empty_folder();
    outcome a = run_with(c, "cpu:0", &o, -1, NULL);
    must(a.status);
    outcome b = run_with(c, "cpu:0", &o, -1, NULL);
    must(b.status);
    assert_int_equal(steps_seen, 0);
    run_equal(a.model, b.model, "run again");
    run_equal_histories(&a.history, &b.history, "run again");
    outcome_free(&a);
    outcome_free(&b);
}

static void five_epochs(keel_fit_options *o, keel_model *m)
{
    (void)m;
    o->epochs = 5;
}

static void more_epochs_go_on(void **state)
{
    const keel_checkpoint_options o = { KEEL_CHECKPOINT_OPTIONS, .folder = folder, .resume = true };
    const run_case *c = &run_cases[2];
    (void)state;
    empty_folder();
    outcome whole = run_with(c, "cpu:0", NULL, -1, five_epochs);
    outcome three = run_with(c, "cpu:0", &o, -1, NULL);
    outcome five = run_with(c, "cpu:0", &o, -1, five_epochs);
    must(five.status);
    run_equal(whole.model, five.model, "five epochs");
    outcome less = run_with(c, "cpu:0", &o, -1, NULL);
    assert_int_equal(less.status, KEEL_EARG);
    assert_non_null(strstr(keel_error(), "5 epochs"));
    outcome_free(&whole);
    outcome_free(&three);
    outcome_free(&five);
    outcome_free(&less);
}

static void keras_says_it_as_a_callback(void **state)
{
    char callback[400];
    run_case c = { .name = "BackupAndRestore", .optimizer = "Adam", .callback = callback };
    const keel_checkpoint_options o = { KEEL_CHECKPOINT_OPTIONS, .interrupted = always,
                                        .on_line = on_line };
    (void)state;
    snprintf(callback, sizeof callback, "BackupAndRestore(backup_dir='%s', save_freq=2)", folder);
    empty_folder();
    outcome whole = run_with(&run_cases[0], "cpu:0", NULL, -1, NULL);
    outcome part = run_with(&c, "cpu:0", &o, 10, NULL);
    must(part.status);
    assert_true(count_files(".keras") > 0);
    outcome rest = run_with(&c, "cpu:0", &o, -1, NULL);
    must(rest.status);
    assert_non_null(strstr(lines, "goes on from the checkpoint after step"));
    run_equal(whole.model, rest.model, "BackupAndRestore");
    assert_int_equal(access(folder, F_OK), -1); /* complete: nothing is left */
    outcome_free(&whole);
    outcome_free(&part);
    outcome_free(&rest);
}

/* ---- the folder ------------------------------------------------------------------------------ */

static void spoil(const char *path)
{
    FILE *f = fopen(path, "r+b");
    assert_non_null(f);
    fseek(f, -200, SEEK_END);
    const long at = ftell(f) / 2;
    fseek(f, at, SEEK_SET);
    for (int i = 0; i < 64; i++) fputc(0x5a, f);
    fclose(f);
}

static int by_name(const struct dirent **a, const struct dirent **b)
{
    return strcmp((*b)->d_name, (*a)->d_name);
}

static int is_checkpoint(const struct dirent *e)
{
    const size_t n = strlen(e->d_name);
    return n > 6 && !strcmp(e->d_name + n - 6, ".keras");
}

static void newest(char path[600])
{
    struct dirent **list;
    const int n = scandir(folder, &list, is_checkpoint, by_name);
    assert_true(n > 0);
    snprintf(path, 600, "%s/%s", folder, list[0]->d_name);
    for (int i = 0; i < n; i++) free(list[i]);
    free(list);
}

static void so_many_files_are_kept_and_a_broken_one_is_passed_over(void **state)
{
    char path[600];
    const run_case *c = &run_cases[0];
    const keel_checkpoint_options o = {
        KEEL_CHECKPOINT_OPTIONS, .folder = folder,     .resume = true, .every_steps = 1, .keep = 3,
        .on_line = on_line,      .interrupted = always
    };
    (void)state;
    empty_folder();
    outcome whole = run_with(c, "cpu:0", NULL, -1, NULL);
    slow = true;
    outcome part = run_with(c, "cpu:0", &o, 5, NULL);
    slow = false;
    assert_int_equal(count_files(".keras"), 3);
    newest(path);
    spoil(path);
    outcome rest = run_with(c, "cpu:0", &o, -1, NULL);
    must(rest.status);
    assert_non_null(strstr(lines, "is damaged"));
    assert_int_equal(count_files(".damaged"), 1);
    run_equal(whole.model, rest.model, "from the file before the broken one");
    assert_int_equal(count_files(".tmp"), 0);
    assert_int_equal(count_files(".lock"), 0);
    outcome_free(&whole);
    outcome_free(&part);
    outcome_free(&rest);
}

/* Ends of epochs are nothing special then. */
static void checkpoints_come_by_time_where_asked(void **state)
{
    static const struct {
        double every_seconds;
        int least, most; /* files after five steps, of a tenth of a second each */
    } cases[] = { { 1e-9, 3, 5 }, { 1000, 0, 0 } };
    (void)state;
    slow = true;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const keel_checkpoint_options o = { KEEL_CHECKPOINT_OPTIONS, .folder = folder, .keep = 100,
                                            .every_seconds = cases[i].every_seconds };
        empty_folder();
        outcome r = run_with(&run_cases[0], "cpu:0", &o, 8, NULL);
        must(r.status);
        if (files_seen < cases[i].least || files_seen > cases[i].most)
            fail_msg("every %g s: %d files", cases[i].every_seconds, files_seen);
        outcome_free(&r);
    }
    slow = false;
}

static void all_broken_is_refused(void **state)
{
    char path[600];
    const run_case *c = &run_cases[0];
    const keel_checkpoint_options o = { KEEL_CHECKPOINT_OPTIONS, .folder = folder, .resume = true,
                                        .interrupted = always };
    (void)state;
    empty_folder();
    outcome part = run_with(c, "cpu:0", &o, 2, NULL);
    newest(path);
    spoil(path);
    outcome rest = run_with(c, "cpu:0", &o, -1, NULL);
    assert_int_equal(rest.status, KEEL_EFORMAT);
    outcome_free(&part);
    outcome_free(&rest);
}

static void a_file_of_keras_reads_it(const char *path)
{
    keel_model *m = NULL;
    must(keel_model_load(&m, path)); /* as tests/interop does with real Keras */
    keel_model_destroy(m);
}

static void a_checkpoint_is_a_model(void **state)
{
    char path[600];
    const keel_checkpoint_options o = { KEEL_CHECKPOINT_OPTIONS, .folder = folder };
    (void)state;
    empty_folder();
    outcome a = run_with(&run_cases[0], "cpu:0", &o, -1, NULL);
    must(a.status);
    newest(path);
    a_file_of_keras_reads_it(path);
    outcome_free(&a);
}

/* ---- refused --------------------------------------------------------------------------------- */

static void other_seed(keel_fit_options *o, keel_model *m)
{
    (void)m;
    o->seed++;
}
static void other_batch(keel_fit_options *o, keel_model *m)
{
    (void)m;
    o->batch_size = 16;
}
static void other_rate(keel_fit_options *o, keel_model *m)
{
    (void)o;
    must(keel_model_set_learning_rate(m, 0.5));
}
static void other_weights(keel_fit_options *o, keel_model *m)
{
    (void)o;
    ((float *)m->weight[0].data)[0] += 1;
}
static void other_order(keel_fit_options *o, keel_model *m)
{
    (void)m;
    o->no_shuffle = true;
}

static void what_another_run_has_left_is_refused_by_name(void **state)
{
    static const struct {
        const char *name, *text;
        void (*change)(keel_fit_options *o, keel_model *m);
    } rows[] = {
        { "another seed", "seed 3", other_seed },
        { "another batch size", "batch_size 8, and this one has 16", other_batch },
        { "another learning rate", "compiled in another way", other_rate },
        { "other weights", "began with other weights", other_weights },
        { "another order", "no_shuffle", other_order },
    };
    const keel_checkpoint_options o = { KEEL_CHECKPOINT_OPTIONS, .folder = folder, .resume = true,
                                        .interrupted = always };
    (void)state;
    empty_folder();
    outcome part = run_with(&run_cases[0], "cpu:0", &o, 3, NULL);
    must(part.status);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        outcome r = run_with(&run_cases[0], "cpu:0", &o, -1, rows[i].change);
        assert_int_equal(r.status, KEEL_EARG);
        if (!strstr(keel_error(), rows[i].text)) fail_msg("%s: %s", rows[i].name, keel_error());
        assert_int_equal(steps_seen, 0);
        outcome_free(&r);
    }
    outcome r = run_with(&run_cases[1], "cpu:0", &o, -1, NULL);
    assert_int_equal(r.status, KEEL_EARG);
    outcome_free(&r);
    outcome_free(&part);
}

static void a_callback_with_other_arguments_is_refused(void **state)
{
    char log[2][sizeof folder + 40];
    for (int i = 0; i < 2; i++)
        snprintf(log[i], sizeof log[i], "CSVLogger('%s/%d.csv')", folder, i);
    const struct {
        const char *was, *is;
        bool good;
    } rows[] = {
        { "EarlyStopping(patience=5)", "EarlyStopping(patience=1)", false },
        { "EarlyStopping(patience=5)", "EarlyStopping(patience=5, monitor='loss')", false },
        { "EarlyStopping(patience=5)", "EarlyStopping(patience=5, verbose=1)", true },
        { "ReduceLROnPlateau(factor=0.5)", "ReduceLROnPlateau(factor=0.25)", false },
        { "ReduceLROnPlateau(factor=0.5)", "EarlyStopping()", false },
        { log[0], log[1], true },
    };
    const keel_checkpoint_options o = { KEEL_CHECKPOINT_OPTIONS, .folder = folder, .resume = true,
                                        .interrupted = always };
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        run_case c = { .name = "a callback", .optimizer = "Adam", .validation = true };
        empty_folder();
        c.callback = rows[i].was;
        outcome part = run_with(&c, "cpu:0", &o, 3, NULL);
        must(part.status);
        c.callback = rows[i].is;
        outcome r = run_with(&c, "cpu:0", &o, -1, NULL);
        if (rows[i].good) must(r.status);
        if (!rows[i].good && (r.status != KEEL_EARG || !strstr(keel_error(), "other callbacks")))
            fail_msg("%s, then %s: %s", rows[i].was, rows[i].is, keel_error());
        outcome_free(&part);
        outcome_free(&r);
    }
}

static void every_second_epoch(keel_fit_options *o, keel_model *m)
{
    (void)m;
    o->validation_freq = 2;
}

static void the_log_of_a_resumed_run_is_that_of_a_whole_one(void **state)
{
    static const char earlier[] = "epoch,loss\r\n0,1.5\r\n";
    static const struct {
        const char *name, *before, *arguments;
        bool lost; /* the file is gone when the run goes on */
        int64_t stop;
    } rows[] = {
        { "a new file", NULL, "", false, 10 },
        { "a file that begins anew", earlier, "", false, 10 },
        { "a file that goes on", earlier, ", append=True", false, 10 },
        { "a file that goes on from the first epoch", earlier, ", append=True", false, 3 },
        { "a new file that goes on from the first epoch", NULL, ", append=True", false, 3 },
        { "a run that had ended", NULL, "", false, 1000 },
        { "another separator", NULL, ", separator=;", false, 17 },
        { "a file that is gone", NULL, "", true, 10 },
    };
    const keel_checkpoint_options first = { KEEL_CHECKPOINT_OPTIONS, .folder = folder,
                                            .interrupted = always };
    keel_checkpoint_options again = first;
    again.resume = true;
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        char path[2][sizeof folder + 40];
        void *text[2];
        size_t n_bytes[2];
        for (int k = 0; k < 2; k++) { /* whole, and resumed */
            char logger[sizeof path + 60];
            const run_case c = {
                .name = "a log", .optimizer = "Adam", .validation = true, .callback = logger
            };
            snprintf(path[k], sizeof path[k], "%s-%d.csv", folder, k);
            snprintf(logger, sizeof logger, "CSVLogger('%s'%s)", path[k], rows[i].arguments);
            remove(path[k]);
            if (rows[i].before) must(keel_file_write(path[k], rows[i].before, sizeof earlier - 1));
            empty_folder();
            outcome part = run_with(&c, "cpu:0", &first, k ? rows[i].stop : -1, every_second_epoch);
            must(part.status);
            outcome_free(&part);
            if (!k) continue;
            FILE *f = fopen(path[k], "a"); /* an epoch that no checkpoint knows of */
            assert_true(f && fputs("7,0.5,0.5,NA,NA\r\n", f) >= 0 && !fclose(f));
            if (rows[i].lost) remove(path[k]);
            outcome rest = run_with(&c, "cpu:0", &again, -1, every_second_epoch);
            must(rest.status);
            outcome_free(&rest);
        }
        for (int k = 0; k < 2; k++) must(keel_file_read(path[k], 4096, &text[k], &n_bytes[k]));
        /* one that is gone begins with the epoch in which the run goes on */
        const size_t header = strlen("epoch,accuracy,loss,val_accuracy,val_loss\r\n");
        const size_t from = rows[i].lost ? header : 0, n = n_bytes[1] - from;
        if (n_bytes[1] <= header || (rows[i].lost ? n >= n_bytes[0] : n_bytes[0] != n) ||
            memcmp((char *)text[0] + n_bytes[0] - n, (char *)text[1] + from, n) != 0)
            fail_msg("%s: '%.*s' instead of '%.*s'", rows[i].name, (int)n_bytes[1], (char *)text[1],
                     (int)n_bytes[0], (char *)text[0]);
        for (int k = 0; k < 2; k++) keel_free(text[k]);
    }
}

static void a_folder_is_for_one_run(void **state)
{
    keel_checkpoint_options o = { KEEL_CHECKPOINT_OPTIONS, .folder = folder };
    keel_claim *claim;
    char path[300];
    (void)state;
    empty_folder();
    outcome a = run_with(&run_cases[0], "cpu:0", &o, -1, NULL);
    must(a.status);
    outcome b = run_with(&run_cases[0], "cpu:0", &o, -1, NULL);
    assert_int_equal(b.status, KEEL_EARG);
    assert_non_null(strstr(keel_error(), "earlier run"));
    o.resume = true;
    snprintf(path, sizeof path, "%s/checkpoint", folder);
    must(keel_claim_take(&claim, path));
    outcome c = run_with(&run_cases[0], "cpu:0", &o, -1, NULL);
    assert_int_equal(c.status, KEEL_EIO);
    assert_non_null(strstr(keel_error(), "is training into it"));
    keel_claim_release(claim);
    o.folder = "/proc/nothing/here";
    outcome d = run_with(&run_cases[0], "cpu:0", &o, -1, NULL);
    assert_int_equal(d.status, KEEL_EIO);
    o.folder = folder;
    o.keep = 1;
    outcome e = run_with(&run_cases[0], "cpu:0", &o, -1, NULL);
    assert_int_equal(e.status, KEEL_EARG);
    outcome_free(&a);
    outcome_free(&b);
    outcome_free(&c);
    outcome_free(&d);
    outcome_free(&e);
}

/* ---- saved by another thread ----------------------------------------------------------------- */

static keel_model *trained;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t change = PTHREAD_COND_INITIALIZER;
static bool stuck, freed;
static int calls_left; /* of the generator, before it waits for ever, as a network drive may */

static void wait_for(const bool *what)
{
    pthread_mutex_lock(&lock);
    while (!*what) pthread_cond_wait(&change, &lock);
    pthread_mutex_unlock(&lock);
}

static void now(bool *what)
{
    pthread_mutex_lock(&lock);
    *what = true;
    pthread_cond_broadcast(&change);
    pthread_mutex_unlock(&lock);
}

static keel_status stuck_next(void *context, void *x, void *y, float *w, int64_t capacity,
                              int64_t *rows)
{
    if (calls_left-- > 0) return run_next(context, x, y, w, capacity, rows);
    now(&stuck);
    wait_for(&freed);
    return KEEL_EIO;
}

static void *save_it(void *path)
{
    wait_for(&stuck);
    usleep(50000); /* the steps before it end meanwhile */
    const keel_status s = keel_fit_save(trained, path);
    now(&freed);
    return (void *)(intptr_t)s;
}

static void begin_stuck(run_data *d)
{
    stuck = freed = false;
    run_open(d, &run_cases[0]);
    trained = run_model(&run_cases[0]);
}

static void end_stuck(run_data *d)
{
    keel_model_destroy(trained);
    run_close(d);
}

static void a_fit_that_waits_for_rows_can_be_saved(void **state)
{
    (void)state;
    const struct {
        const char *what;
        bool validation;
        int calls, steps;
    } cases[] = {
        { "for those of a step", false, 3, 3 },
        { "for those of its validation", true, 1, (RUN_ROWS + 6) / 7 },
        { "for the validation of a later epoch", true, (RUN_ROWS + 6) / 7 + 2,
          2 * ((RUN_ROWS + 6) / 7) },
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        run_data d;
        pthread_t thread;
        void *saved;
        keel_model *m = NULL;
        char path[300];
        keel_generator g = { .size = sizeof g,
                             .context = &d,
                             .next = stuck_next,
                             .reset = run_reset,
                             .max_rows = 8,
                             .has_y = true,
                             .x_shape = { .rank = 1, .dim = { RUN_FEATURES } } };
        begin_stuck(&d);
        calls_left = cases[i].calls;
        keel_dataset *rows;
        must(keel_dataset_from_generator(&rows, &g));
        keel_strategy *s = strategy_of("cpu:0", false);
        snprintf(path, sizeof path, "%s-rescued%zu.keras", folder, i);
        assert_int_equal(keel_fit_save(trained, path), KEEL_END);
        assert_int_equal(pthread_create(&thread, NULL, save_it, path), 0);
        const bool v = cases[i].validation;
        const keel_fit_options o = { KEEL_FIT_OPTIONS, .batch_size = 7, .epochs = 3,
                                     .validation = v ? rows : NULL };
        assert_int_equal(keel_fit(trained, s, v ? d.rows : rows, &o, NULL), KEEL_ECALLBACK);
        pthread_join(thread, &saved);
        assert_int_equal((int)(intptr_t)saved, KEEL_OK);
        must(keel_model_load(&m, path));
        if (m->compiled.iterations != cases[i].steps)
            fail_msg("%s: %d steps", cases[i].what, (int)m->compiled.iterations);
        run_equal(trained, m, cases[i].what); /* the failure changed nothing */
        keel_model_destroy(m);
        keel_dataset_destroy(rows);
        keel_strategy_destroy(s);
        end_stuck(&d);
    }
}

static keel_status save_within(void *path, const keel_moment *at)
{
    assert_int_equal(keel_fit_save(at->model, path), KEEL_EARG);
    assert_non_null(strstr(keel_error(), "keel_model_save"));
    return KEEL_OK;
}

static keel_status fit_another(void *data, const keel_moment *at)
{
    keel_strategy *s = strategy_of("cpu:0", false);
    keel_model *m = run_model(&run_cases[0]);
    (void)at;
    now(&stuck);
    usleep(100000); /* until another thread waits to save the first model */
    const keel_status st = keel_fit(m, s, ((run_data *)data)->rows, NULL, NULL);
    keel_model_destroy(m);
    keel_strategy_destroy(s);
    return st < 0 ? st : KEEL_END;
}

static void a_fit_within_a_callback_does_not_wait_for_one_that_saves(void **state)
{
    run_data d;
    pthread_t thread;
    void *saved;
    char path[300];
    (void)state;
    begin_stuck(&d);
    keel_strategy *s = strategy_of("cpu:0", false);
    snprintf(path, sizeof path, "%s-beside.keras", folder);
    assert_int_equal(pthread_create(&thread, NULL, save_it, path), 0);
    const keel_callback within = { KEEL_CALLBACK, .on_train_batch_begin = save_within,
                                   .context = path };
    const keel_callback another = { KEEL_CALLBACK, .on_epoch_end = fit_another, .context = &d };
    const keel_fit_options o = { KEEL_FIT_OPTIONS, .callbacks = KEEL_CALLBACKS(&within, &another) };
    must(keel_fit(trained, s, d.rows, &o, NULL));
    pthread_join(thread, &saved);
    assert_int_equal((int)(intptr_t)saved, KEEL_OK);
    keel_strategy_destroy(s);
    end_stuck(&d);
}

/* ---- without memory -------------------------------------------------------------------------- */

/* Only requests of this thread are counted out: those of the saver come at any time. */
static void each_failing_allocation_is_one_error_and_no_leak(void **state)
{
    const run_case *c = &run_cases[15]; /* with a callback that has tensors */
    const keel_checkpoint_options o = { KEEL_CHECKPOINT_OPTIONS, .folder = folder, .resume = true,
                                        .interrupted = always };
    const int64_t before = keel_memory_live();
    int ends = 0;
    (void)state;
    for (int at = 0; ends < 1; at += at < 40 ? 2 : 37) {
        empty_folder();
        outcome part = run_with(c, "cpu:0", &o, 6, NULL);
        must(part.status);
        outcome_free(&part);
        run_data d;
        keel_callback *named;
        keel_strategy *s = strategy_of("cpu:0", true);
        const keel_callback stops = { KEEL_CALLBACK, .name = "stop",
                                      .on_train_batch_end = on_step };
        run_open(&d, c);
        keel_model *m = run_model(c);
        must(keel_callback_parse(&named, c->callback));
        keel_fit_options f = run_options(c, &d);
        f.callbacks = KEEL_CALLBACKS(&stops, named);
        f.checkpoint = &o;
        stop_after = 1; /* writes a checkpoint at once */
        steps_seen = 0;
        keel_memory_fail_at(at);
        const keel_status st = keel_fit(m, s, d.rows, &f, NULL);
        keel_memory_fail_at(-1);
        ends += st >= 0 && at > 1000;
        if (st < 0 && st != KEEL_ENOMEM) fail_msg("request %d: %s", at, keel_error());
        keel_model_destroy(m);
        keel_callback_destroy(named);
        run_close(&d);
        keel_strategy_destroy(s);
        if (keel_memory_live() != before)
            fail_msg("request %d: %lld blocks are left", at,
                     (long long)(keel_memory_live() - before));
        if (st < 0) { /* whatever failed, the checkpoint is still there */
            outcome rest = run_with(c, "cpu:0", &o, 1, NULL);
            must(rest.status);
            outcome_free(&rest);
        }
    }
}

/* ---- the block ------------------------------------------------------------------------------- */

static const double numbers[3] = { 1, 2, 3 };

static void *three_sections(size_t *n)
{
    const keel_section list[] = { { "head", "{}", 2 },
                                  { "tally", numbers, sizeof numbers },
                                  { "empty", NULL, 0 } };
    void *block;
    must(keel_sections_encode(list, 3, &block, n));
    return block;
}

static void a_damaged_block_is_refused_wherever_it_is_damaged(void **state)
{
    keel_sections got;
    size_t n;
    void *block = three_sections(&n);
    (void)state;
    must(keel_sections_decode(&got, block, n));
    assert_int_equal(got.count, 3);
    assert_memory_equal(keel_sections_find(&got, "tally")->data, numbers, sizeof numbers);
    assert_null(keel_sections_find(&got, "nothing"));
    keel_sections_free(&got);
    for (size_t i = 0; i < n; i++) {
        ((unsigned char *)block)[i] ^= 0x40;
        assert_int_equal(keel_sections_decode(&got, block, n), KEEL_EFORMAT);
        ((unsigned char *)block)[i] ^= 0x40;
        assert_int_equal(keel_sections_decode(&got, block, i), KEEL_EFORMAT);
    }
    keel_free(block);
    assert_int_equal(
        keel_sections_encode((const keel_section[]){ { "a", NULL, 0 }, { "a", NULL, 0 } }, 2,
                             &block, &n),
        KEEL_EARG);
}

static void a_block_with_its_checksum_may_claim_only_what_it_has(void **state)
{
    enum { SUM = 8, SUMMED = 16, FIRST = 24, ENTRY = KEEL_SECTION_NAME + 16 };
    enum { SECOND = FIRST + ENTRY, BEGIN = SECOND + KEEL_SECTION_NAME, LENGTH = BEGIN + 8 };
    static const struct {
        const char *what;
        size_t at;
        uint64_t value;
        const char *says;
    } cases[] = {
        { "more sections than there is room for", SUMMED, 4, "4 sections in 200 bytes" },
        { "a section that begins behind the end", BEGIN, 208, "section 1 is damaged" },
        { "a section that ends behind the end", LENGTH, 25, "section 1 is damaged" },
        { "a section as long as the block", LENGTH, 200, "section 1 is damaged" },
        { "a section that is not aligned", BEGIN, 169, "section 1 is damaged" },
        { "two sections of one name", SECOND, 0x64616568 /* head */, "section 1 is damaged" },
        { "a section without a name", SECOND, 0, "section 1 is damaged" },
    };
    keel_sections got;
    size_t n;
    void *block = three_sections(&n);
    (void)state;
    assert_int_equal(n, 200);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        uint64_t was, sum;
        char *place = (char *)block + cases[i].at;
        memcpy(&was, place, sizeof was);
        memcpy(place, &cases[i].value, sizeof was);
        sum = keel_fingerprint((char *)block + SUMMED, n - SUMMED);
        memcpy((char *)block + SUM, &sum, sizeof sum);
        if (keel_sections_decode(&got, block, n) != KEEL_EFORMAT)
            fail_msg("%s is accepted", cases[i].what);
        if (!strstr(keel_error(), cases[i].says)) fail_msg("%s: %s", cases[i].what, keel_error());
        memcpy(place, &was, sizeof was);
    }
    keel_free(block);
}

static void *release_soon(void *claim)
{
    usleep(200000);
    keel_claim_release(claim);
    return NULL;
}

static void a_claim_waits_for_one_that_is_about_to_end(void **state)
{
    keel_claim *a, *b;
    pthread_t thread;
    char path[300];
    (void)state;
    snprintf(path, sizeof path, "%s-ending.keras", folder);
    must(keel_claim_take(&a, path));
    assert_int_equal(pthread_create(&thread, NULL, release_soon, a), 0);
    must(keel_claim_take(&b, path));
    pthread_join(thread, NULL);
    keel_claim_release(b);
    assert_int_equal(keel_memory_live(), 0);
}

static void a_claim_is_of_one_process_at_a_time(void **state)
{
    keel_claim *a, *b = NULL;
    char path[300];
    (void)state;
    snprintf(path, sizeof path, "%s-claimed.keras", folder);
    assert_int_equal(keel_claim_take(&a, ""), KEEL_EARG);
    must(keel_claim_take(&a, path));
    assert_int_equal(keel_claim_take(&b, path), KEEL_EIO);
    assert_null(b);
    keel_claim_release(a);
    must(keel_claim_take(&b, path));
    keel_claim_release(b);
    snprintf(path, sizeof path, "%s-claimed.keras.lock", folder);
    assert_int_equal(access(path, F_OK), -1);
    FILE *f = fopen(path, "w"); /* of a process that was killed */
    assert_non_null(f);
    fputs("1\n", f);
    fclose(f);
    snprintf(path, sizeof path, "%s-claimed.keras", folder);
    must(keel_claim_take(&a, path));
    keel_claim_release(a);
    assert_int_equal(keel_memory_live(), 0);
}

/* Of those who would write one file, each process once. */
typedef struct writer {
    const char *path;
    keel_status status;
} writer;

static void *write_first(void *context)
{
    writer *w = context;
    keel_claim *claim = NULL;
    w->status = keel_claim_first(&claim, w->path, 0);
    if (w->status != KEEL_OK) return NULL;
    usleep(100000);
    FILE *f = fopen(w->path, "w");
    if (f) fclose(f);
    keel_claim_release(claim);
    return NULL;
}

static void one_of_several_writes_a_file_for_all(void **state)
{
    enum { WRITERS = 4 };
    writer w[WRITERS];
    pthread_t thread[WRITERS];
    keel_claim *dead, *claim = NULL;
    char path[300];
    int wrote = 0;
    (void)state;
    snprintf(path, sizeof path, "%s-first.keras", folder);
    for (int i = 0; i < WRITERS; i++) {
        w[i] = (writer){ path, KEEL_EIO };
        assert_int_equal(pthread_create(&thread[i], NULL, write_first, &w[i]), 0);
    }
    for (int i = 0; i < WRITERS; i++) {
        pthread_join(thread[i], NULL);
        assert_true(w[i].status == KEEL_OK || w[i].status == KEEL_END);
        wrote += w[i].status == KEEL_OK;
    }
    assert_int_equal(wrote, 1);
    assert_int_equal(keel_claim_first(&claim, path, 10), KEEL_END); /* at once: it is there */
    unlink(path);
    must(keel_claim_take(&dead, path)); /* the next takes over from one that ends without a file */
    assert_int_equal(pthread_create(&thread[0], NULL, release_soon, dead), 0);
    must(keel_claim_first(&claim, path, 0));
    pthread_join(thread[0], NULL);
    keel_claim_release(claim);
    claim = NULL;
    assert_int_equal(keel_claim_first(&claim, "nowhere/first.keras", 0), KEEL_EIO);
    for (int k = 0;; k++) {
        keel_memory_fail_at(k);
        const keel_status s = keel_claim_first(&claim, path, 0);
        keel_memory_fail_at(-1);
        if (s == KEEL_OK) break;
        assert_int_equal(s, KEEL_ENOMEM);
        assert_null(claim);
    }
    keel_claim_release(claim);
    assert_int_equal(keel_memory_live(), 0);
}

static void each_process_has_its_turn_to_write(void **state)
{
    static const struct {
        const char *what;
        int rank, lost;
        double timeout;
        bool hurried;
        double want;
    } cases[] = {
        { "the next after a first process that is lost: at once", 1, 0, 60, false, 0 },
        { "the third waits for the second", 2, 0, 60, false, 0.02 },
        { "the last of many", 1023, 0, 60, false, 0.3 },
        { "it is hurried, but nobody else will write", 2, 0, 60, true, 0.02 },
        { "another is lost: the first one writes", 1, 2, 60, false, 10 },
        { "nobody waits for longer than the timeout", 1, 2, 3, false, 3 },
        { "who is hurried cannot wait", 1, 2, 60, true, 0.15 },
        { "nobody knows who is lost", 1, -1, 60, false, 10 },
    };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        if (fabs(keel_claim_turn(cases[i].rank, cases[i].lost, cases[i].timeout, cases[i].hurried) -
                 cases[i].want) > 1e-9)
            fail_msg("%s", cases[i].what);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_damaged_block_is_refused_wherever_it_is_damaged),
        cmocka_unit_test(a_block_with_its_checksum_may_claim_only_what_it_has),
        cmocka_unit_test(a_claim_is_of_one_process_at_a_time),
        cmocka_unit_test(a_claim_waits_for_one_that_is_about_to_end),
        cmocka_unit_test(one_of_several_writes_a_file_for_all),
        cmocka_unit_test(each_process_has_its_turn_to_write),
        cmocka_unit_test(a_fit_goes_on_from_any_step_with_the_same_bits),
        cmocka_unit_test(a_callback_leaves_a_checkpoint_of_the_step_that_was_made),
        cmocka_unit_test(what_is_read_again_is_told_before_and_after),
        cmocka_unit_test(the_input_takes_less_than_4_kb_of_a_checkpoint),
        cmocka_unit_test(a_complete_run_has_nothing_left_to_do_and_may_have_more_epochs),
        cmocka_unit_test(more_epochs_go_on),
        cmocka_unit_test(keras_says_it_as_a_callback),
        cmocka_unit_test(so_many_files_are_kept_and_a_broken_one_is_passed_over),
        cmocka_unit_test(checkpoints_come_by_time_where_asked),
        cmocka_unit_test(all_broken_is_refused),
        cmocka_unit_test(a_checkpoint_is_a_model),
        cmocka_unit_test(what_another_run_has_left_is_refused_by_name),
        cmocka_unit_test(a_callback_with_other_arguments_is_refused),
        cmocka_unit_test(the_log_of_a_resumed_run_is_that_of_a_whole_one),
        cmocka_unit_test(a_folder_is_for_one_run),
        cmocka_unit_test(each_failing_allocation_is_one_error_and_no_leak),
        cmocka_unit_test(a_fit_that_waits_for_rows_can_be_saved),
        cmocka_unit_test(a_fit_within_a_callback_does_not_wait_for_one_that_saves),
    };
    return cmocka_run_group_tests(tests, start, NULL);
}
