/* Training loops drawn by chance, on devices drawn by chance (random_machine.h): functions that
 * train one model or two, by an optimizer each, that only look, and fits and predictions between
 * them, of models of all layers and steps of any number of rows. Whatever the devices, results,
 * what is asked before a step is applied, and weights are those of one: to the bit where steps are
 * reproducible, else those of a core. A step that fails, since a call of a device does or memory is
 * missing, changes nothing, and works when it is made again. A call of a model that a step makes
 * again gives what the call gave.
 *
 * `test_random_loops FROM COUNT` tries that many from one number on (random_seeds.h). */
#include <unistd.h>
#include "base/memory.h"
#include "random_loops.h"
#include "random_machine.h"
#include "random_seeds.h"
#include "sweep.h"

enum { LONGEST = 240, STEADY = 75 /* a seed */ };

static char trouble[4 * TEXT];
static bool prints; /* the graphs that fail */

static const char *why; /* what is wrong */

/* ---- runs and all they leave ----------------------------------------------------------------- */

enum { KEPT = 4096 };

typedef struct trail {
    int n_run; /* that went well */
    keel_status status;
    char text[TEXT];
    int n, end[MOST_RUNS]; /* numbers that runs have left; behind each run */
    double kept[KEPT];
    int calls[MOST_RUNS + 1][DEVICES], given[MOST_RUNS + 1][DEVICES]; /* before each run */
    int64_t memory[MOST_RUNS + 1];                                    /* requests */
    keel_model *model[2];
} trail;

/* What fails in a run: counted from its begin on, a request for memory (-1: none), a call of a
 * device, or work that never ends (0: none). */
typedef struct breaking {
    int run;
    int64_t memory;
    int call, hang;
} breaking;

static void keep(trail *o, double x)
{
    if (o->n < KEPT) o->kept[o->n++] = x;
}

/* What an optimizer counts, and of what it keeps the first number and the last. */
static void keep_states(const keel_function *f, int optimizer, trail *o)
{
    keep(o, (double)keel_function_iterations(f, optimizer));
    for (int64_t i = 0; i < keel_function_state_count(f, optimizer); i++) {
        keel_tensor t;
        must(keel_function_state(f, optimizer, i, &t));
        const int64_t n = keel_shape_count(&t.shape);
        if (t.dtype != KEEL_INT32) keep(o, at(t.data, t.dtype, 0));
        if (t.dtype != KEEL_INT32) keep(o, at(t.data, t.dtype, n - 1));
        keel_tensor_free(&t);
    }
}

static void keep_results(loops *x, run_kind kind, trail *o)
{
    const looping *l = x->l;
    const keel_function *f = x->function[kind];
    const bool head = kind == TRAINS_HEAD || l->both;
    for (int k = 0; k <= l->f.g.n_out; k++) {
        char name[16];
        double loss = 0;
        snprintf(name, sizeof name, k == l->f.g.n_out ? "head loss" : "loss%d", k);
        if (k == l->f.g.n_out && !head) continue;
        must(keel_function_scalar(f, name, &loss));
        keep(o, loss);
    }
    for (int of = 0; of <= head; of++)
        for (int how = -1; how <= KEEL_ROWS_MAX; how++) {
            keel_tensor t;
            must(how < 0 ? keel_gather(f, of ? "head" : "out", &t)
                         : keel_reduce(f, of ? "head" : "out", (keel_rows_op)how, &t));
            const int64_t n = keel_shape_count(&t.shape);
            for (int64_t i = 0; i < n; i++) keep(o, at(t.data, t.dtype, i));
            keel_tensor_free(&t);
        }
    for (int i = 0; keel_function_iterations(f, i) >= 0; i++) keep_states(f, i, o);
    for (int i = 0; i < 2; i++) {
        const asked *a = &x->asked[kind][i];
        if (!a->rule) continue;
        keep(o, a->last.gradient_norm);
        keep(o, a->last.loss);
        keep(o, (double)a->last.rows);
        keep(o, (double)a->last.applied);
    }
}

static keel_status run_one(loops *x, int i, keel_strategy *s, const keel_data_field *field, int n,
                           void *weight, trail *o)
{
    looping *l = (looping *)x->l;
    const run_kind kind = l->run[i].kind;
    keel_status st;
    if (kind < FITS) {
        keel_tensor in[FIELDS];
        inputs_of(l, i, field, n - 1, in, weight);
        st = keel_strategy_run(s, x->function[kind], in, n);
        keel_memory_fail_at(-1);
        if (st >= 0) keep_results(x, kind, o);
        return st;
    }
    keel_fit_options how = l->f.o;
    if (kind == FITS) return keel_fit(x->model[0], s, l->f.rows.data, &how, NULL);
    keel_tensor p;
    how.end = KEEL_KEEP;
    st = keel_predict(x->model[0], s, l->f.held_out.data, &how, &p);
    if (st < 0) return st;
    for (int64_t k = 0; k < keel_shape_count(&p.shape); k++) keep(o, at(p.data, p.dtype, k));
    keel_tensor_free(&p);
    return KEEL_OK;
}

/* All weights of the models, one after another; *n: their bytes. */
static char *weights_of(keel_model *const *model, size_t *n)
{
    char *all = NULL;
    *n = 0;
    for (int m = 0; m < 2; m++)
        for (int i = 0; i < keel_model_weight_count(model[m]); i++) {
            keel_tensor t;
            must(keel_model_get_weight(model[m], keel_model_weight_name(model[m], i), &t));
            const size_t bytes = (size_t)keel_shape_count(&t.shape) * keel_dtype_size(t.dtype);
            assert_non_null(all = realloc(all, *n + bytes + 1));
            memcpy(all + *n, t.data, bytes);
            *n += bytes;
            keel_tensor_free(&t);
        }
    return all;
}

static void forget(trail *o)
{
    for (int i = 0; i < 2; i++) keel_model_destroy(o->model[i]);
    *o = (trail){ 0 };
}

static void create_functions(loops *x, own_step *own, const keel_data_field *field, int n)
{
    const looping *l = x->l;
    for (int k = 0; k < FUNCTIONS; k++) {
        own[k] = (own_step){ x, (run_kind)k };
        must(keel_function_create(&x->function[k],
                                  &(keel_function_options){ KEEL_FUNCTION_OPTIONS, .step = step_of,
                                                            .context = &own[k], .dtype = l->f.dtype,
                                                            .input = field, .n_input = n, .seed = 7,
                                                            .programs = 2 }));
    }
}

/* Makes a run fail, from now on. */
static void begin_breaking(const breaking *b, const machine *m, const opened *on)
{
    standin *s = m->n ? standin_of(on->device[m->who]) : NULL;
    if (s && b->call) s->fail_at = s->calls + b->call;
    if (s && b->hang) s->hang_at = s->given + b->hang;
    keel_memory_fail_at(b->memory);
}

static bool is_right_failure(const breaking *b, const trail *o)
{
    why = o->text;
    if (b->memory >= 0) return o->status == KEEL_ENOMEM;
    return (o->status == KEEL_EDEVICE || o->status == KEEL_ENOMEM) && strstr(o->text, "standin:");
}

/* All runs of the loop. b: NULL, or what fails, and is made again. False: why says what is wrong.
 */
static bool run_all(loops *x, const machine *m, const opened *on, const breaking *b,
                    const keel_data_field *field, int n, trail *o)
{
    const looping *l = x->l;
    void *weight = numbers(l->f.dtype, l->f.g.rows);
    bool fine = true, failed = false;
    for (int i = 0; i < l->n_run && fine; i++) {
        size_t bytes, after;
        char *before = weights_of(x->model, &bytes);
        for (int d = 0; d < on->n; d++) o->calls[i][d] = standin_of(on->device[d])->calls;
        for (int d = 0; d < on->n; d++) o->given[i][d] = standin_of(on->device[d])->given;
        o->memory[i] = keel_memory_calls();
        if (b && b->run == i && !failed) begin_breaking(b, m, on);
        o->status = run_one(x, i, on->strategy, field, n, weight, o);
        keel_memory_fail_at(-1);
        if (o->status < 0) snprintf(o->text, sizeof o->text, "%s", keel_error());
        const bool again = o->status < 0 && b && !failed && l->run[i].kind != FITS;
        if (again) {
            char *now = weights_of(x->model, &after);
            failed = true;
            fine = is_right_failure(b, o);
            if (fine && memcmp(before, now, bytes)) {
                why = "a run that failed has left a trace";
                fine = false;
            }
            free(now);
            if (!b->hang) i--;
        }
        free(before);
        if (o->status < 0 && (!again || b->hang)) break;
        if (o->status >= 0) o->end[o->n_run++] = o->n;
    }
    for (int d = 0; d < on->n; d++) o->calls[l->n_run][d] = standin_of(on->device[d])->calls;
    for (int d = 0; d < on->n; d++) o->given[l->n_run][d] = standin_of(on->device[d])->given;
    o->memory[l->n_run] = keel_memory_calls();
    free(weight);
    return fine;
}

/* *could: the machine can be. */
static bool run(looping *l, const machine *m, const breaking *b, trail *o, bool *could)
{
    loops x = { .l = l };
    own_step own[FUNCTIONS];
    opened on;
    keel_data_field field[FIELDS] = { 0 };
    char name[FIELDS][16];
    const int n = fields_of(l, field, name);
    *o = (trail){ 0 };
    if (!(*could = open_machine(m, &l->f, &on))) {
        close_opened(&on, m, false);
        return true;
    }
    must(make_model(&l->f, &x.model[0]));
    make_head(&x, &x.model[1]);
    create_functions(&x, own, field, n);
    const bool fine = run_all(&x, m, &on, b, field, n, o);
    for (int k = 0; k < FUNCTIONS; k++) keel_function_destroy(x.function[k]);
    close_opened(&on, m, !(b && b->hang));
    for (int i = 0; i < 2; i++) o->model[i] = x.model[i];
    return fine;
}

/* ---- compared -------------------------------------------------------------------------------- */

static char why_text[TEXT];

/* Bits, or numbers to 1e-7 of the largest. */
static bool alike(const char *what, const double *a, const double *b, int n, bool bits)
{
    double size = 1;
    for (int i = 0; i < n; i++) size = fmax(size, fabs(a[i]));
    for (int i = 0; i < n; i++) {
        if (isnan(a[i]) && isnan(b[i])) continue;
        if (bits ? !memcmp(&a[i], &b[i], sizeof *a) : fabs(a[i] - b[i]) <= 1e-7 * size) continue;
        snprintf(why_text, sizeof why_text, "%s[%d of %d] is %.17g, and %.17g", what, i, n, a[i],
                 b[i]);
        why = why_text;
        return false;
    }
    return true;
}

static bool same_weights(const trail *a, const trail *b, keel_dtype dtype, bool bits)
{
    size_t n, m;
    char *u = weights_of(a->model, &n), *v = weights_of(b->model, &m);
    const int64_t count = (int64_t)(n / keel_dtype_size(dtype));
    double *x = calloc((size_t)count + 1, sizeof *x), *y = calloc((size_t)count + 1, sizeof *y);
    assert_true(x && y && n == m);
    for (int64_t i = 0; i < count; i++) x[i] = at(u, dtype, i), y[i] = at(v, dtype, i);
    const bool same = alike("weights", x, y, (int)count, bits);
    free(x), free(y), free(u), free(v);
    return same;
}

static bool same(const trail *a, const trail *b, const looping *l)
{
    const bool bits = l->f.shards > 0;
    why = "one of the two fails";
    if (a->n_run != b->n_run || a->status != b->status) {
        why = a->status < 0 ? a->text : b->text;
        return false;
    }
    for (int i = 0; i < a->n_run; i++) {
        char what[32];
        const int first = i ? a->end[i - 1] : 0;
        snprintf(what, sizeof what, "results of run %d", i);
        if (a->end[i] != b->end[i] ||
            !alike(what, a->kept + first, b->kept + first, a->end[i] - first, bits))
            return false;
    }
    return same_weights(a, b, l->f.dtype, bits);
}

static bool wrong(const looping *l, const machine *m, const breaking *b, const char *how);

/* ---- calls that are made again --------------------------------------------------------------- */

typedef struct repeating {
    const looping *l;
    keel_model *model;
    bool again;
} repeating;

static keel_status call_again(void *context, keel_trace *t)
{
    const repeating *r = context;
    const int n = r->l->f.g.n_out;
    keel_traced in[STEPS_MAX], out = -1, again = -1;
    bool wanted[OUTS_MAX];
    char name[16];
    for (int k = 0; k < n; k++) wanted[k] = true;
    for (int i = 0; i < r->l->n_input; i++) in[i] = input_at(t, "x", i);
    keel_trace_outputs(t, r->model, KEEL_TRAINING, in, r->l->n_input, wanted, &out);
    if (r->again)
        keel_trace_outputs(t, r->model, KEEL_TRAINING_AGAIN, in, r->l->n_input, wanted, &again);
    for (int k = 0; k < n; k++) {
        snprintf(name, sizeof name, "out%d", k);
        keel_trace_return(t, name, out + k);
        snprintf(name, sizeof name, "again%d", k);
        if (r->again) keel_trace_return(t, name, again + k);
    }
    return KEEL_OK;
}

static bool same_rows(const keel_function *f, int out)
{
    keel_tensor a, b;
    char name[2][16];
    snprintf(name[0], sizeof name[0], "out%d", out);
    snprintf(name[1], sizeof name[1], "again%d", out);
    must(keel_gather(f, name[0], &a));
    must(keel_gather(f, name[1], &b));
    const bool same =
        !memcmp(a.data, b.data, (size_t)keel_shape_count(&a.shape) * keel_dtype_size(a.dtype));
    keel_tensor_free(&a);
    keel_tensor_free(&b);
    return same;
}

static int n_repeated;

/* Whether a call that is made again gives what the call gave, and moves nothing more. */
static bool repeats(looping *l, const machine *m)
{
    keel_data_field field[FIELDS] = { 0 };
    char name[FIELDS][16];
    const int n = fields_of(l, field, name);
    void *weight = numbers(l->f.dtype, l->f.g.rows);
    trail o[2] = { { 0 } };
    opened on;
    bool fine = true;
    if (!open_machine(m, &l->f, &on)) fail_msg("%s", keel_error());
    for (int k = 0; k < 2; k++) {
        repeating r = { .l = l, .again = k == 1 };
        keel_function *f;
        keel_tensor in[FIELDS];
        must(make_model(&l->f, &o[k].model[0]));
        must(make_model(&l->f, &o[k].model[1]));
        r.model = o[k].model[0];
        inputs_of(l, 0, field, n - 1, in, weight);
        must(keel_function_create(&f, &(keel_function_options){ KEEL_FUNCTION_OPTIONS,
                                                                .step = call_again, .context = &r,
                                                                .dtype = l->f.dtype, .input = field,
                                                                .n_input = n, .seed = 7 }));
        o[k].status = keel_strategy_run(on.strategy, f, in, n);
        if (o[k].status < 0) snprintf(o[k].text, sizeof o[k].text, "%s", keel_error());
        for (int i = 0; r.again && o[k].status >= 0 && i < l->f.g.n_out; i++)
            if (!same_rows(f, i)) fine = false;
        keel_function_destroy(f);
    }
    close_opened(&on, m, true);
    const bool refused = o[1].status == KEEL_EUNSUP && strstr(o[1].text, "made again");
    why = "other outputs";
    if (o[0].status != o[1].status && !refused) {
        why = o[1].text;
        fine = false;
    }
    n_repeated += o[1].status >= 0;
    if (fine && !refused) fine = same_weights(&o[0], &o[1], l->f.dtype, true);
    if (!fine) wrong(l, m, NULL, "a call that is made again");
    for (int k = 0; k < 2; k++) forget(&o[k]);
    free(weight);
    return fine;
}

static bool wrong(const looping *l, const machine *m, const breaking *b, const char *how)
{
    char runs[2 * TEXT], on[TEXT];
    describe_looping(l, runs);
    describe_machine(m, on);
    int n = snprintf(trouble, sizeof trouble, "seed %llu, %s: %s\n  %s\n  on %s",
                     (unsigned long long)l->f.g.seed, how, why, runs, on);
    if (b)
        snprintf(trouble + n, sizeof trouble - (size_t)n,
                 "\n  in run %d: call %d or work %d of %d, or request %d", b->run, b->call, b->hang,
                 m->who, (int)b->memory);
    return false;
}

static const machine host = { .patience = PATIENCE };
static const machine gpu = { .n = 1, .patience = PATIENCE, .bucket_bytes = 256 };

/* Whether the loop is the same where something fails in one run, which is made again. */
static bool is_same_broken(looping *l, const machine *m, const breaking *b, const trail *whole)
{
    static trail o;
    bool could, fine = run(l, m, b, &o, &could);
    if (!fine) wrong(l, m, b, "a run that fails");
    if (fine && could && !b->hang && !same(whole, &o, l))
        fine = wrong(l, m, b, "after a run that failed");
    forget(&o);
    return fine;
}

static int calls_of(const trail *whole, int run, int device)
{
    return whole->calls[run + 1][device] - whole->calls[run][device];
}

/* The first calls of a step bring what it is made of. */
static bool breaks(looping *l, const machine *m, const trail *whole)
{
    machine with = *m;
    breaking b = { .memory = -1, .run = chance(l->n_run) };
    if (whole->n_run < l->n_run || l->run[b.run].kind == FITS) return true;
    with.who = m->n ? chance(m->n) : 0;
    const int calls = calls_of(whole, b.run, with.who);
    const int given = whole->given[b.run + 1][with.who] - whole->given[b.run][with.who];
    const int how = chance(10);
    if (!m->n || how < 3)
        b.memory = chance((int)(whole->memory[b.run + 1] - whole->memory[b.run]) + 1);
    else if (how < 9 && calls > 0)
        b.call = 1 + chance(calls > 4 && percent(30) ? 4 : calls);
    else if (given > 0) {
        b.hang = 1 + chance(given);
        with.patience = SLOW ? 2 : 0.3;
    } else
        return true;
    return is_same_broken(l, &with, &b, whole);
}

static int n_refused;

static bool try(uint64_t seed)
{
    static looping l;
    static trail one, many;
    keel_model *m;
    bool fine = true, could;
    alarm(LONGEST);
    draw_looping(&l, seed);
    if (make_model(&l.f, &m) < 0) { /* as an optimizer that has no such argument */
        n_refused++;
        free_looping(&l);
        return true;
    }
    keel_model_destroy(m);
    const machine *first = l.f.shards ? &gpu : &host;
    assert_true(run(&l, first, NULL, &one, &could) && could);
    if (one.status < 0) {
        n_refused++;
        if (getenv("KEEL_SEEDS")) fprintf(stderr, "  fails: %s\n", one.text);
    }
    for (int k = 0; k < 2 && fine; k++) {
        machine on = draw_machine();
        if (l.f.dtype == KEEL_FLOAT32) on.beside = NULL; /* whose kernels are not references */
        fine = run(&l, &on, NULL, &many, &could);
        if (!could) continue;
        if (!same(&one, &many, &l)) fine = wrong(&l, &on, NULL, "beside one device");
        for (int i = 0; i < 2 && fine; i++) fine = breaks(&l, &on, &many);
        forget(&many);
    }
    if (fine && percent(30)) fine = breaks(&l, first, &one);
    if (fine && one.status >= 0) fine = repeats(&l, first);
    if (fine && *fault) {
        why = fault;
        fine = wrong(&l, &host, NULL, "what a device has told of");
    }
    if (!fine && prints) print_graph(&l.f.g);
    *fault = 0;
    forget(&one);
    free_looping(&l);
    alarm(0);
    return fine;
}

/* Two trained models, with statistics; on two devices of each kind. */
static void a_step_works_after_any_of_its_calls_has_failed(void **unused)
{
    static looping l;
    static trail whole;
    bool could;
    int broken = 0;
    (void)unused;
    for (int kind = 0; kind < 3; kind++) {
        machine m = { .n = 2, .kind = kind, .bucket_bytes = 256, .patience = PATIENCE };
        draw_looping(&l, STEADY);
        l.both = true;
        l.n_run = 3;
        for (int i = 0; i < l.n_run; i++) {
            l.run[i].kind = TRAINS;
            l.run[i].first = 0;
            l.run[i].rows = l.f.g.rows;
        }
        assert_true(run(&l, &m, NULL, &whole, &could) && could && whole.n_run == l.n_run);
        for (m.who = 0; m.who < m.n; m.who++)
            for (int call = 1; call <= calls_of(&whole, 1, m.who); call += thin(1, 1, 7), broken++)
                if (!is_same_broken(&l, &m, &(breaking){ .memory = -1, .run = 1, .call = call },
                                    &whole))
                    fail_msg("%s", trouble);
        forget(&whole);
        free_looping(&l);
    }
    assert_true(broken > 10);
}

static void a_loop_on_any_devices_is_that_of_one(void **unused)
{
    (void)unused;
    for (uint64_t seed = 1; seed <= (uint64_t)thin(200, 12, 4); seed++)
        if (!try(seed)) fail_msg("%s", trouble);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest test[] = {
        cmocka_unit_test(a_step_works_after_any_of_its_calls_has_failed),
        cmocka_unit_test(a_loop_on_any_devices_is_that_of_one),
    };
    make_kinds();
    if (argc < 3) return cmocka_run_group_tests(test, NULL, NULL);
    prints = true;
    const int bad = try_seeds(argv, try, trouble);
    printf("%d were refused, %d calls made again\n", n_refused, n_repeated);
    return bad > 0;
}
