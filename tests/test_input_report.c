/* What is shown of an input: its sentence, and its picture as SVG. Names come from files and
 * programs, and must not get out of their place. */
#include "must.h"
#include "keel/keel.h"
#include "base/memory.h"
#include "data_files.h"
#include "train/input_advice.h"
#include <ctype.h>

/* ---- the sentence -----------------------------------------------------------------------------
 */

static keel_input_stats example(double waited)
{
    keel_input_stats in = { .steps = 100,
                            .seconds = 2,
                            .waited = waited,
                            .work = 1.9,
                            .cpu = 1.9,
                            .threads = 1,
                            .batches = 2,
                            .threads_fixed = true,
                            .cores = 8,
                            .workers = 1,
                            .memory = 1 << 20,
                            .memory_peak = 3 << 20,
                            .rows = 400,
                            .epochs = 4,
                            .n_stage = 2 };
    in.stage[0] = (keel_input_stage){ .name = "map 'augment'",
                                      .seconds = 1.6,
                                      .rows = 400,
                                      .waited = waited * 0.75,
                                      .row_bytes = 1024,
                                      .parallel = true,
                                      .cacheable = true };
    in.stage[1] = (keel_input_stage){
        .name = "batch", .seconds = 0.3, .rows = 400, .waited = waited * 0.25, .parallel = true
    };
    return in;
}

static void the_sentence_says_the_share_the_stage_and_what_would_help(void **state)
{
    (void)state;
    char text[KEEL_INPUT_TEXT_MAX];
    static const struct {
        const char *what;
        double waited;
        const char *has;
    } cases[] = {
        { "no wait is not mentioned", 0, NULL },
        { "nor is a wait of less than 1 %", 0.019, NULL },
        { "a wait with its stage", 1,
          "steps waited 50 % of their time for rows, 75 % of that for "
          "map 'augment'" },
        { "threads that are enough", 1, "2 threads instead of 1: 2.00 times as fast" },
        { "a cache in place of what is before it", 1,
          "a cache behind map 'augment' (0.4 MiB), "
          "from the second epoch on: 2.00" },
        { "the bound of all remedies", 1, "rows that are there at once" },
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        keel_input_stats in = example(cases[i].waited);
        keel_input_advise(&in);
        assert_ptr_equal(keel_input_text(&in, text), text);
        if (cases[i].has ? !strstr(text, cases[i].has) : *text != 0)
            fail_msg("%s: '%s'", cases[i].what, text);
    }
}

static void only_remedies_that_are_possible_are_named(void **state)
{
    (void)state;
    static const struct {
        const char *what, *not_named;
        int cores, workers;
        bool fixed, parallel, cacheable;
        int64_t rows, epochs, limit;
        double on_core;
    } cases[] = {
        { "no thread more where the tuner chooses", "threads", 8, 1, false, true, true, 400, 4, 0,
          1 },
        { "no thread where one alone can do the work", "threads", 8, 1, true, false, true, 400, 4,
          0, 1 },
        { "no thread that would take a core from training", "threads", 1, 1, true, true, true, 400,
          4, 0, 1 },
        { "no cache in the last epoch", "cache", 8, 1, true, true, true, 400, 1, 0, 1 },
        { "no cache for rows without end", "cache", 8, 1, true, true, true, -1, 4, 0, 1 },
        { "no cache that the memory has no room for", "cache", 8, 1, true, true, true, 4000, 4,
          4 << 20, 1 },
        { "no cache behind what is random", "cache", 8, 1, true, true, false, 400, 4, 0, 1 },
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        keel_input_stats in = example(1);
        in.cores = cases[i].cores;
        in.workers = cases[i].workers;
        in.threads_fixed = cases[i].fixed;
        in.stage[0].parallel = cases[i].parallel;
        if (!cases[i].parallel) in.stage[0].seconds = in.work;
        in.stage[0].cacheable = cases[i].cacheable;
        in.rows = cases[i].rows;
        in.epochs = cases[i].epochs;
        in.memory_limit = cases[i].limit;
        in.cpu = in.work * cases[i].on_core;
        keel_input_advise(&in);
        for (int k = 0; k < in.n_remedy; k++) {
            if (strstr(in.remedy[k].what, cases[i].not_named))
                fail_msg("%s: %s", cases[i].what, in.remedy[k].what);
            assert_true(in.remedy[k].factor >= 1.03);
            if (k) assert_true(in.remedy[k].factor <= in.remedy[k - 1].factor);
        }
    }
}

static void numbers_that_make_no_sense_give_no_advice_and_no_crash(void **state)
{
    (void)state;
    char text[KEEL_INPUT_TEXT_MAX];
    keel_input_stats in = { 0 };
    keel_input_advise(&in);
    assert_int_equal(in.n_remedy, 0);
    assert_string_equal(keel_input_text(&in, text), "");
    in = example(1);
    in.n_stage = KEEL_INPUT_STAGES;
    for (int i = 0; i < in.n_stage; i++) {
        in.stage[i] = in.stage[0];
        memset(in.stage[i].name, 'n', sizeof in.stage[i].name - 1);
    }
    in.n_remedy = KEEL_INPUT_REMEDIES;
    for (int i = 0; i < in.n_remedy; i++) {
        memset(in.remedy[i].what, 'w', sizeof in.remedy[i].what - 1);
        in.remedy[i].what[sizeof in.remedy[i].what - 1] = 0;
        in.remedy[i].factor = 1e300;
    }
    assert_true(strlen(keel_input_text(&in, text)) < KEEL_INPUT_TEXT_MAX);
}

/* ---- the picture ------------------------------------------------------------------------------
 */

static char picture[1 << 18];

static const char *drawn(const keel_input_stats *in)
{
    const char *path = files_path("p.svg");
    must(keel_input_draw(in, path));
    FILE *f = fopen(path, "rb");
    assert_non_null(f);
    const size_t n = fread(picture, 1, sizeof picture - 1, f);
    fclose(f);
    picture[n] = 0;
    return picture;
}

/* Fails unless the text is XML with one element around all others: tags are closed in their order,
 * a text has no '<' and no '&' but of the known names, no control characters, and is UTF-8. */
static void check_xml(const char *what, const char *at)
{
    char open[16][32];
    int depth = 0, roots = 0;
    while (*at) {
        const unsigned char c = (unsigned char)*at;
        if (c == '<') {
            const bool closes = at[1] == '/';
            const char *end = strchr(at, '>');
            char name[32];
            size_t n = 0;
            if (!end) fail_msg("%s: a tag without end: %.40s", what, at);
            for (at += 1 + closes; isalpha((unsigned char)*at) && n < 31; at++) name[n++] = *at;
            name[n] = 0;
            if (n == 0) fail_msg("%s: not a tag: %.40s", what, at);
            if (closes) {
                if (depth == 0 || strcmp(open[--depth], name) != 0)
                    fail_msg("%s: </%s> closes nothing", what, name);
            } else {
                roots += depth == 0;
                if (end[-1] != '/') {
                    assert_true(depth < 16);
                    snprintf(open[depth++], sizeof open[0], "%s", name);
                }
                for (const char *a = at; a < end; a++)
                    if (*a == '<') fail_msg("%s: '<' within <%s>", what, name);
            }
            at = end + 1;
        } else if (c == '&') {
            if (strncmp(at, "&lt;", 4) && strncmp(at, "&gt;", 4) && strncmp(at, "&amp;", 5))
                fail_msg("%s: a bare '&': %.20s", what, at);
            at++;
        } else if (c < 0x80) {
            if (c < 0x20 && c != '\n') fail_msg("%s: the control character %d", what, c);
            if (depth == 0 && !isspace(c)) fail_msg("%s: text outside: %.20s", what, at);
            at++;
        } else {
            const int more = c >= 0xf0 ? 3 : c >= 0xe0 ? 2 : c >= 0xc2 ? 1 : 0;
            if (!more) fail_msg("%s: the byte %02x begins no character", what, c);
            for (int i = 1; i <= more; i++)
                if (((unsigned char)at[i] & 0xc0) != 0x80) fail_msg("%s: a character is cut", what);
            at += 1 + more;
        }
    }
    if (depth || roots != 1) fail_msg("%s: %d elements, %d not closed", what, roots, depth);
}

static void hostile_names_stay_text(void **state)
{
    (void)state;
    static const char *const names[] = {
        "map '</text></svg><script>alert(1)</script>'",
        "a & b && <c> \"d\" 'e'",
        "<<<<<<<<<<<<<<<<<<<<<<<<<<<<<<<<<<<<<<<<<<<<<<<<<<<<<<<<<<<<<<<<<<<<<<<<<<<<<<<",
        "&&&&&&&&&&&&&&&&&&&&&&&&&&&&&&&&&&&&&&&&&&&&&&&&&&&&&&&&&&&&&&&&&&&&&&&&&&&&&&&",
        "]]><!-- <![CDATA[ -->",
        "line\nbreak\r\033[31mred\033[0m\b\x7f\x01",
        "\xff\xfe\xc0\xaf\xed\xa0\x80 not UTF-8",
        "twenty-nine characters and \xc3\xa4\xc3\xb6\xc3\xbc\xc3\x9f cut within one",
        "\xe2\x82\xac\xe2\x82\xac\xe2\x82\xac\xe2\x82\xac\xe2\x82\xac\xe2\x82\xac\xe2\x82\xac"
        "\xe2\x82\xac\xe2\x82\xac\xe2\x82\xac\xe2\x82\xac\xe2\x82\xac",
        "\xf0\x9f\x92\xa9 a\xf0\x9f\x92\xa9 ab\xf0\x9f\x92\xa9 abc\xf0\x9f\x92\xa9\xf0\x9f\x92\xa9",
        "",
    };
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        keel_input_stats in = example(1);
        snprintf(in.stage[0].name, sizeof in.stage[0].name, "%s", names[i]);
        keel_input_advise(&in);
        snprintf(in.remedy[0].what, sizeof in.remedy[0].what, "%s %s", names[i], names[i]);
        check_xml(names[i], drawn(&in));
        assert_null(strstr(picture, "<script"));
        assert_null(strstr(picture, "<!"));
    }
}

static void pictures_of_any_number_of_stages_are_whole(void **state)
{
    (void)state;
    char what[32];
    for (int n = 0; n <= KEEL_INPUT_STAGES; n++) {
        keel_input_stats in = example(n % 2 ? 1 : 0);
        for (int i = 0; i < n; i++) in.stage[i] = in.stage[i % 2];
        in.n_stage = n;
        keel_input_advise(&in);
        snprintf(what, sizeof what, "%d stages", n);
        check_xml(what, drawn(&in));
        int boxes = 0;
        for (const char *at = picture; (at = strstr(at, "rx=\"6\"")); at++) boxes++;
        assert_int_equal(boxes, n + 1); /* and the steps */
    }
}

static void the_stage_that_is_waited_for_is_marked(void **state)
{
    (void)state;
    keel_input_stats in = example(1);
    snprintf(in.stage[0].name, sizeof in.stage[0].name, "map 'v1.2 of augment'");
    keel_input_advise(&in);
    assert_non_null(strstr(drawn(&in), "class=\"late\""));
    assert_non_null(strstr(picture, "75 % of that for map 'v1.2 of augment'<"));
    assert_non_null(strstr(picture, "from the second epoch on: 2.00 times as fast<"));
    in = example(0);
    assert_null(strstr(drawn(&in), "class=\"late\""));
    assert_non_null(strstr(picture, "steps do not wait for their rows"));
}

static void a_picture_that_cannot_be_written_is_an_error(void **state)
{
    (void)state;
    const keel_input_stats in = example(1);
    assert_int_equal(keel_input_draw(&in, "/nowhere/at/all.svg"), KEEL_EIO);
    assert_int_equal(keel_input_draw(&in, NULL), KEEL_EARG);
    for (int64_t at = 0;; at++) { /* each allocation fails once */
        const int64_t live = keel_memory_live();
        const char *path = files_path("q.svg");
        remove(path);
        keel_memory_fail_at(at);
        const keel_status s = keel_input_draw(&in, path);
        keel_memory_fail_at(-1);
        assert_int_equal(keel_memory_live(), live);
        if (s >= 0) break;
        assert_int_equal(s, KEEL_ENOMEM);
        assert_int_equal(access(path, F_OK), -1);
    }
}

/* ---- of a fit ---------------------------------------------------------------------------------
 */

enum { N = 64 };

static keel_status slow(void *context, const keel_tensor *in, keel_tensor *out,
                        const keel_element_place *at)
{
    (void)context, (void)at;
    for (int i = 0; i < 2; i++) memcpy(out[i].data, in[i].data, sizeof(float));
    usleep(1500);
    return KEEL_OK;
}

typedef struct seen {
    double share;
    char late[80];
} seen;

static keel_status look(void *context, const keel_moment *at)
{
    seen *s = context;
    s->share = at->wait_share;
    snprintf(s->late, sizeof s->late, "%s", at->late ? at->late : "");
    return KEEL_OK;
}

static void a_fit_draws_the_numbers_of_its_history(void **state)
{
    (void)state;
    static float x[N], y[N];
    const char *path = files_path("fit.svg");
    const keel_map m = { .size = sizeof m, .call = slow, .name = "<slow> & co" };
    keel_dataset *rows, *d;
    keel_model *model;
    keel_strategy *s;
    keel_history h;
    seen last = { 0 };
    must(keel_dataset_from_arrays(&rows, &(keel_tensor){ KEEL_FLOAT32, { 2, { N, 1 } }, x },
                                  &(keel_tensor){ KEEL_FLOAT32, { 1, { N } }, y }, NULL));
    must(keel_dataset_map(&d, rows, &m));
    keel_dataset_destroy(rows);
    must(keel_model_create(&model, NULL, KEEL_FLOAT32, 3));
    must(keel_model_add(model, "InputLayer", KEEL_ARGS(KEEL_ARG_INTS("shape", 1))));
    must(keel_model_add(model, "Dense", KEEL_ARGS(KEEL_ARG_INT("units", 1))));
    must(keel_model_compile(
        model, &(keel_compile){ KEEL_COMPILE, .optimizer = { "SGD" }, .loss = { { "mse" } } }));
    must(keel_strategy_create(&s, "cpu:0"));
    const keel_callback c = { .size = sizeof c, .context = &last, .on_train_batch_end = look };
    const keel_fit_options o = { KEEL_FIT_OPTIONS,     .epochs = 4,
                                 .batch_size = 8,      .threads = 1,
                                 .input_report = path, .callbacks = KEEL_CALLBACKS(&c) };
    must(keel_fit(model, s, d, &o, &h));
    char line[96], theirs[1 << 14];
    FILE *f = fopen(path, "rb");
    assert_non_null(f);
    theirs[fread(theirs, 1, sizeof theirs - 1, f)] = 0;
    fclose(f);
    check_xml("of a fit", theirs);
    assert_string_equal(drawn(h.input), theirs);
    const double n = (double)h.input->steps;
    snprintf(line, sizeof line, ">%.3g ms a step<", 1e3 * h.input->seconds / n);
    assert_non_null(strstr(theirs, line));
    snprintf(line, sizeof line, ">%.3g ms of it waiting: %.1f %%<", 1e3 * h.input->waited / n,
             100 * h.input->waited / h.input->seconds);
    assert_non_null(strstr(theirs, line));
    assert_non_null(strstr(theirs, "map '&lt;slow&gt; &amp; co'"));
    /* rows sleep for nearly all of the time, however busy the machine is */
    assert_true(last.share > 0.05);
    assert_string_equal(last.late, "map '<slow> & co'");
    keel_history_free(&h);
    keel_strategy_destroy(s);
    keel_model_destroy(model);
    keel_dataset_destroy(d);
}

static int begin(void **state)
{
    (void)state;
    files_begin();
    return 0;
}

static int end(void **state)
{
    (void)state;
    files_end();
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_sentence_says_the_share_the_stage_and_what_would_help),
        cmocka_unit_test(only_remedies_that_are_possible_are_named),
        cmocka_unit_test(numbers_that_make_no_sense_give_no_advice_and_no_crash),
        cmocka_unit_test(hostile_names_stay_text),
        cmocka_unit_test(pictures_of_any_number_of_stages_are_whole),
        cmocka_unit_test(the_stage_that_is_waited_for_is_marked),
        cmocka_unit_test(a_picture_that_cannot_be_written_is_an_error),
        cmocka_unit_test(a_fit_draws_the_numbers_of_its_history),
    };
    return cmocka_run_group_tests(tests, begin, end);
}
