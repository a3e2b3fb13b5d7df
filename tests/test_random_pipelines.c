/* Pipelines of all sources and stages, drawn by chance: the elements are those that the stages say
 * in plain C; they are the same for any number of threads and from any element on; the steps of a
 * feed are the same for any number of lanes, threads and slots, and from any step on.
 *
 * `test_random_pipelines FROM COUNT` tries that many from one number on (random_seeds.h). */
#include "random_pipelines.h"
#include "random_seeds.h"
#include "data/feed.h"
#include "device/lanes.h"

static char trouble[6000];

static bool wrong(const drawn *p, const char *format, ...)
{
    va_list args;
    const int n = snprintf(trouble, sizeof trouble, "seed %llu: %s\n  ",
                           (unsigned long long)p->seed, p->text);
    va_start(args, format);
    vsnprintf(trouble + n, sizeof trouble - (size_t)n, format, args);
    va_end(args);
    return false;
}

/* ---- what was drawn -------------------------------------------------------------------------- */

enum { KINDS = 64 };

static int drawn_stages[KINDS],
    drawn_sources[KINDS]; /* how often, in the order of the registries */

/* Note the sources and stages that a pipeline has. */
static void note(const keel_dataset *d)
{
    const keel_applied *a = d->origin->applied;
    for (int i = 0; a && keel_stages[i]; i++) drawn_stages[i] += keel_stages[i] == a->stage;
    for (int i = 0; !a && keel_sources[i]; i++)
        drawn_sources[i] += !strcmp(keel_sources[i]->name, d->origin->source->name);
    for (int i = 0; a && i < a->n_parent; i++) note(a->parent[i]);
}

/* Those that are read as arrays are known by the word they were opened by. */
static int times_opened(const keel_source *s)
{
    int n = 0;
    for (int k = 0; k < FILE_SOURCES; k++) {
        if (strcmp(drawn_file_sources[k].name, s->name)) continue;
        if (!s->claims(drawn_spec(drawn_file_sources[k].spec)))
            fail_msg("'%s' is not opened by %s", drawn_file_sources[k].spec, s->name);
        n += drawn_from_file[k];
    }
    return n;
}

static const char *const no_rows[] = {
    "described", /* those of a stream that another process reads: test_stream_processes.c */
};

static void all_were_drawn(void)
{
    for (int i = 0; keel_stages[i]; i++)
        if (drawn_stages[i] < 2)
            fail_msg("stage %s was drawn %d times: it needs a line in random_pipelines.h, or a "
                     "larger weight",
                     keel_stages[i]->type.name, drawn_stages[i]);
    for (int i = 0; keel_sources[i]; i++) {
        const keel_source *s = keel_sources[i];
        bool reads = true;
        for (size_t k = 0; k < sizeof no_rows / sizeof *no_rows; k++)
            reads &= strcmp(no_rows[k], s->name) != 0;
        if (reads && !drawn_sources[i] && !times_opened(s))
            fail_msg("source %s was never drawn: it needs a line in random_files.h", s->name);
    }
}

/* ---- elements -------------------------------------------------------------------------------- */

enum { MOST = 40 };

static keel_reader_options reading(uint64_t seed, uint64_t pass, int64_t index, int threads)
{
    return (keel_reader_options){ KEEL_READER_OPTIONS.size, seed, pass, index, threads, 0 };
}

/* With its file a pipeline is rows by number, and without perhaps a stream: what it cannot do is
 * said in other words, and by number it may be known before the first step. A prefetch is in the
 * name of the data. */
static bool in_other_words(const drawn *p, const char *a, const char *b)
{
    static const char word[] = ".prefetch";
    char plain[512];
    const char *at = strstr(b, word);
    if (at) snprintf(plain, sizeof plain, "%.*s%s", (int)(at - b), b, at + sizeof word - 1);
    return strcmp(a, at ? plain : b) && !strstr(p->text, "kept");
}

/* Lists agree from element `from` of the first on. */
static bool same_lists(const drawn *p, const listed *a, int from, const listed *b, const char *what)
{
    const int n = a->n - from < b->n ? a->n - from : b->n;
    for (int i = 0; i < n; i++)
        if (a->at[from + i].hash != b->at[i].hash)
            return wrong(p, "%s: element %d is another one", what, from + i);
    if (a->n - from != b->n && (a->n < MOST || b->n + from < MOST))
        return wrong(p, "%s: %d elements and then %s%s, but %d and then %s%s", what, from + b->n,
                     b->ended ? "the end" : "more", b->text, a->n, a->ended ? "the end" : "more",
                     a->text);
    if (a->n < MOST &&
        (a->ended != b->ended || a->failed != b->failed || in_other_words(p, a->text, b->text)))
        return wrong(p, "%s: after %d elements '%s', not '%s'", what, a->n, b->text, a->text);
    return true;
}

/* The same pipeline, with the files that others have made, or without. */
static drawn drawn_anew(const drawn *p)
{
    static uint64_t turn;
    if (mixed(p->seed, turn++) % 3 == 0) drawn_forget(p);
    return pipeline_drawn(p->seed, p->depth);
}

/* How much is to be ready ahead changes no element. */
static void put_prefetch(drawn *q, draws *r)
{
    keel_dataset *d;
    if (!chance(r, 8)) return;
    must(keel_dataset_apply(
        &d, "prefetch", KEEL_ARGS(KEEL_ARG_INT("buffer_size", chance(r, 3) ? -1 : draw(r, 1, 9))),
        &q->d, 1));
    keel_dataset_destroy(q->d);
    q->d = d;
    note(d);
}

/* Read a pipeline that may have to be a new one. */
static void read_again(const drawn *p, listed *l, const keel_reader_options *o)
{
    if (!p->one_pass) {
        list_read(l, p->d, o, 1, MOST - (int)o->index);
        return;
    }
    drawn q = drawn_anew(p);
    list_read(l, q.d, o, 1, MOST - (int)o->index);
    pipeline_free(&q);
}

static bool any_threads_give_the_same(const drawn *p, draws *r)
{
    static const int threads[] = { 1, 2, 7, 16 };
    static listed one, more;
    for (uint64_t pass = 0; pass < (p->one_pass ? 1 : 2); pass++) {
        keel_reader_options o = reading(7, pass, 0, -1);
        read_again(p, &one, &o);
        for (int i = 0; i < 4; i++) {
            o = reading(7, pass, 0, threads[i]);
            if (chance(r, 4)) o.memory = draw(r, 1, 2000);
            read_again(p, &more, &o);
            if (!same_lists(p, &one, 0, &more, "with other threads")) return false;
        }
        for (int i = 0; i < 3 && one.n; i++) {
            o = reading(7, pass, draw(r, 0, one.n - 1), threads[draw(r, 0, 3)]);
            read_again(p, &more, &o);
            if (!same_lists(p, &one, (int)o.index, &more, "from an element on")) return false;
        }
    }
    const int64_t n = keel_dataset_cardinality(p->d);
    const bool empty = n < 0 || !one.n; /* a repeat ends with a pass of nothing, as in tf.data */
    const bool may_end = empty && strstr(p->text, "repeat");
    if (one.ended && n != KEEL_CARDINALITY_UNKNOWN && n != one.n && !may_end)
        return wrong(p, "has %d elements, but said %lld", one.n, (long long)n);
    if (one.n == MOST && n >= 0 && n < MOST)
        return wrong(p, "has more elements than the %lld it said", (long long)n);
    return true;
}

/* ---- what a stage makes ---------------------------------------------------------------------- */

static bool draws_numbers(const drawn *p)
{
    static const char *const words[] = { "noise",    "shuffle", "sample",         "flip",
                                         "flat_map", "made",    "group_by_window" };
    bool any = false;
    for (size_t i = 0; i < sizeof words / sizeof *words; i++) any |= !!strstr(p->text, words[i]);
    return any;
}

/* The last stage makes of what comes before it what `expect` says. */
static bool a_stage_makes(uint64_t seed, int depth)
{
    enum { PARENTS = 500 };
    static listed in, other, want, got;
    drawn p = pipeline_drawn(seed, depth);
    bool fine = true;
    const keel_reader_options o = reading(7, 0, 0, 2);
    if (p.last && !strcmp(p.last->name, "repeat") && draws_numbers(&p)) goto out;
    const bool counts = strstr(p.text, "in_order"); /* what is read twice is another element */
    if (!p.last || !p.last->expect || counts || (p.other && draws_numbers(&p))) goto out;
    drawn before = pipeline_drawn(seed, depth - 1), third = pipeline_drawn(seed, depth);
    const bool repeats = !strcmp(p.last->name, "repeat");
    list_read(&in, before.d, &o, repeats ? (p.a < 0 ? 4 : p.a > 0 ? (int)p.a : 1) : 1, PARENTS);
    if (third.other) list_read(&other, third.other, &o, 1, PARENTS);
    pipeline_free(&before);
    pipeline_free(&third);
    want.n = want.rows = 0;
    want.ended = false;
    p.last->expect(&p, &in, &other, &want);
    list_read(&got, p.d, &o, 1, MOST);
    for (int i = 0; i < want.n && i < got.n && fine; i++)
        if (want.at[i].hash != got.at[i].hash)
            fine = wrong(&p, "%s: element %d is not what it should be", p.last->name, i);
    if (fine && !got.failed && got.n < MOST && got.n < want.n)
        fine = wrong(&p, "%s: %d elements, not %d", p.last->name, got.n, want.n);
    if (fine && want.ended && got.n > want.n)
        fine = wrong(&p, "%s: more than the %d elements it should be", p.last->name, want.n);
    if (fine && got.failed && in.failed >= 0 && (!third.other || other.failed >= 0) &&
        !strstr(got.text, "is set to be an error"))
        fine = wrong(&p, "%s: fails of itself: %s", p.last->name, got.text);
out:
    pipeline_free(&p);
    return fine;
}

/* ---- steps ----------------------------------------------------------------------------------- */

enum { STEPS = 60, LANES = 8 };

typedef struct steps {
    int n;
    keel_status failed; /* < 0: of the feed, or of the step behind the last */
    char text[512];
    struct {
        uint32_t epoch;
        int64_t step;
        uint64_t hash;
    } at[STEPS];
} steps;

static keel_lanes lanes[LANES];

/* The hash of a step: rows that are left for the lanes are read by each for itself, the last lane
 * first. repeats: with the number of rows that it has twice, which a stream does not know. */
static uint64_t hash_step(const keel_batch *b, const keel_lanes *l, bool repeats)
{
    keel_piece piece[LANES];
    uint64_t h = mixed((uint64_t)b->rows, b->first_row);
    h = mixed(h, repeats ? (uint64_t)b->duplicates : 0);
    const int n = keel_cut(l, b->rows, piece);
    int64_t sum = 0;
    for (int i = l->n_part - 1; i >= 0; i--) {
        sum += piece[i].rows;
        if (piece[i].rows) keel_feed_read(b, piece[i].row, piece[i].row + piece[i].rows);
    }
    if (sum != b->rows || n > l->n_part) return 0;
    for (int i = 0; i < b->n_field; i++) {
        const size_t each =
            (size_t)keel_shape_count(&b->spec[i].shape) * keel_dtype_size(b->spec[i].dtype);
        for (int k = 0; b->field[i] && k < l->n_part; k++)
            for (int64_t row = piece[k].row; row < piece[k].row + piece[k].rows; row++)
                h = hash_value(h, b->spec[i].dtype, (const char *)b->field[i] + (size_t)row * each,
                               keel_shape_count(&b->spec[i].shape));
    }
    return h;
}

static keel_feed_options drawn_options(draws *r, bool batched)
{
    static const int64_t bucket[] = { 2, 4 };
    keel_feed_options o = { .real = chance(r, 3) ? KEEL_FLOAT64 : KEEL_FLOAT32, .seed = 7 };
    o.batch_size = batched || chance(r, 20) ? 0 : draw(r, 1, 9);
    o.end = (keel_end_of_data)draw(r, 0, 4);
    o.steps_per_epoch = chance(r, 3) ? 0 : draw(r, 1, chance(r, 2) ? 3 : 20);
    o.epochs = draw(r, 1, 4);
    o.first_epoch = chance(r, 4) ? draw(r, 0, o.epochs - 1) : 0;
    o.shuffle = chance(r, 2);
    o.wants_weight = chance(r, 3);
    if (chance(r, 3)) {
        o.bucket = bucket;
        o.bucket_count = 2;
    }
    return o;
}

/* How the same steps may be made. */
static void drawn_ways(draws *r, keel_feed_options *o)
{
    static const int threads[] = { -1, 0, 1, 2, 7, 16 };
    o->threads = threads[draw(r, 0, 5)];
    o->slots = chance(r, 4) ? 0 : (int)draw(r, 2, 6);
    o->leaves_rows = chance(r, 2);
}

/* Read the run from a step on; 0, 0: the begin. */
static void read_steps(steps *out, const keel_dataset *d, const keel_feed_options *o,
                       const keel_lanes *l, uint32_t epoch, int64_t step, draws *r, bool repeats)
{
    keel_feed *f = NULL;
    keel_batch b;
    out->n = 0;
    keel_status s = keel_feed_create(&f, d, o);
    if (s >= 0)
        s = epoch > o->first_epoch || step ? keel_feed_seek(f, epoch, step)
                                           : keel_feed_begin_epoch(f, epoch);
    while (s >= 0 && out->n < STEPS) {
        s = keel_feed_next(f, &b);
        if (s == KEEL_END) {
            if (++epoch == (uint32_t)o->epochs) break;
            s = keel_feed_begin_epoch(f, epoch);
            continue;
        }
        if (s < 0) break;
        out->at[out->n].epoch = b.epoch;
        out->at[out->n].step = b.step;
        out->at[out->n++].hash = hash_step(&b, l, repeats);
        if (chance(r, 9))
            keel_feed_retry(f, &b), out->n--;
        else
            keel_feed_release(f, &b);
    }
    out->failed = s < 0 ? s : KEEL_OK;
    snprintf(out->text, sizeof out->text, "%s", s < 0 ? keel_error() : "");
    keel_feed_destroy(f);
}

static bool same_steps(const drawn *p, const keel_feed_options *o, const steps *a, int from,
                       const steps *b, const char *what)
{
    char how[200];
    snprintf(how, sizeof how, "%s (batch %lld, end %d, %lld steps, epochs %lld to %lld%s)", what,
             (long long)o->batch_size, o->end, (long long)o->steps_per_epoch,
             (long long)o->first_epoch, (long long)o->epochs, o->shuffle ? ", shuffled" : "");
    for (int i = 0; i < a->n - from && i < b->n; i++)
        if (a->at[from + i].hash != b->at[i].hash || a->at[from + i].epoch != b->at[i].epoch ||
            a->at[from + i].step != b->at[i].step)
            return wrong(p, "%s: step %lld of epoch %u is another one (%lld of %u)", how,
                         (long long)a->at[from + i].step, a->at[from + i].epoch,
                         (long long)b->at[i].step, b->at[i].epoch);
    if (a->n == STEPS || b->n == STEPS) return true;
    if (strstr(p->text, "kept") && ((a->failed < 0 && !a->n) || (b->failed < 0 && !b->n)))
        return true;
    if (a->n - from != b->n)
        return wrong(p, "%s: %d steps%s%s, not %d%s%s", how, from + b->n, *b->text ? ", then " : "",
                     b->text, a->n, *a->text ? ", then " : "", a->text);
    if (a->failed != b->failed || in_other_words(p, a->text, b->text))
        return wrong(p, "%s: after %d steps '%s', not '%s'", how, a->n, b->text, a->text);
    return true;
}

/* Rows by number and the same rows as a stream make the same steps, where neither is refused. A
 * stream cannot know which epochs came before the first. */
static bool a_stream_makes_the_same_steps(const drawn *p, const keel_feed_options *o, draws *r)
{
    static steps whole, other;
    if (o->first_epoch && (o->steps_per_epoch || o->end == KEEL_CARRY)) return true;
    keel_dataset *d;
    drawn q = drawn_anew(p);
    bool fine = true;
    const keel_filter all = { .size = sizeof all, .call = drawn_all_stay };
    read_steps(&whole, q.d, o, &lanes[0], (uint32_t)o->first_epoch, 0, r, false);
    pipeline_free(&q);
    q = drawn_anew(p);
    must(keel_dataset_filter(&d, q.d, &all));
    read_steps(&other, d, o, &lanes[2], (uint32_t)o->first_epoch, 0, r, false);
    keel_dataset_destroy(d);
    pipeline_free(&q);
    if (other.failed >= 0 && whole.failed >= 0)
        fine = same_steps(p, o, &whole, 0, &other, "as a stream");
    return fine;
}

static bool steps_are_the_same(const drawn *p, draws *r)
{
    static steps whole, part;
    keel_feed_options o = drawn_options(r, keel_stage_spec(p->d).batched);
    drawn q = drawn_anew(p);
    bool fine = true;
    /* As for any stream: it cannot know which epochs came before the first. */
    const bool kept = strstr(p->text, "kept");
    if (kept && (o.steps_per_epoch || o.end == KEEL_CARRY)) o.first_epoch = 0;
    o.threads = -1;
    read_steps(&whole, q.d, &o, &lanes[0], (uint32_t)o.first_epoch, 0, r, !kept);
    pipeline_free(&q);
    for (int i = 0; i < 6 && fine; i++) {
        const int from = i < 2 || !whole.n ? 0 : (int)draw(r, 0, whole.n - 1);
        drawn_ways(r, &o);
        q = drawn_anew(p);
        if (keel_dataset_stage(q.d)) put_prefetch(&q, r); /* else it would make a pipeline of it */
        read_steps(&part, q.d, &o, &lanes[draw(r, 0, LANES - 1)],
                   whole.n ? whole.at[from].epoch : (uint32_t)o.first_epoch,
                   whole.n ? whole.at[from].step : 0, r, !kept);
        pipeline_free(&q);
        fine =
            same_steps(p, &o, &whole, from, &part, from ? "from a step on" : "with other threads");
    }
    return fine &&
           (o.shuffle || !keel_dataset_stage(p->d) || a_stream_makes_the_same_steps(p, &o, r));
}

/* ---- all of it ------------------------------------------------------------------------------- */

static bool try(uint64_t seed)
{
    draws r = { mixed(seed, 5) };
    const int depth = (int)draw(&r, 0, DRAWN_DEPTH);
    drawn p = pipeline_drawn(seed, depth);
    note(p.d);
    bool fine = any_threads_give_the_same(&p, &r) && steps_are_the_same(&p, &r);
    fine = fine && (!depth || a_stage_makes(seed, depth));
    drawn_forget(&p);
    pipeline_free(&p);
    return fine;
}

static void prepare(void)
{
    const char *tmp = getenv("KEEL_TEST_TMP");
    snprintf(drawn_folder, sizeof drawn_folder, "%s", tmp ? tmp : "/tmp");
    drawn_fill();
    drawn_files_begin();
    for (int i = 0; i < LANES; i++) {
        char text[32];
        snprintf(text, sizeof text, i ? "cpu:0-%d" : "cpu:0", i);
        must(keel_lanes_parse(&lanes[i], text));
    }
}

enum { SEEDS = 200 };

static void a_pipeline_gives_the_same_from_anywhere_with_any_threads_and_lanes(void **unused)
{
    (void)unused;
    for (uint64_t seed = 1; seed <= SEEDS; seed++)
        if (!try(seed)) fail_msg("%s", trouble);
    all_were_drawn();
}

int main(int argc, char **argv)
{
    const struct CMUnitTest test[] = {
        cmocka_unit_test(a_pipeline_gives_the_same_from_anywhere_with_any_threads_and_lanes),
    };
    prepare();
    if (argc < 3) {
        const int failed = cmocka_run_group_tests(test, NULL, NULL);
        files_end();
        return failed;
    }
    const int bad = try_seeds(argv, try, trouble);
    files_end();
    return bad > 0;
}
