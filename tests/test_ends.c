/* steps_per_epoch x the end of the data x how many rows there are: one test a cell, of ten rows in
 * batches of four. docs/pipelines.md has the same table, and must say what these tests say:
 * `test_ends --print` prints its lines. Keras's numbers of steps are in golden/ends.json. */
#include "feed_rows.h"
#include "golden.h"
#include "must.h"
#include "keel/pipeline.h"

enum { ROWS = 10, EPOCHS = 3 };

static const char *const end_names[] = { "keep", "drop", "carry", "wrap", "error" };

typedef enum cardinality { KNOWN, UNKNOWN, ONCE, INFINITE_, CARDINALITIES } cardinality;
static const char *const cardinality_names[] = { "known", "unknown", "unknown, one pass only",
                                                 "infinite" };

/* ---- data ------------------------------------------------------------------------------------ */

typedef struct counter {
    int at;
    bool endless;
} counter;

static keel_status give(void *context, void *x, void *y, float *w, int64_t capacity, int64_t *rows)
{
    counter *c = context;
    (void)w;
    (void)capacity;
    if (c->at >= ROWS && !c->endless) return KEEL_END;
    const int i = c->at++ % ROWS;
    for (int k = 0; k < 3; k++) ((float *)x)[k] = (float)(i * 10 + k);
    *(float *)y = 1;
    *rows = 1;
    return KEEL_OK;
}

static keel_status again(void *context)
{
    ((counter *)context)->at = 0;
    return KEEL_OK;
}

static keel_dataset *data_of(cardinality n, counter *c)
{
    keel_dataset *d = NULL;
    *c = (counter){ .endless = n == INFINITE_ };
    const keel_tensor x = { KEEL_FLOAT32, { 2, { ROWS, 3 } }, x_of };
    const keel_tensor y = { KEEL_INT32, { 1, { ROWS } }, y_of };
    const keel_generator g = { .size = sizeof g,
                               .context = c,
                               .next = give,
                               .reset = n == ONCE ? NULL : again,
                               .endless = n == INFINITE_,
                               .max_rows = 1,
                               .has_y = true,
                               .x_shape = { 1, { 3 } } };
    keel_dataset_destroy(arrays()); /* fills x_of */
    if (n == KNOWN)
        must(keel_dataset_from_arrays(&d, &x, &y, NULL));
    else
        must(keel_dataset_from_generator(&d, &g));
    return d;
}

/* ---- a cell ---------------------------------------------------------------------------------- */

/* The rows of each step of three epochs; then "refused" before step 1, or "fails", and why. */
static const struct cell {
    cardinality n;
    int64_t steps_per_epoch;
    keel_end_of_data end;
    const char *epochs, *why;
} cells[] = {
    { KNOWN, 0, KEEL_KEEP, "0-3 4-7 8-9 | 0-3 4-7 8-9 | 0-3 4-7 8-9", NULL },
    { KNOWN, 0, KEEL_DROP, "0-3 4-7 | 0-3 4-7 | 0-3 4-7", NULL },
    { KNOWN, 0, KEEL_CARRY, "0-3 4-7 | 8-9,0-1 2-5 6-9 | 0-3 4-7 8-9", NULL },
    { KNOWN, 0, KEEL_WRAP, "0-3 4-7 8-9,0-1 | 0-3 4-7 8-9,0-1 | 0-3 4-7 8-9,0-1", NULL },
    { KNOWN, 0, KEEL_REFUSE, "refused", "set to be an error" },
    { KNOWN, 2, KEEL_KEEP, "0-3 4-7 | 8-9 0-3 | 4-7 8-9", NULL },
    { KNOWN, 2, KEEL_DROP, "0-3 4-7 | 0-3 4-7 | 0-3 4-7", NULL },
    { KNOWN, 2, KEEL_CARRY, "0-3 4-7 | 8-9,0-1 2-5 | 6-9 0-3", NULL },
    { KNOWN, 2, KEEL_WRAP, "0-3 4-7 | 8-9,0-1 2-5 | 6-9 0-3", NULL },
    { KNOWN, 2, KEEL_REFUSE, "refused", "set to be an error" },
    { KNOWN, 5, KEEL_KEEP, "0-3 4-7 8-9 | 0-3 4-7 8-9 | 0-3 4-7 8-9", NULL },
    { KNOWN, 5, KEEL_DROP, "0-3 4-7 | 0-3 4-7 | 0-3 4-7", NULL },
    { KNOWN, 5, KEEL_CARRY, "0-3 4-7 | 8-9,0-1 2-5 6-9 | 0-3 4-7 8-9", NULL },
    { KNOWN, 5, KEEL_WRAP,
      "0-3 4-7 8-9,0-1 2-5 6-9 | 0-3 4-7 8-9,0-1 2-5 6-9 | 0-3 4-7 8-9,0-1 2-5 6-9", NULL },
    { KNOWN, 5, KEEL_REFUSE, "refused", "set to be an error" },
    { UNKNOWN, 0, KEEL_KEEP, "0-3 4-7 8-9 | 0-3 4-7 8-9 | 0-3 4-7 8-9", NULL },
    { UNKNOWN, 0, KEEL_DROP, "0-3 4-7 | 0-3 4-7 | 0-3 4-7", NULL },
    { UNKNOWN, 0, KEEL_CARRY, "0-3 4-7 | 8-9,0-1 2-5 6-9 | 0-3 4-7 8-9", NULL },
    { UNKNOWN, 0, KEEL_WRAP, "0-3 4-7 8-9,0-1 | 0-3 4-7 8-9,0-1 | 0-3 4-7 8-9,0-1", NULL },
    { UNKNOWN, 0, KEEL_REFUSE, "0-3 4-7 fails", "set to be an error" },
    { UNKNOWN, 2, KEEL_KEEP, "0-3 4-7 | 8-9 0-3 | 4-7 8-9", NULL },
    { UNKNOWN, 2, KEEL_DROP, "0-3 4-7 | 0-3 4-7 | 0-3 4-7", NULL },
    { UNKNOWN, 2, KEEL_CARRY, "0-3 4-7 | 8-9,0-1 2-5 | 6-9 0-3", NULL },
    { UNKNOWN, 2, KEEL_WRAP, "0-3 4-7 | 8-9,0-1 2-5 | 6-9 0-3", NULL },
    { UNKNOWN, 2, KEEL_REFUSE, "0-3 4-7 | fails", "set to be an error" },
    { UNKNOWN, 5, KEEL_KEEP, "0-3 4-7 8-9 | 0-3 4-7 8-9 | 0-3 4-7 8-9", NULL },
    { UNKNOWN, 5, KEEL_DROP, "0-3 4-7 | 0-3 4-7 | 0-3 4-7", NULL },
    { UNKNOWN, 5, KEEL_CARRY, "0-3 4-7 | 8-9,0-1 2-5 6-9 | 0-3 4-7 8-9", NULL },
    { UNKNOWN, 5, KEEL_WRAP,
      "0-3 4-7 8-9,0-1 2-5 6-9 | 0-3 4-7 8-9,0-1 2-5 6-9 | 0-3 4-7 8-9,0-1 2-5 6-9", NULL },
    { UNKNOWN, 5, KEEL_REFUSE, "0-3 4-7 fails", "set to be an error" },
    { ONCE, 0, KEEL_KEEP, "refused", "serves one epoch" },
    { ONCE, 0, KEEL_DROP, "refused", "serves one epoch" },
    { ONCE, 0, KEEL_CARRY, "refused", "serves one epoch" },
    { ONCE, 0, KEEL_WRAP, "refused", "serves one epoch" },
    { ONCE, 0, KEEL_REFUSE, "refused", "serves one epoch" },
    { ONCE, 2, KEEL_KEEP, "0-3 4-7 | 8-9 | fails", "used up before epoch 3" },
    { ONCE, 2, KEEL_DROP, "0-3 4-7 | fails", "used up before epoch 2" },
    { ONCE, 2, KEEL_CARRY, "0-3 4-7 | 8-9 | fails", "used up before epoch 3" },
    { ONCE, 2, KEEL_WRAP, "0-3 4-7 | fails", "used up before epoch 2" },
    { ONCE, 2, KEEL_REFUSE, "0-3 4-7 | fails", "set to be an error" },
    { ONCE, 5, KEEL_KEEP, "0-3 4-7 8-9 | fails", "used up before epoch 2" },
    { ONCE, 5, KEEL_DROP, "0-3 4-7 | fails", "used up before epoch 2" },
    { ONCE, 5, KEEL_CARRY, "0-3 4-7 8-9 | fails", "used up before epoch 2" },
    { ONCE, 5, KEEL_WRAP, "0-3 4-7 fails", "used up in epoch 1" },
    { ONCE, 5, KEEL_REFUSE, "0-3 4-7 fails", "set to be an error" },
    { INFINITE_, 0, KEEL_KEEP, "refused", "never ends" },
    { INFINITE_, 0, KEEL_DROP, "refused", "never ends" },
    { INFINITE_, 0, KEEL_CARRY, "refused", "never ends" },
    { INFINITE_, 0, KEEL_WRAP, "refused", "never ends" },
    { INFINITE_, 0, KEEL_REFUSE, "refused", "never ends" },
    { INFINITE_, 2, KEEL_KEEP, "0-3 4-7 | 8-9,0-1 2-5 | 6-9 0-3", NULL },
    { INFINITE_, 2, KEEL_DROP, "0-3 4-7 | 8-9,0-1 2-5 | 6-9 0-3", NULL },
    { INFINITE_, 2, KEEL_CARRY, "0-3 4-7 | 8-9,0-1 2-5 | 6-9 0-3", NULL },
    { INFINITE_, 2, KEEL_WRAP, "0-3 4-7 | 8-9,0-1 2-5 | 6-9 0-3", NULL },
    { INFINITE_, 2, KEEL_REFUSE, "0-3 4-7 | 8-9,0-1 2-5 | 6-9 0-3", NULL },
    { INFINITE_, 5, KEEL_KEEP,
      "0-3 4-7 8-9,0-1 2-5 6-9 | 0-3 4-7 8-9,0-1 2-5 6-9 | 0-3 4-7 8-9,0-1 2-5 6-9", NULL },
    { INFINITE_, 5, KEEL_DROP,
      "0-3 4-7 8-9,0-1 2-5 6-9 | 0-3 4-7 8-9,0-1 2-5 6-9 | 0-3 4-7 8-9,0-1 2-5 6-9", NULL },
    { INFINITE_, 5, KEEL_CARRY,
      "0-3 4-7 8-9,0-1 2-5 6-9 | 0-3 4-7 8-9,0-1 2-5 6-9 | 0-3 4-7 8-9,0-1 2-5 6-9", NULL },
    { INFINITE_, 5, KEEL_WRAP,
      "0-3 4-7 8-9,0-1 2-5 6-9 | 0-3 4-7 8-9,0-1 2-5 6-9 | 0-3 4-7 8-9,0-1 2-5 6-9", NULL },
    { INFINITE_, 5, KEEL_REFUSE,
      "0-3 4-7 8-9,0-1 2-5 6-9 | 0-3 4-7 8-9,0-1 2-5 6-9 | 0-3 4-7 8-9,0-1 2-5 6-9", NULL },
};
enum { CELLS = sizeof cells / sizeof *cells };

typedef struct cell cell;

/* "8-9,0-1": the rows of a step. */
static size_t step_text(char *text, size_t size, const keel_batch *b)
{
    size_t at = 0;
    for (int64_t i = 0; i < b->rows; i++) {
        const int row = row_of(b, i);
        int64_t to = i;
        while (to + 1 < b->rows && row_of(b, to + 1) == row_of(b, to) + 1) to++;
        at += (size_t)snprintf(text + at, size - at, to > i ? "%s%d-%d" : "%s%d", i ? "," : "", row,
                               row_of(b, to));
        i = to;
    }
    return at;
}

static keel_status run_cell(const cell *c, char *text, size_t size)
{
    counter count;
    keel_feed *f = NULL;
    keel_batch b;
    size_t at = 0;
    keel_dataset *d = data_of(c->n, &count);
    const keel_feed_options o = { .real = KEEL_FLOAT32,
                                  .batch_size = 4,
                                  .end = c->end,
                                  .steps_per_epoch = c->steps_per_epoch,
                                  .epochs = EPOCHS };
    text[0] = 0;
    keel_status s = keel_feed_create(&f, d, &o);
    if (s < 0) snprintf(text, size, "refused");
    for (uint32_t e = 0; s >= 0 && e < EPOCHS; e++) {
        if (e) at += (size_t)snprintf(text + at, size - at, " |");
        s = keel_feed_begin_epoch(f, e);
        while (s >= 0 && (s = keel_feed_next(f, &b)) == KEEL_OK) {
            if (at) at += (size_t)snprintf(text + at, size - at, " ");
            at += step_text(text + at, size - at, &b);
            keel_feed_release(f, &b);
        }
        if (s < 0) snprintf(text + at, size - at, " fails");
    }
    if (f) keel_feed_destroy(f);
    keel_dataset_destroy(d);
    return s;
}

static void it_ends(void **state)
{
    const cell *c = *state;
    char text[1000];
    const keel_status s = run_cell(c, text, sizeof text);
    assert_string_equal(text, c->epochs);
    assert_int_equal(s < 0, c->why != NULL);
    if (c->why && !strstr(keel_error(), c->why)) fail_msg("%s", keel_error());
}

/* ---- the table of the page ------------------------------------------------------------------- */

/* The rows of one step: "8-9,0-1" are 4. */
static int rows_in(const char **p)
{
    int n = 0;
    while (**p && **p != ' ') {
        char *end;
        const long from = strtol(*p, &end, 10);
        const long to = *end == '-' ? strtol(end + 1, &end, 10) : from;
        n += (int)(to - from) + 1;
        *p = end + (*end == ',');
    }
    return n;
}

/* "4 4 2" for each of three equal epochs, else "4 4 / 2 4 / 4 2". */
static void sizes_of(const char *epochs, char *out, size_t size)
{
    char epoch[EPOCHS][64] = { "" };
    int e = 0;
    for (const char *p = epochs; *p;) {
        if (*p == ' ' || *p == '|') {
            e += *p++ == '|';
            continue;
        }
        const size_t at = strlen(epoch[e]);
        const char *word = !strncmp(p, "refused", 7) ? "refused"
                           : !strncmp(p, "fails", 5) ? "error"
                                                     : NULL;
        if (word) {
            snprintf(epoch[e] + at, sizeof epoch[e] - at, "%s%s", at ? " " : "", word);
            break;
        }
        const int rows = rows_in(&p);
        snprintf(epoch[e] + at, sizeof epoch[e] - at, "%s%d", at ? " " : "", rows);
    }
    size_t at = (size_t)snprintf(out, size, "%s", epoch[0]);
    if (e == EPOCHS - 1 && !strcmp(epoch[0], epoch[1]) && !strcmp(epoch[0], epoch[2])) return;
    for (int k = 1; k <= e; k++) at += (size_t)snprintf(out + at, size - at, " / %s", epoch[k]);
}

/* A line of the table: five cells that differ in the end only. */
static void line_of(const cell *c, char *out, size_t size)
{
    char asked[24] = "not given";
    if (c->steps_per_epoch) snprintf(asked, sizeof asked, "%d", (int)c->steps_per_epoch);
    size_t at = (size_t)snprintf(out, size, "| %s | %s |", cardinality_names[c->n], asked);
    for (int e = 0; e < 5; e++) {
        char sizes[200];
        sizes_of(c[e].epochs, sizes, sizeof sizes);
        at += (size_t)snprintf(out + at, size - at, " %s |", sizes);
    }
}

static void the_page_has_this_table(void **unused)
{
    static char page[64 << 10];
    (void)unused;
    FILE *f = fopen(golden_path("../../docs/pipelines.md"), "r");
    if (!f) fail_msg("docs/pipelines.md cannot be read");
    page[fread(page, 1, sizeof page - 1, f)] = 0;
    fclose(f);
    for (int i = 0; i < CELLS; i += 5) {
        char line[500];
        line_of(&cells[i], line, sizeof line);
        if (!strstr(page, line)) fail_msg("docs/pipelines.md lacks: %s", line);
    }
}

/* ---- fit ------------------------------------------------------------------------------------- */

static keel_status all_stay(void *context, const keel_tensor *in, bool *keep,
                            const keel_element_place *at)
{
    (void)context;
    (void)in;
    (void)at;
    *keep = true;
    return KEEL_OK;
}

static void put(keel_dataset **d, keel_dataset *next)
{
    keel_dataset_destroy(*d);
    *d = next;
}

/* The steps of a fit of three epochs. */
static int64_t fitted(const keel_dataset *d, const char *devices, int64_t steps_per_epoch)
{
    keel_model *m;
    keel_strategy *s;
    keel_history h = { 0 };
    must(keel_model_create(&m, NULL, KEEL_FLOAT32, 3));
    must(keel_model_add(m, "InputLayer", KEEL_ARGS(KEEL_ARG_INTS("shape", 3))));
    must(keel_model_add(m, "Rescaling", KEEL_ARGS(KEEL_ARG_FLOAT("scale", 1e-3))));
    must(keel_model_add(m, "Dense", KEEL_ARGS(KEEL_ARG_INT("units", 1))));
    must(keel_model_compile(m, &(keel_compile){ KEEL_COMPILE, .optimizer = { "SGD" },
                                                .loss = { { "mean_squared_error" } } }));
    must(keel_strategy_create(&s, devices));
    must(keel_fit(m, s, d,
                  &(keel_fit_options){ KEEL_FIT_OPTIONS, .epochs = EPOCHS,
                                       .steps_per_epoch = steps_per_epoch },
                  &h));
    const int64_t steps = h.steps;
    keel_history_free(&h);
    keel_strategy_destroy(s);
    keel_model_destroy(m);
    return steps;
}

static void take_counts_elements_of_all_devices_together(void **unused)
{
    static const char *const devices[] = { "cpu:0",   "cpu:0-1", "cpu:0-2", "cpu:0-3",
                                           "cpu:0-4", "cpu:0-5", "cpu:0-6", "cpu:0-7" };
    (void)unused;
    for (int rows = 0; rows < 2; rows++)
        for (int i = 0; i < 8; i++) {
            counter c;
            keel_dataset *d = data_of(KNOWN, &c), *next;
            if (rows) must(keel_dataset_take(&next, d, 7));
            if (rows) put(&d, next);
            must(keel_dataset_batch(&next, d, 4, false));
            put(&d, next);
            if (!rows) must(keel_dataset_take(&next, d, 2));
            if (!rows) put(&d, next);
            assert_int_equal(fitted(d, devices[i], 0), 2 * EPOCHS);
            keel_dataset_destroy(d);
        }
}

/* Keras takes a step with no rows where data of unknown length ends. */
static void only_keras_takes_a_step_without_rows(void **unused)
{
    size_t i;
    const json_t *run;
    json_t *golden = golden_load("ends.json");
    int phantoms = 0;
    (void)unused;
    json_array_foreach(json_object_get(golden, "runs"), i, run)
    {
        counter c;
        int64_t keras = 0;
        size_t e;
        const json_t *steps;
        const char *length = golden_text(run, "cardinality");
        const int64_t asked = (int64_t)golden_number(run, "steps_per_epoch");
        const bool unknown = !strcmp(length, "unknown"), ends = strcmp(length, "infinite");
        if (ends && asked == 2) continue; /* where the data ends, Keras ends the epoch, too */
        json_array_foreach(json_object_get(run, "steps"), e, steps)
        {
            keras += json_integer_value(steps);
        }
        keel_dataset *d = data_of(KNOWN, &c), *next;
        const keel_filter f = { .size = sizeof f, .call = all_stay };
        if (unknown) must(keel_dataset_filter(&next, d, &f));
        if (!ends) must(keel_dataset_repeat(&next, d, -1));
        if (unknown || !ends) put(&d, next);
        must(keel_dataset_batch(&next, d, 4, !strcmp(golden_text(run, "end"), "drop")));
        put(&d, next);
        assert_int_equal(fitted(d, "cpu:0-1", asked), keras - (unknown ? EPOCHS : 0));
        phantoms += unknown;
        keel_dataset_destroy(d);
    }
    assert_int_equal(phantoms, 4);
    json_decref(golden);
}

int main(int argc, char **argv)
{
    static struct CMUnitTest test[CELLS + 3];
    static char name[CELLS][160];
    for (int i = 0; i < CELLS; i++) {
        const cell *c = &cells[i];
        char line[500];
        char asked[48] = "without steps_per_epoch";
        if (c->steps_per_epoch)
            snprintf(asked, sizeof asked, "with %d steps_per_epoch", (int)c->steps_per_epoch);
        snprintf(name[i], sizeof name[i], "data of length '%s' %s ends by %s",
                 cardinality_names[c->n], asked, end_names[c->end]);
        test[i] = (struct CMUnitTest){ name[i], it_ends, NULL, NULL, (void *)c };
        if (argc < 2 || strcmp(argv[1], "--print") || i % 5) continue;
        line_of(c, line, sizeof line);
        printf("%s\n", line);
    }
    if (argc > 1) return 0;
    test[CELLS] = (struct CMUnitTest)cmocka_unit_test(the_page_has_this_table);
    test[CELLS + 1] =
        (struct CMUnitTest)cmocka_unit_test(take_counts_elements_of_all_devices_together);
    test[CELLS + 2] = (struct CMUnitTest)cmocka_unit_test(only_keras_takes_a_step_without_rows);
    return cmocka_run_group_tests(test, NULL, NULL);
}
