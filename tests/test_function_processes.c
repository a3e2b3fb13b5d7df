/* Training loops of one's own in several processes have the bits of one: weights, losses, and rows
 * that are gathered and reduced. Processes are threads here. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include "loops.h"
#include "thread_processes.h"
#include "standin.h"

enum { SHARDS = 16, SEEN = 8, PIXELS = 64, DEVICES_MOST = 3 };

/* What each step shows: losses, and of the rows a reduction of each kind. */
typedef struct seen {
    double loss[FUNCTIONS * LOSSES], reduced[4];
} seen;

typedef struct process {
    const loop_case *of;
    loop l;
    keel_function *f[FUNCTIONS + 1], *look;
    keel_process_group group; /* of no processes: it is alone */
    bool rounds;              /* gradients travel as bfloat16 */
    int lanes, workers, steps;
    const keel_device_type *type; /* lanes are devices; NULL: cores */
    seen step[STEPS];
    keel_tensor rows; /* gathered after the last step */
    /* what is wrong with it, from step `from` on */
    enum {
        NOTHING,
        OTHER_ROWS,
        OTHER_RATE,
        OTHER_COUNT,
        OTHER_STATE,
        SET_STATE,
        OTHER_WEIGHTS,
        OTHER_BEGIN,
        OTHER_ANSWER,
        OTHER_TYPE,
        FAILS,
        LEAVES
    } wrong;
    int from, at;
    keel_status status;
    char error[1024];
} process;

/* Rows as a step leaves them: of a model, without training. */
static keel_status look(void *context, keel_trace *t)
{
    const loop *l = context;
    const keel_traced x = loop_input(t, l->input[0].path);
    return keel_trace_return(t, "rows", loop_with(t, "ops.Multiply", x, 0.25));
}

/* Sets the first state of an optimizer, to what it is or to something else. */
static void set_state(keel_function *f, bool other)
{
    keel_tensor t;
    if (keel_function_state_count(f, 0) < 1) return;
    must(keel_function_state(f, 0, 0, &t));
    if (other) loop_put(&t, 0, loop_number(&t, 0) + 0.125);
    must(keel_function_set_state(f, 0, 0, &t));
    keel_tensor_free(&t);
}

static keel_status run_step(process *p, keel_strategy *s, int step)
{
    const int64_t first = step * BATCH, n = ROWS - first < BATCH ? ROWS - first : BATCH;
    keel_tensor in[INPUTS], t;
    static float biases[8] = { 0.5f };
    const keel_tensor bias = { KEEL_FLOAT32, { 1, { 8 } }, biases };
    seen *x = &p->step[step];
    int at = 0;
    p->at = step;
    for (int i = 0; i < p->l.n_input; i++) in[i] = loop_part(&p->l.rows[i], first, n);
    if (step >= p->from && p->wrong == OTHER_ROWS) loop_put(&in[0], n - 1, 3);
    if (step == p->from && p->wrong == OTHER_RATE)
        keel_function_set_learning_rate(p->f[0], 0, 0.125);
    if (step == 0 && p->wrong == OTHER_BEGIN)
        keel_model_set_weight(p->l.model[0], "dense/bias", &bias);
    if (step == p->from && p->wrong == LEAVES)
        return keel_strategy_leave(s, keel_error_set(KEEL_ECALLBACK, "the test leaves"));
    for (int k = 0; step == 0 && p->f[k]; k++) {
        const keel_status st = keel_strategy_prepare(s, p->f[k], in, p->l.n_input);
        if (st < 0) return st;
    }
    if (step == p->from && p->wrong == OTHER_WEIGHTS)
        keel_model_set_weight(p->l.model[0], "dense/bias", &bias);
    if (step == p->from && p->wrong == OTHER_COUNT) keel_function_set_iterations(p->f[0], 0, 7);
    if (step == p->from && (p->wrong == OTHER_STATE || p->wrong == SET_STATE))
        set_state(p->f[0], p->wrong == OTHER_STATE);
    if (step == 3) set_state(p->f[0], false); /* by all alike */
    for (int k = 0; p->f[k]; k++) {
        const keel_status st = keel_strategy_run(s, p->f[k], in, p->l.n_input);
        if (st < 0) return st;
        for (int i = 0; i < LOSSES && p->of->how.loss[k][i]; i++)
            keel_function_scalar(p->f[k], p->of->how.loss[k][i], &x->loss[at++]);
    }
    keel_status st = keel_strategy_run(s, p->look, in, p->l.n_input);
    for (int how = 0; st >= 0 && how < 4; how++) {
        st = keel_reduce(p->look, "rows", (keel_rows_op)how, &t);
        if (st >= 0) x->reduced[how] = loop_number(&t, 3);
        if (st >= 0) keel_tensor_free(&t);
    }
    if (st >= 0 && step == p->steps - 1) st = keel_gather(p->look, "rows", &p->rows);
    return st;
}

static keel_status open_devices(keel_strategy **out, process *p, keel_device **device)
{
    for (int i = 0; i < p->lanes; i++) device[i] = standin_open(p->type, i);
    return p->group.count
               ? keel_strategy_create_group_beside(out, device, p->lanes, NULL, &p->group)
               : keel_strategy_create_devices(out, device, p->lanes);
}

static void *live(void *context)
{
    process *p = context;
    keel_strategy *s = NULL;
    keel_device *device[DEVICES_MOST] = { NULL };
    p->group.timeout = PATIENT;
    p->status =
        p->type ? open_devices(&s, p, device) : open_lanes(&s, &p->group, p->lanes, p->workers);
    if (p->status >= 0)
        p->status = p->rounds ? keel_strategy_compress(s, KEEL_COMPRESS_BF16)
                              : keel_strategy_reproducible(s, SHARDS);
    for (int i = 0; i < p->steps && p->status >= 0; i++) p->status = run_step(p, s, i);
    if (p->status < 0) snprintf(p->error, sizeof p->error, "%s", keel_error());
    for (int k = 0; p->f[k]; k++) keel_function_destroy(p->f[k]);
    keel_function_destroy(p->look);
    keel_strategy_destroy(s);
    for (int i = 0; i < DEVICES_MOST && device[i]; i++) {
        const standin *x = standin_of(device[i]);
        if (x->clocks.reports > 0) snprintf(p->error, sizeof p->error, "%s", x->clocks.first);
        device[i]->type->close(device[i]);
    }
    return NULL;
}

static void begin(process *p, const loop_case *c, int steps)
{
    p->of = c;
    p->l = c->how;
    p->l.dtype = KEEL_FLOAT32;
    p->steps = steps;
    p->lanes = p->workers = 1;
    c->create(&p->l);
    for (int k = 0; k < FUNCTIONS && p->l.step[k]; k++) p->f[k] = loop_function(&p->l, k);
    must(keel_function_create(
        &p->look, &(keel_function_options){ KEEL_FUNCTION_OPTIONS, .name = "look", .step = look,
                                            .context = &p->l, .dtype = p->l.dtype,
                                            .input = p->l.input, .n_input = p->l.n_input }));
}

static void end(process *p)
{
    keel_tensor_free(&p->rows);
    loop_free(&p->l);
}

static bool same_weights(const process *a, const process *b)
{
    bool same = true;
    for (int m = 0; m < MODELS && a->l.model[m]; m++)
        for (int w = 0; w < keel_model_weight_count(a->l.model[m]); w++) {
            const char *name = keel_model_weight_name(a->l.model[m], w);
            keel_tensor x, y;
            must(keel_model_get_weight(a->l.model[m], name, &x));
            must(keel_model_get_weight(b->l.model[m], name, &y));
            int64_t n = 1;
            for (int d = 0; d < x.shape.rank; d++) n *= x.shape.dim[d];
            same = same && !memcmp(x.data, y.data, (size_t)n * sizeof(float));
            keel_tensor_free(&x);
            keel_tensor_free(&y);
        }
    return same;
}

static void compare(const process *one, const process *p, int i, int n)
{
    const char *name = p->of->golden;
    if (p->error[0]) fail_msg("%s, process %d of %d: %s", name, i, n, p->error);
    for (int k = 0; k < p->steps; k++)
        if (memcmp(&one->step[k], &p->step[k], sizeof(seen)))
            fail_msg("%s, process %d of %d: step %d shows something else", name, i, n, k);
    if (!same_weights(one, p)) fail_msg("%s, process %d of %d: other weights", name, i, n);
    int64_t numbers = 1;
    assert_int_equal(one->rows.shape.dim[0], ROWS - (STEPS - 1) * BATCH);
    for (int d = 0; d < one->rows.shape.rank; d++) {
        assert_int_equal(one->rows.shape.dim[d], p->rows.shape.dim[d]);
        numbers *= p->rows.shape.dim[d];
    }
    assert_memory_equal(one->rows.data, p->rows.data, (size_t)numbers * sizeof(float));
}

static void loops_have_the_bits_of_one_process(void **unused)
{
    static const int counts[] = { 2, 3, 4, 7, 8 };
    (void)unused;
    for (int c = 0; c < LOOPS; c++) {
        process one = { 0 };
        begin(&one, &loops[c], STEPS);
        live(&one);
        if (one.status < 0) fail_msg("%s: %s", loops[c].golden, one.error);
        for (int k = 0; k < 5; k++) {
            thread_group group;
            process p[THREADS_MAX] = { { 0 } };
            const int n = counts[k];
            if (c != 1 && (k + c) % 3) continue; /* the GAN in all of them */
            thread_group_begin(&group, n);
            for (int i = 0; i < n; i++) {
                begin(&p[i], &loops[c], STEPS);
                p[i].group = thread_group_of(&group, i);
                p[i].lanes = 1 + (i + k) % (n > 4 ? 2 : 4);
                p[i].workers = p[i].lanes > 1 ? 1 + (c + k) % 2 : 1;
            }
            live_together(live, p, sizeof *p, n);
            for (int i = 0; i < n; i++) compare(&one, &p[i], i, n);
            for (int i = 0; i < n; i++) end(&p[i]);
            thread_group_end(&group);
        }
        end(&one);
    }
}

static void loops_on_devices_have_the_bits_of_one(void **unused)
{
    (void)unused;
    for (int c = 0; c < LOOPS; c++) {
        process one = { .type = &standin_runs };
        begin(&one, &loops[c], STEPS);
        live(&one);
        if (one.error[0]) fail_msg("%s: %s", loops[c].golden, one.error);
        for (int n = 2; n <= 3; n++) {
            thread_group group;
            process p[3] = { { 0 } };
            if (c != 1 && (c + n) % 2) continue; /* the GAN in both */
            thread_group_begin(&group, n);
            for (int i = 0; i < n; i++) {
                begin(&p[i], &loops[c], STEPS);
                p[i].group = thread_group_of(&group, i);
                p[i].type = i % 2 ? &standin_stores : &standin_runs;
                p[i].lanes = 1 + (i + n) % DEVICES_MOST;
            }
            live_together(live, p, sizeof *p, n);
            for (int i = 0; i < n; i++) compare(&one, &p[i], i, n);
            for (int i = 0; i < n; i++) end(&p[i]);
            thread_group_end(&group);
        }
        end(&one);
    }
}

/* Gradients that are rounded on their way leave equal weights, and show equal losses. */
static void rounded_gradients_leave_equal_weights(void **unused)
{
    enum { PROCESSES = 3 };
    (void)unused;
    for (int c = 0; c < LOOPS; c++) {
        thread_group group;
        process p[PROCESSES] = { { 0 } };
        thread_group_begin(&group, PROCESSES);
        for (int i = 0; i < PROCESSES; i++) {
            begin(&p[i], &loops[c], STEPS);
            p[i].group = thread_group_of(&group, i);
            p[i].rounds = true;
        }
        live_together(live, p, sizeof *p, PROCESSES);
        for (int i = 0; i < PROCESSES; i++) {
            if (p[i].status < 0) fail_msg("%s: %s", loops[c].golden, p[i].error);
            compare(&p[0], &p[i], i, PROCESSES);
        }
        for (int i = 0; i < PROCESSES; i++) end(&p[i]);
        thread_group_end(&group);
    }
}

/* ---- what goes wrong ------------------------------------------------------------------------- */

enum { TROUBLED = 3 };

/* Only full steps are applied. */
static bool answer(void *context, const keel_applying *now)
{
    const process *p = context;
    return now->rows == BATCH && !(p->wrong == OTHER_ANSWER && p->at == p->from);
}

static keel_status descend(void *context, keel_trace *t)
{
    const process *p = context;
    const loop *l = &p->l;
    keel_scalar loss = -1;
    if (p->wrong == FAILS) return keel_error_set(KEEL_EDATA, "the test ends it");
    keel_trace_mean(t, loop_model(t, l->model[0], true, loop_input(t, "a")), KEEL_UNWEIGHTED,
                    &loss);
    loop_learn(
        t, &(keel_term){ loss, 1 }, 1, l->model[0],
        &(keel_apply){ { "SGD", KEEL_ARGS(KEEL_ARG_FLOAT("momentum", 0.5)) }, answer, context });
    return keel_trace_return_scalar(t, "loss", loss);
}

static void what_differs_between_processes_is_refused_by_all(void **unused)
{
    static const struct {
        int wrong, from;
        keel_status status;
        const char *says;
    } rows[] = {
        { OTHER_ROWS, 2, KEEL_EDATA, "function: run 3 of 12 rows: process" },
        { OTHER_RATE, 2, KEEL_EDATA, "other inputs, weights or learning rates" },
        { OTHER_COUNT, 2, KEEL_EDATA, "or another state of its optimizers" },
        { OTHER_COUNT, 0, KEEL_EDATA, "function: run 1 of 12 rows: process" },
        { OTHER_STATE, 2, KEEL_EDATA, "or another state of its optimizers" },
        { OTHER_STATE, 0, KEEL_EDATA, "function: run 1 of 12 rows: process" },
        { OTHER_STATE, 3, KEEL_EDATA, "function: run 4 of 12 rows: process" }, /* all set one */
        { SET_STATE, 2, KEEL_EDATA, "function: run 3 of 12 rows: process" },
        { OTHER_WEIGHTS, 2, KEEL_EDATA, "all must run the same on the same" },
        { OTHER_WEIGHTS, 0, KEEL_EDATA, "function: run 1 of 12 rows: process" },
        { OTHER_BEGIN, 0, KEEL_EDATA, "function: run 1 of 12 rows: process" },
        { OTHER_ANSWER, 2, KEEL_ECALLBACK, "`when` of an optimizer says something else" },
        { OTHER_TYPE, 2, KEEL_EDATA, "or sends gradients in another type" },
        { FAILS, 2, KEEL_EDATA, "the test ends it" },
        { LEAVES, 2, KEEL_ECALLBACK, "the test leaves" },
        { LEAVES, 3, KEEL_ECALLBACK, "the test leaves" },
    };
    static const loop_case descent = { "descent", loop_create_siamese, { .loss = { { "loss" } } } };
    (void)unused;
    for (size_t r = 0; r < sizeof rows / sizeof *rows; r++) {
        thread_group group;
        process p[TROUBLED] = { { 0 } };
        thread_group_begin(&group, TROUBLED);
        for (int i = 0; i < TROUBLED; i++) {
            p[i].wrong = i == 1 ? rows[r].wrong : NOTHING;
            begin(&p[i], &descent, 4);
            p[i].from = rows[r].from;
            p[i].rounds = p[i].wrong == OTHER_TYPE;
            p[i].group = thread_group_of(&group, i);
            must(keel_function_create(
                &p[i].f[0],
                &(keel_function_options){ KEEL_FUNCTION_OPTIONS, .step = descend, .context = &p[i],
                                          .dtype = p[i].l.dtype, .input = p[i].l.input,
                                          .n_input = p[i].l.n_input }));
        }
        live_together(live, p, sizeof *p, TROUBLED);
        for (int i = 0; i < TROUBLED; i++) {
            if (p[i].status != rows[r].status || !strstr(p[i].error, rows[r].says))
                fail_msg("case %d, process %d: %s: %s", (int)r, i, keel_status_name(p[i].status),
                         p[i].error);
            if (i != 1 && rows[r].wrong >= FAILS)
                assert_non_null(strstr(p[i].error, "process 1 (here)"));
        }
        assert_true(same_weights(&p[0], &p[2]));
        for (int i = 0; i < TROUBLED; i++) end(&p[i]);
        thread_group_end(&group);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_differs_between_processes_is_refused_by_all),
        cmocka_unit_test(loops_have_the_bits_of_one_process),
        cmocka_unit_test(loops_on_devices_have_the_bits_of_one),
        cmocka_unit_test(rounded_gradients_leave_equal_weights),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
