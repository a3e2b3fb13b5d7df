/* Functions: a step of one's own, run on all devices. See keel/function.h; tracing is in trace.c,
 * compiling in function_plan.c. A run is a step of train/step.c, as one of fit is. */
#include "train/function.h"
#include "base/memory.h"
#include "base/plural.h"
#include "model/lend.h"
#include "train/run_memory.h"
#include "train/together.h"
#include "train/whole_loss.h"
#include <inttypes.h>
#include <math.h>
#include <string.h>

static keel_status check_options(const keel_function_options *o)
{
    if (o->size == 0 || o->size > sizeof *o)
        return keel_fail(KEEL_EARG, "function options: initialize them with KEEL_FUNCTION_OPTIONS");
    if (!o->step) return keel_fail(KEEL_EARG, "a function needs a step");
    if (!keel_dtype_is_real(o->dtype))
        return keel_fail(KEEL_EUNSUP, "a function computes in float32 or float64, not in %s",
                         keel_dtype_name(o->dtype));
    if (o->n_input < 1 || o->n_input > KEEL_FIELDS_MAX - KEEL_FACT_COUNT)
        return keel_fail(KEEL_EARG, "a function of %d inputs; it takes 1 to %d", o->n_input,
                         KEEL_FIELDS_MAX - KEEL_FACT_COUNT);
    if (o->programs < 0 || o->programs == 1 || o->programs > KEEL_PROGRAMS_MAX)
        return keel_fail(KEEL_EARG, "programs is %d; it must be 2 to %d, or 0 for %d", o->programs,
                         KEEL_PROGRAMS_MAX, KEEL_PROGRAMS_DEFAULT);
    for (int i = 0; i < o->n_input; i++) {
        const keel_data_field *f = &o->input[i];
        if (!f->path || !*f->path) return keel_fail(KEEL_EARG, "input %d has no name", i);
        for (int k = 0; k < i; k++)
            if (!strcmp(f->path, o->input[k].path))
                return keel_fail(KEEL_EARG, "two inputs are named '%s'", f->path);
        if ((unsigned)f->dtype >= KEEL_STRING)
            return keel_fail(KEEL_EUNSUP, "input '%s' is of %s, which a step does not take",
                             f->path, keel_dtype_name(f->dtype));
        if (keel_dtype_is_real(f->dtype) && f->dtype != o->dtype)
            return keel_fail(KEEL_EARG, "input '%s' is of %s, the function of %s", f->path,
                             keel_dtype_name(f->dtype), keel_dtype_name(o->dtype));
        if (f->shape.rank < 0 || f->shape.rank >= KEEL_RANK_MAX)
            return keel_fail(KEEL_EARG, "input '%s' has %d dims; at most %d", f->path,
                             f->shape.rank, KEEL_RANK_MAX - 1);
        for (int k = 0; k < f->shape.rank; k++)
            if (f->shape.dim[k] < 1 && f->shape.dim[k] != KEEL_DIM_OPEN)
                return keel_fail(KEEL_EARG, "input '%s': dim %d is %" PRId64, f->path, k,
                                 f->shape.dim[k]);
        if (f->role == KEEL_ROLE_WEIGHT &&
            (f->dtype != o->dtype || (f->shape.rank && f->shape.dim[0] != 1) || f->shape.rank > 1))
            return keel_fail(KEEL_EARG, "input '%s': weights are one %s for each row", f->path,
                             keel_dtype_name(o->dtype));
    }
    return KEEL_OK;
}

keel_status keel_function_create(keel_function **out, const keel_function_options *options)
{
    keel_function_options o = { 0 };
    if (options->size <= sizeof o) memcpy(&o, options, options->size);
    o.size = options->size;
    KEEL_TRY(check_options(&o));
    keel_function *f = keel_calloc(1, sizeof *f);
    if (!f) return KEEL_ENOMEM;
    f->o = o;
    f->at = -1;
    if (!f->o.programs) f->o.programs = KEEL_PROGRAMS_DEFAULT;
    f->name = keel_strdup(o.name ? o.name : "function");
    f->input = keel_calloc((size_t)o.n_input, sizeof *f->input);
    f->planned = keel_calloc((size_t)f->o.programs + 1, sizeof *f->planned);
    if (!f->name || !f->input || !f->planned) goto out;
    for (int i = 0; i < o.n_input; i++) {
        f->input[i] = o.input[i];
        f->input[i].target = NULL;
        if (!(f->input[i].path = keel_strdup(o.input[i].path))) goto out;
    }
    f->o.name = f->name;
    f->o.input = f->input;
    *out = f;
    return KEEL_OK;
out:
    keel_function_destroy(f);
    return KEEL_ENOMEM;
}

void keel_function_destroy(keel_function *f)
{
    if (!f) return;
    keel_function_forget(f);
    for (int i = 0; f->input && i < f->o.n_input; i++) keel_free((char *)f->input[i].path);
    for (int i = 0; i < KEEL_FACT_COUNT; i++) keel_free(f->fact[i]);
    keel_free(f->planned);
    keel_free(f->input);
    keel_free(f->name);
    keel_free(f);
}

/* ---- a run ----------------------------------------------------------------------------------- */

static keel_status check_input(const keel_data_field *f, const keel_tensor *given, int64_t rows)
{
    char has[96], wants[96];
    bool good = given->shape.rank == f->shape.rank + 1;
    if (given->dtype != f->dtype)
        return keel_fail(KEEL_EARG, "input '%s' is of %s, and is given %s", f->path,
                         keel_dtype_name(f->dtype), keel_dtype_name(given->dtype));
    for (int k = 0; good && k < f->shape.rank; k++)
        good = given->shape.dim[k + 1] > 0 &&
               (f->shape.dim[k] == KEEL_DIM_OPEN || f->shape.dim[k] == given->shape.dim[k + 1]);
    if (!good) {
        keel_shape_text(has, &given->shape);
        keel_shape_text(wants, &f->shape);
        return keel_fail(KEEL_ESHAPE, "input '%s' has rows of %s, and is given %s", f->path, wants,
                         has);
    }
    if (given->shape.dim[0] != rows)
        return keel_fail(KEEL_ESHAPE, "input '%s' has %" PRId64 " row%s, the first input %" PRId64,
                         f->path, given->shape.dim[0], keel_s(given->shape.dim[0]), rows);
    return given->data ? KEEL_OK : keel_fail(KEEL_EARG, "input '%s' has no data", f->path);
}

static double number_at(keel_dtype dtype, const void *x, int64_t i)
{
    return dtype == KEEL_FLOAT64 ? ((const double *)x)[i] : (double)((const float *)x)[i];
}

/* Checks all inputs; *weights: the sum of the first input of weights. */
static keel_status check_inputs(const keel_function *f, const keel_tensor *inputs, int n,
                                int64_t *rows, double *weights)
{
    bool summed = false;
    if (n != f->o.n_input)
        return keel_fail(KEEL_EARG, "it has %d input%s, and is given %d", f->o.n_input,
                         keel_s(f->o.n_input), n);
    *rows = inputs[0].shape.rank > 0 ? inputs[0].shape.dim[0] : 0;
    if (*rows < 1) return keel_fail(KEEL_EDATA, "a step of no rows");
    if (*rows > INT32_MAX) return keel_fail(KEEL_EDATA, "a step of %" PRId64 " rows", *rows);
    *weights = (double)*rows;
    for (int i = 0; i < n; i++) {
        KEEL_TRY(check_input(&f->input[i], &inputs[i], *rows));
        if (f->input[i].role != KEEL_ROLE_WEIGHT) continue;
        double sum = 0;
        for (int64_t k = 0; k < *rows; k++) {
            const double w = number_at(f->o.dtype, inputs[i].data, k);
            if (!(w >= 0) || !isfinite(w))
                return keel_fail(KEEL_EDATA, "input '%s': row %" PRId64 " has the weight %g",
                                 f->input[i].path, k, w);
            sum += w;
        }
        if (!summed) *weights = sum;
        summed = true;
    }
    return KEEL_OK;
}

static void set(keel_function *f, int fact, int64_t row, double value)
{
    if (f->o.dtype == KEEL_FLOAT64)
        ((double *)f->fact[fact])[row] = value;
    else
        ((float *)f->fact[fact])[row] = (float)value;
}

/* What a step knows of itself, for each row. */
static keel_status fill_facts(keel_function *f, const keel_strategy *s, int64_t rows,
                              double weights)
{
    if (rows > f->fact_rows) {
        for (int i = 0; i < KEEL_FACT_COUNT; i++) {
            void *p = keel_aligned_calloc((size_t)rows, keel_dtype_size(f->o.dtype));
            if (!p) return KEEL_ENOMEM;
            keel_free(f->fact[i]);
            f->fact[i] = p;
            f->fact_rows = 0;
        }
        f->fact_rows = rows;
    }
    int64_t row, end; /* those of this process: the others have theirs */
    keel_lanes_rows(&s->lanes, rows, s->lanes.process, &row, &end);
    for (int device = 0; device < s->lanes.n_lane; device++) {
        const int64_t n = keel_strategy_rows(s, device, rows);
        for (int64_t i = 0; i < n; i++) {
            set(f, KEEL_FACT_ROWS, row + i, (double)rows);
            set(f, KEEL_FACT_WEIGHTS, row + i, weights);
            set(f, KEEL_FACT_ROW, row + i, (double)(row + i));
            set(f, KEEL_FACT_DEVICE, row + i, s->lanes.first_lane + device);
            set(f, KEEL_FACT_DEVICE_FIRST, row + i, (double)row);
            set(f, KEEL_FACT_DEVICE_ROWS, row + i, (double)n);
            set(f, KEEL_FACT_ONE, row + i, 1);
        }
        row += n;
    }
    return KEEL_OK;
}

bool keel_function_take_weights(keel_function *f, bool all)
{
    bool any = false;
    for (int i = 0; i < f->models.n; i++) {
        keel_called *c = &f->models.model[i];
        const bool old = all || c->seen != c->model->changes;
        for (int k = 0; k < c->model->n_weight; k++)
            keel_model_lend(c->model, k, keel_store_data(f->trainer->store, c->first + k), old);
        c->seen = c->model->changes;
        any = any || old;
    }
    return any;
}

/* Gives models the weights that the step has changed, those it trains, and states, where they are
 * not in one place. */
static void keep_weights(keel_function *f)
{
    const keel_trainer *t = f->trainer;
    const size_t element = keel_dtype_size(t->store->real);
    for (int i = 0; i < f->models.n; i++) {
        keel_called *c = &f->models.model[i];
        bool any = false;
        for (int k = 0; k < c->model->n_weight; k++) {
            const keel_variable v = c->first + k;
            void *stored = keel_store_data(t->store, v), *data = c->model->weight[k].data;
            if (!t->trains[v] && !c->model->weight[k].state) continue;
            if (data != stored) memcpy(data, stored, (size_t)t->store->weight[v].count * element);
            any = true;
        }
        if (any) c->seen = ++c->model->changes;
    }
}

static keel_status check_models(const keel_function *f)
{
    for (int i = 0; i < f->models.n; i++) KEEL_TRY(keel_model_idle(f->model[i], "running a step"));
    for (int i = 0; i < f->models.n; i++)
        if (f->model[i]->dtype != f->o.dtype)
            return keel_fail(KEEL_EARG, "the model '%s' has become %s since it was traced",
                             f->model[i]->name, keel_dtype_name(f->model[i]->dtype));
    return KEEL_OK;
}

keel_status keel_function_load_weights(keel_function *f)
{
    const keel_trainer *t = f->trainer;
    KEEL_TRY(check_models(f));
    if (!keel_function_take_weights(f, false)) return KEEL_OK;
    keel_store_refresh(t->store, 0, 1, NULL);
    for (int k = 0; k < t->n_mover; k++) keel_updater_begin_slots(&t->mover[k].update);
    f->anew = true;
    return KEEL_OK;
}

/* Before the first step of a program, whose arenas may be larger than those of programs before. */
static keel_status check_memory(keel_function *f, int64_t rows)
{
    const keel_bound *ignored;
    KEEL_TRY(keel_program_bind(keel_function_scored(f)->program, rows, &ignored));
    KEEL_TRY(keel_program_ready(keel_function_scored(f)->program));
    KEEL_TRY(keel_wholes_prepare(&f->planned[f->at].trace, keel_function_scored(f), rows));
    const int64_t n =
        keel_arenas_bytes(f->trainer->arenas) + keel_wholes_bytes(&f->planned[f->at].trace);
    if (n <= f->arenas) return KEEL_OK;
    KEEL_TRY(
        keel_run_memory_check(&(keel_run_memory){ .what = "function", .steps = n - f->arenas }));
    f->arenas = n;
    return KEEL_OK;
}

static keel_status step(keel_function *f, const keel_batch *b)
{
    keel_tally tally = { 0 };
    keel_trainer *t = f->trainer;
    if (f->backward) return keel_train_step(t, b, f->o.seed, &tally);
    KEEL_TRY(keel_forward_step(t, b, f->o.seed));
    keel_program_commit(t->test.program, t->bound, 0);
    return KEEL_OK;
}

/* All that comes before the first step of such inputs. */
static keel_status prepare(keel_function *f, keel_strategy *s, const keel_tensor *inputs, int n,
                           int64_t *rows)
{
    double weights = 0;
    if (f->trainer && f->trainer->strategy != s)
        return keel_fail(KEEL_EARG, "it was compiled for other devices: use the strategy of its "
                                    "first run, or another function");
    KEEL_TRY(check_inputs(f, inputs, n, rows, &weights));
    KEEL_TRY(check_models(f));
    f->ran = false;
    f->anew = f->anew || !f->trainer;
    KEEL_TRY(fill_facts(f, s, *rows, weights));
    KEEL_TRY(keel_function_plan(f, s, inputs, *rows));
    return check_memory(f, *rows);
}

static keel_status run(keel_function *f, keel_strategy *s, const keel_tensor *inputs, int n)
{
    keel_batch b = { .n_field = n + KEEL_FACT_COUNT, .first_row = f->first_row, .step = f->step };
    KEEL_TRY(prepare(f, s, inputs, n, &b.rows));
    KEEL_TRY(keel_function_load_weights(f));
    if (s->comm) b.contents = keel_function_contents(f, inputs, n);
    for (int i = 0; i < n; i++) b.field[i] = inputs[i].data;
    for (int i = 0; i < KEEL_FACT_COUNT; i++) b.field[n + i] = f->fact[i];
    KEEL_TRY(keel_wholes_begin(&f->planned[f->at].trace, &b));
    KEEL_TRY(step(f, &b));
    keel_scored_read(keel_function_scored(f), f->trainer->bound, &f->score);
    keep_weights(f);
    f->first_row += (uint64_t)b.rows;
    f->step++;
    f->ran = true;
    f->anew = false;
    return KEEL_OK;
}

static keel_status end(keel_function *f, keel_strategy *s, keel_status st)
{
    st = keel_strategy_leave(s, st);
    keel_team_leave(s->team);
    return st < 0 && st != KEEL_ENOMEM ? keel_fail_within(st, "%s", f->name) : st;
}

keel_status keel_strategy_prepare(keel_strategy *s, keel_function *f, const keel_tensor *inputs,
                                  int n)
{
    int64_t rows = 0;
    keel_team_enter(s->team);
    return end(f, s, prepare(f, s, inputs, n, &rows));
}

keel_status keel_strategy_run(keel_strategy *s, keel_function *f, const keel_tensor *inputs, int n)
{
    keel_team_enter(s->team);
    return end(f, s, run(f, s, inputs, n));
}

int64_t keel_function_compiled(const keel_function *f)
{
    return f->made;
}
