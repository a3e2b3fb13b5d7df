/* See whole_loss.h. A row's record is the numbers of its real values, one value behind the other.
 * Values that are no real numbers are inputs of the function, which each process has for all rows,
 * so they are read where they are, whatever their type. */
#include "train/whole_loss.h"
#include "base/crew.h"
#include "base/hash.h"
#include "base/memory.h"
#include "base/tree.h"
#include "ops/all.h"
#include "ops/args.h"
#include <math.h>
#include <string.h>

/* ---- while a step is traced ------------------------------------------------------------------ */

static keel_status check(const keel_whole_loss *loss)
{
    if (!loss->step) return keel_fail(KEEL_EARG, "a loss of all rows needs a step");
    if (loss->n < 1 || loss->n > KEEL_FIELDS_MAX - KEEL_FACT_COUNT)
        return keel_fail(KEEL_EARG, "a loss of all rows has %d values; it takes 1 to %d", loss->n,
                         KEEL_FIELDS_MAX - KEEL_FACT_COUNT);
    for (int i = 0; i < loss->n; i++) {
        if (!loss->name[i] || !*loss->name[i])
            return keel_fail(KEEL_EARG, "a loss of all rows: input %d has no name", i);
        for (int k = 0; k < i; k++)
            if (!strcmp(loss->name[i], loss->name[k]))
                return keel_fail(KEEL_EARG, "a loss of all rows: two inputs are named '%s'",
                                 loss->name[i]);
    }
    return KEEL_OK;
}

/* What input i is, of value v; real values have their places in a record, one behind the other. */
static keel_status take_input(keel_whole *w, const keel_trace *t, int i, keel_value v)
{
    const keel_graph_value *of = &t->g->value[v];
    keel_whole_input *in = &w->input[i];
    *in = (keel_whole_input){ of->spec, keel_row_count(&of->spec), -1, -1 };
    if (of->spec.shape.rank >= KEEL_RANK_MAX)
        return keel_fail(KEEL_ESHAPE, "a loss of all rows: '%s' has too many dims",
                         w->field[i].path);
    if (keel_dtype_flows(of->spec.dtype)) {
        in->spec.dtype = t->g->real;
        in->first = w->length;
        w->length += in->count;
    } else if (of->node < 0)
        in->field = t->s->field[of->index];
    else
        return keel_fail(KEEL_EUNSUP,
                         "a loss of all rows: '%s' is of %s, and no input of the function",
                         w->field[i].path, keel_dtype_name(of->spec.dtype));
    w->field[i].dtype = in->spec.dtype;
    return KEEL_OK;
}

static keel_status take_values(keel_whole *w, const keel_trace *t)
{
    for (int i = 0; i < w->o.n_input; i++)
        KEEL_TRY(take_input(w, t, i, t->value[w->value[i]].value));
    if (w->length > 0) return KEEL_OK;
    return keel_fail(KEEL_EARG,
                     "a loss of all rows is given no real value, so nothing depends on it");
}

/* The numbers of a row in one dim, of the function's type. */
static keel_status flatten(keel_graph *g, bool stops, keel_value *v)
{
    const keel_reshape_args row = { .shape = { 1, { keel_row_count(keel_graph_spec(g, *v)) } } };
    KEEL_TRY(keel_graph_cast(g, *v, g->real, v));
    keel_value in = *v;
    const keel_node_parts stop = { .op = &keel_op_stop_gradient, .n_in = 1, .in = &in },
                          flat = { .op = &keel_op_reshape, .args = &row, .n_in = 1, .in = &in };
    if (stops) KEEL_TRY(keel_graph_add(g, &stop, v, 1));
    in = *v;
    return keel_graph_add(g, &flat, v, 1);
}

keel_status keel_whole_row(const keel_whole *w, const keel_trace *t, const bool *stops,
                           keel_value *row)
{
    const keel_axis_args axis = { -1 };
    keel_value real[KEEL_FIELDS_MAX] = { -1 };
    int n = 0;
    for (int i = 0; i < w->o.n_input; i++) {
        const keel_value v = t->value[w->value[i]].value;
        if (w->input[i].first < 0) continue;
        real[n] = v;
        KEEL_TRY(flatten(t->g, stops && stops[v], &real[n++]));
    }
    *row = real[0];
    if (n == 1) return KEEL_OK;
    const keel_node_parts join = {
        .op = &keel_op_concatenate, .args = &axis, .n_in = n, .in = real
    };
    return keel_graph_add(t->g, &join, row, 1);
}

static keel_status begin(keel_whole *w, const keel_trace *t, const keel_whole_loss *loss)
{
    const keel_cores core = { .n = 1 };
    const size_t n = (size_t)loss->n;
    w->args = (keel_whole_args){ KEEL_REDUCTION_SUM, w };
    w->field = keel_calloc(n, sizeof *w->field);
    w->input = keel_calloc(n, sizeof *w->input);
    w->value = keel_calloc(n, sizeof *w->value);
    w->made = keel_calloc(KEEL_WHOLE_MADE, sizeof *w->made);
    if (!w->field || !w->input || !w->value || !w->made) return KEEL_ENOMEM;
    memcpy(w->value, loss->value, n * sizeof *w->value);
    w->o = (keel_function_options){
        KEEL_FUNCTION_OPTIONS, .name = "loss",
        .step = loss->step,    .context = loss->context,
        .dtype = t->g->real,   .input = w->field,
        .n_input = loss->n,    .seed = t->options->seed + 1 + (uint64_t)t->n_loss,
    };
    for (int i = 0; i < loss->n; i++)
        if (!(w->field[i].path = keel_strdup(loss->name[i]))) return KEEL_ENOMEM;
    if (t->g->real == KEEL_FLOAT64)
        w->one.f64 = 1;
    else
        w->one.f32 = 1;
    return keel_lanes_parse_on(&w->lanes, "cpu:0", &core);
}

keel_status keel_whole_create(keel_whole **out, keel_trace *t, const keel_whole_loss *loss)
{
    KEEL_TRY(check(loss));
    keel_whole *w = keel_calloc(1, sizeof *w);
    if (!w) return KEEL_ENOMEM;
    keel_status s = begin(w, t, loss);
    if (s >= 0) s = take_values(w, t);
    if (s < 0) {
        keel_whole_destroy(w);
        return s;
    }
    *out = w;
    return KEEL_OK;
}

void keel_whole_destroy(keel_whole *w)
{
    if (!w) return;
    for (int i = 0; i < w->n_made; i++) keel_whole_made_free(&w->made[i], w->o.n_input);
    for (int i = 0; w->field && i < w->o.n_input; i++) keel_free((char *)w->field[i].path);
    keel_crew_destroy(w->crew);
    keel_free(w->field);
    keel_free(w->input);
    keel_free(w->value);
    keel_free(w->made);
    keel_free(w);
}

/* ---- before a step --------------------------------------------------------------------------- */

/* Whether the real numbers of the step tell all whole numbers of an input apart. */
static keel_status check_exact(const keel_whole *w, int input, const keel_batch *b)
{
    const keel_whole_input *in = &w->input[input];
    const bool wide = in->spec.dtype == KEEL_INT64, f64 = w->o.dtype == KEEL_FLOAT64;
    const int64_t most = (int64_t)1 << (f64 ? 53 : 24);
    const void *all = b->field[in->field];
    for (int64_t i = 0; i < b->rows * in->count; i++) {
        const int64_t x = wide ? ((const int64_t *)all)[i] : ((const int32_t *)all)[i];
        if (x <= most && x >= -most) continue;
        return keel_fail(KEEL_EDATA,
                         "a loss of all rows: '%s' is %lld in row %lld, which a step of %s cannot "
                         "tell from its neighbours%s; comparisons of such inputs are exact",
                         w->field[input].path, (long long)x, (long long)(i / in->count),
                         keel_dtype_name(w->o.dtype), f64 ? "" : ": use float64");
    }
    return KEEL_OK;
}

static keel_status begin_step(keel_whole *w, const keel_batch *b)
{
    keel_whole_made *m = &w->made[w->now];
    keel_program *p = m->scored.program;
    for (int i = 0; i < w->o.n_input; i++)
        if (m->rounds[i]) KEEL_TRY(check_exact(w, i, b));
    for (int i = 0; i < p->graph->n_input; i++) {
        const int field = m->scored.field[i];
        if (field >= w->o.n_input)
            p->input[i] = &w->one; /* no other fact is there */
        else
            p->input[i] = m->given[field] ? m->given[field] : b->field[w->input[field].field];
    }
    p->facts = (keel_step_facts){ .seed = w->o.seed, .first_row = b->first_row, .rows = 1 };
    keel_scored_begin(&m->scored, 1, 1);
    keel_parts_begin(m->parts);
    keel_crew_begin(w->crew, m->turn, m->n_phase);
    return KEEL_OK;
}

keel_status keel_wholes_begin(const keel_trace *t, const keel_batch *b)
{
    for (int i = 0; i < t->n_loss; i++)
        if (t->loss[i].whole) KEEL_TRY(begin_step(t->loss[i].whole, b));
    return KEEL_OK;
}

int64_t keel_wholes_bytes(const keel_trace *t)
{
    int64_t bytes = 0;
    for (int i = 0; i < t->n_loss; i++) {
        const keel_whole *w = t->loss[i].whole;
        for (int k = 0; w && k < w->n_made; k++) {
            const keel_whole_made *m = &w->made[k];
            if (!m->scored.program) continue;
            bytes += keel_arenas_bytes(m->scored.program->arenas) + keel_parts_bytes(m->parts);
            bytes += m->rows * w->length * (int64_t)keel_dtype_size(w->o.dtype);
        }
    }
    return bytes;
}

uint64_t keel_wholes_contents(const keel_trace *t)
{
    uint64_t both[2] = { 0 };
    for (int i = 0; i < t->n_loss; i++) {
        const keel_whole *w = t->loss[i].whole;
        if (!w) continue;
        both[1] = w->made[w->now].contents;
        both[0] = keel_fingerprint(both, sizeof both);
    }
    return both[0];
}

/* ---- in a step ------------------------------------------------------------------------------- */

/* Brings the values of rows [first, end) to where the program reads them. */
static void give(const keel_whole *w, const keel_whole_made *m, const double *record, int64_t first,
                 int64_t end)
{
    for (int i = 0; i < w->o.n_input; i++) {
        const keel_whole_input *in = &w->input[i];
        for (int64_t row = first; m->given[i] && row < end; row++) {
            const double *from = record + row * w->length + in->first;
            const int64_t at = row * in->count;
            for (int64_t k = 0; k < in->count; k++)
                if (w->o.dtype == KEEL_FLOAT64)
                    ((double *)m->given[i])[at + k] = from[k];
                else
                    ((float *)m->given[i])[at + k] = (float)from[k];
        }
    }
}

/* Where the gradients of all rows are. */
static void find_gradients(keel_whole_made *m)
{
    const keel_program *p = m->scored.program;
    for (int i = 0; i < p->graph->n_wanted; i++) {
        const int input = p->graph->wanted[i];
        const keel_value v = keel_graph_input_value(p->graph, input);
        if (!p->schedule.has_grad[v]) continue;
        m->grad[m->scored.field[input]] = keel_program_rows(p, &p->grad[v], &m->bound->piece[0]);
    }
}

static void finish(keel_whole_made *m)
{
    keel_score score;
    if (m->scored.program->failure[0].status < 0) return;
    keel_scored_read(&m->scored, m->bound, &score);
    m->loss = score.each[m->trace.loss[m->trace.gives].scored];
    find_gradients(m);
}

/* What the workers of a step share. */
typedef struct computing {
    const keel_whole *w;
    keel_whole_made *m;
    const double *record;
} computing;

/* The rows first, then the program, then what it gives. */
static void run_turn(void *context, int phase, int turn, int place)
{
    const computing *c = context;
    keel_whole_made *m = c->m;
    const int last = m->n_phase - 1;
    if (phase == 0)
        give(c->w, m, c->record, keel_cut_first(m->rows, m->turn[0], turn),
             keel_cut_first(m->rows, m->turn[0], turn + 1));
    if (last == 0)
        keel_parts_run(m->parts, 0, 0, place);
    else if (phase > 0 && phase < last)
        keel_parts_run(m->parts, phase - 1, turn, place);
    if (phase == last) finish(m);
}

/* All workers that come share what is to be done. */
static void share(keel_whole *w, const double *record)
{
    keel_crew_work(w->crew, run_turn, &(computing){ w, &w->made[w->now], record });
}

/* KEEL_OK: the result of the step is there until the next one begins. */
static keel_status computed(keel_whole *w, const double *record)
{
    share(w, record);
    const keel_failure *f = &w->made[w->now].scored.program->failure[0];
    return f->status < 0 ? keel_failure_raise(f) : KEEL_OK;
}

static int64_t record_of(const void *args, const keel_spec *prediction)
{
    (void)args;
    return keel_row_count(prediction);
}

static void leave(const keel_loss_call *c, int real, double *to)
{
    const int64_t n = keel_row_count(c->prediction);
    for (int64_t k = 0; k < n; k++) to[k] = keel_real_at(c->y_pred, real, k);
}

static void set_gradient(const keel_whole *w, const keel_loss_call *c, int real, int64_t i)
{
    const keel_whole_made *m = &w->made[w->now];
    for (int k = 0; k < w->o.n_input; k++) {
        const keel_whole_input *in = &w->input[k];
        if (in->first < 0) continue;
        for (int64_t e = 0; e < in->count; e++) {
            const int64_t from = (c->row + i) * in->count + e, to = i * w->length + in->first + e;
            const double g = m->grad[k] ? c->seed * keel_real_at(m->grad[k], real, from) : 0;
            if (real)
                ((double *)c->grad)[to] = g;
            else
                ((float *)c->grad)[to] = (float)g;
        }
    }
}

/* The loss is one number, which the first row of the step has: so it is added to nothing else, and
 * is the same number for any devices. */
static void run(const keel_loss_call *c, int real, const keel_loss_all *all)
{
    keel_whole *w = ((const keel_whole_args *)c->args)->whole;
    const keel_status s = computed(w, all->record);
    if (s < 0) keel_call_failed(NULL, s);
    for (int64_t i = 0; i < c->rows; i++) {
        const bool first = c->row + i == 0;
        double *sum = c->sum + 3 * i;
        sum[0] = first && s >= 0 ? w->made[w->now].loss : 0;
        sum[1] = sum[2] = first;
        if (c->grad) set_gradient(w, c, real, i);
    }
}

static keel_status check_row(const void *args, const keel_spec *prediction, const keel_spec *target,
                             int64_t *elements)
{
    (void)args;
    (void)prediction;
    (void)target;
    *elements = 1;
    return KEEL_OK;
}

static const keel_loss_whole whole = {
    .record = record_of, .gathers = true, .leave = leave, .run = run
};

/* The target, one number, is not read. */
const keel_loss keel_loss_of_whole = {
    .type = { .name = "loss of all rows", .args_size = sizeof(keel_whole_args) },
    .reduction_offset = offsetof(keel_whole_args, reduction),
    .target = KEEL_TARGET_LABEL,
    .check = check_row,
    .whole = &whole,
};

/* ---- before the first step of so many rows --------------------------------------------------- */

static bool has_gradient(const keel_trace *t, keel_scalar loss)
{
    for (int k = 0; t->backward && k < t->n_gradients; k++)
        for (int i = 0; i < t->gradients[k].n_term; i++)
            if (t->gradients[k].term[i].scalar == loss) return true;
    return false;
}

/* The workers are the same in each step of a function. */
static keel_status meet_workers(keel_whole *w, int workers)
{
    if (w->crew) return KEEL_OK;
    w->workers = workers < KEEL_PARTS_MOST ? workers : KEEL_PARTS_MOST;
    return keel_crew_create(&w->crew, w->workers, keel_team_spins(workers));
}

/* Workers without rows come to no call of the loss. */
static void help(const void *trace, int node, const double *merged)
{
    const keel_trace *t = trace;
    for (int i = 0; i < t->n_loss; i++) {
        keel_whole *w = t->loss[i].whole;
        if (w && w->node == node) share(w, merged + 1 + KEEL_LOSS_TERMS);
    }
}

keel_status keel_wholes_prepare(const keel_trace *t, const keel_scored *s, int64_t rows)
{
    for (int i = 0; i < t->n_loss; i++) {
        keel_whole *w = t->loss[i].whole;
        if (!w) continue;
        KEEL_TRY(meet_workers(w, s->program->lanes->n_worker));
        w->node = s->loss[t->loss[i].scored].node;
        s->program->help = help;
        s->program->help_for = t;
        KEEL_TRY(keel_whole_make(w, rows, has_gradient(t, i)));
    }
    return KEEL_OK;
}
