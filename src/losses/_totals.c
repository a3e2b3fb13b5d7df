/* See totals.h. A step is a list: its name, and the steps that it computes from, by their numbers.
 *
 *   ["term", first, count]   totals of the terms from `first` on
 *   ["number", x]            ["rows"]: the number of rows of the step
 *   ["sum", i]               all numbers of step i, added up
 *   ["add", i, j], ...       number by number; one number goes with all of the other step
 */
#include "losses/totals.h"
#include <math.h>
#include <string.h>

enum { STEPS_MAX = 256, NUMBERS_MAX = 2048 }; /* they are kept on the stack */

typedef struct function {
    const char *name;
    int operands;
    double (*of)(double a, double b);
    void (*slope)(double a, double b, double *da, double *db);
} function;

/* name, operands, value, and its derivatives by a and b */
#define STEP_FUNCTION(name, value, by_a, by_b)                                                     \
    static double name(double a, double b)                                                         \
    {                                                                                              \
        (void)a, (void)b;                                                                          \
        return value;                                                                              \
    }                                                                                              \
    static void name##_slope(double a, double b, double *da, double *db)                           \
    {                                                                                              \
        (void)a, (void)b;                                                                          \
        *da = by_a;                                                                                \
        *db = by_b;                                                                                \
    }
STEP_FUNCTION(add, a + b, 1, 1)
STEP_FUNCTION(subtract, a - b, 1, -1)
STEP_FUNCTION(multiply, a *b, b, a)
STEP_FUNCTION(divide, a / b, 1 / b, -a / (b * b))
STEP_FUNCTION(divide_no_nan, b != 0 ? a / b : 0, b != 0 ? 1 / b : 0, b != 0 ? -a / (b * b) : 0)
STEP_FUNCTION(power, pow(a, b), b *pow(a, b - 1), a > 0 ? pow(a, b) * log(a) : 0)
STEP_FUNCTION(maximum, fmax(a, b), a >= b, a < b)
STEP_FUNCTION(minimum, fmin(a, b), a <= b, a > b)
STEP_FUNCTION(negative, -a, -1, 0)
STEP_FUNCTION(absolute, fabs(a), (a > 0) - (a < 0), 0)
STEP_FUNCTION(square, a *a, 2 * a, 0)
STEP_FUNCTION(square_root, sqrt(a), 0.5 / sqrt(a), 0)
STEP_FUNCTION(exponential, exp(a), exp(a), 0)
STEP_FUNCTION(logarithm, log(a), 1 / a, 0)
STEP_FUNCTION(logarithm_of_more, log1p(a), 1 / (1 + a), 0)
STEP_FUNCTION(same, a, 0, 0)

static const function functions[] = {
    { "add", 2, add, add_slope },
    { "subtract", 2, subtract, subtract_slope },
    { "multiply", 2, multiply, multiply_slope },
    { "divide", 2, divide, divide_slope },
    { "divide_no_nan", 2, divide_no_nan, divide_no_nan_slope },
    { "power", 2, power, power_slope },
    { "maximum", 2, maximum, maximum_slope },
    { "minimum", 2, minimum, minimum_slope },
    { "negative", 1, negative, negative_slope },
    { "absolute", 1, absolute, absolute_slope },
    { "square", 1, square, square_slope },
    { "sqrt", 1, square_root, square_root_slope },
    { "exp", 1, exponential, exponential_slope },
    { "log", 1, logarithm, logarithm_slope },
    { "log1p", 1, logarithm_of_more, logarithm_of_more_slope },
    { "stop_gradient", 1, same, same_slope },
};

enum { TERM, NUMBER, ROWS, SUM, FUNCTION };

typedef struct step {
    int kind;
    const function *f;
    int64_t operand[2]; /* steps; of TERM {first, count} */
    double number;
    int64_t at, count; /* its numbers on the tape */
} step;

typedef struct tape {
    int n;
    step step[STEPS_MAX];
    double value[NUMBERS_MAX], slope[NUMBERS_MAX];
} tape;

/* The whole number at place i of a step's list, below `end`; -1: there is none. */
static int64_t index_at(const json_t *list, size_t i, int64_t end)
{
    const json_t *v = json_array_get(list, i);
    const json_int_t k = json_is_integer(v) ? json_integer_value(v) : -1;
    return k >= 0 && k < end ? k : -1;
}

static bool read_function(const json_t *list, const tape *t, step *s)
{
    const char *name = json_string_value(json_array_get(list, 0));
    for (size_t i = 0; i < sizeof functions / sizeof *functions && !s->f; i++)
        if (name && !strcmp(name, functions[i].name)) s->f = &functions[i];
    if (!s->f || json_array_size(list) != 1 + (size_t)s->f->operands) return false;
    s->kind = FUNCTION;
    s->count = 1;
    for (int i = 0; i < s->f->operands; i++) {
        if ((s->operand[i] = index_at(list, 1 + (size_t)i, t->n)) < 0) return false;
        const int64_t count = t->step[s->operand[i]].count;
        if (count != 1 && s->count != 1 && count != s->count) return false;
        if (count != 1) s->count = count;
    }
    return true;
}

static bool read_step(const json_t *list, const tape *t, int64_t terms, step *s)
{
    const char *name = json_string_value(json_array_get(list, 0));
    const json_t *number = json_array_get(list, 1);
    *s = (step){ .count = 1 };
    if (!name) return false;
    if (!strcmp(name, "term")) {
        s->kind = TERM;
        s->operand[0] = index_at(list, 1, terms);
        s->count = index_at(list, 2, terms + 1);
        return s->operand[0] >= 0 && s->count > 0 && s->operand[0] <= terms - s->count;
    }
    if (!strcmp(name, "sum")) {
        s->kind = SUM;
        return (s->operand[0] = index_at(list, 1, t->n)) >= 0;
    }
    if (!strcmp(name, "number")) {
        s->kind = NUMBER;
        s->number = json_number_value(number);
        return json_is_number(number);
    }
    s->kind = ROWS;
    return !strcmp(name, "rows") || read_function(list, t, s);
}

static keel_status lay_out(const json_t *total, int64_t terms, tape *t)
{
    const size_t n = json_array_size(total);
    int64_t at = 0;
    t->n = 0;
    if (n == 0 || n > STEPS_MAX)
        return keel_fail(KEEL_EARG, "total: %zu steps; there may be 1 to %d", n, STEPS_MAX);
    for (size_t i = 0; i < n; i++) {
        step *s = &t->step[i];
        if (!read_step(json_array_get(total, i), t, terms, s))
            return keel_fail(KEEL_EARG, "total: step %zu is none that there is", i);
        s->at = at;
        if ((at += s->count) > NUMBERS_MAX)
            return keel_fail(KEEL_EUNSUP, "total: more than %d numbers", NUMBERS_MAX);
        t->n++;
    }
    if (t->step[n - 1].count != 1) return keel_fail(KEEL_EARG, "total: its end is no number");
    return KEEL_OK;
}

/* Where number k of an operand is on the tape. */
static int64_t place(const tape *t, const step *s, int operand, int64_t k)
{
    const step *of = &t->step[s->operand[operand]];
    return of->at + (of->count == 1 ? 0 : k);
}

static void compute(tape *t, const step *s, const double *totals, int64_t rows)
{
    double *y = t->value + s->at;
    if (s->kind == TERM) memcpy(y, totals + s->operand[0], (size_t)s->count * sizeof *y);
    if (s->kind == NUMBER) *y = s->number;
    if (s->kind == ROWS) *y = (double)rows;
    if (s->kind == SUM) {
        const step *of = &t->step[s->operand[0]];
        *y = 0;
        for (int64_t k = 0; k < of->count; k++) *y += t->value[of->at + k];
    }
    for (int64_t k = 0; s->kind == FUNCTION && k < s->count; k++)
        y[k] = s->f->of(t->value[place(t, s, 0, k)],
                        s->f->operands > 1 ? t->value[place(t, s, 1, k)] : 0);
}

static void go_back(tape *t, const step *s, double *slope)
{
    const double *dy = t->slope + s->at;
    for (int64_t k = 0; s->kind == TERM && k < s->count; k++) slope[s->operand[0] + k] += dy[k];
    for (int64_t k = 0; s->kind == SUM && k < t->step[s->operand[0]].count; k++)
        t->slope[t->step[s->operand[0]].at + k] += dy[0];
    for (int64_t k = 0; s->kind == FUNCTION && k < s->count; k++) {
        const bool two = s->f->operands > 1;
        const int64_t a = place(t, s, 0, k), b = two ? place(t, s, 1, k) : 0;
        double da, db;
        s->f->slope(t->value[a], two ? t->value[b] : 0, &da, &db);
        if (dy[k] == 0) continue; /* where it does not count, a slope may be infinite */
        t->slope[a] += dy[k] * da;
        if (two) t->slope[b] += dy[k] * db;
    }
}

keel_status keel_totals_of(const json_t *total, const double *totals, int64_t n, int64_t rows,
                           double *loss, double *slope)
{
    tape t;
    KEEL_TRY(lay_out(total, n, &t));
    for (int i = 0; i < t.n; i++) compute(&t, &t.step[i], totals, rows);
    *loss = t.value[t.step[t.n - 1].at];
    if (!slope) return KEEL_OK;
    memset(slope, 0, (size_t)n * sizeof *slope);
    memset(t.slope, 0, sizeof t.slope);
    t.slope[t.step[t.n - 1].at] = 1;
    for (int i = t.n - 1; i >= 0; i--) go_back(&t, &t.step[i], slope);
    return KEEL_OK;
}

/* ---- the loss -------------------------------------------------------------------------------- */

static int64_t record(const void *args, const keel_spec *prediction)
{
    (void)args;
    return prediction->shape.dim[0];
}

static keel_status check(const void *args, const keel_spec *prediction, const keel_spec *target,
                         int64_t *elements)
{
    const keel_totals_args *a = args;
    tape t;
    (void)target;
    if (prediction->shape.rank != 1 || prediction->shape.dim[0] > NUMBERS_MAX)
        return keel_fail(KEEL_EUNSUP, "a row has 1 to %d terms, in one dim", NUMBERS_MAX);
    *elements = 1;
    return lay_out(a->total, prediction->shape.dim[0], &t);
}

static void leave(const keel_loss_call *c, int real, double *to)
{
    for (int64_t k = 0; k < c->prediction->shape.dim[0]; k++)
        to[k] = keel_real_at(c->y_pred, real, k);
}

/* One number counts as the loss of each row, with its weight, as in Keras; added up over the batch
 * it counts once, if rows have no weights. */
static void run(const keel_loss_call *c, int real, const keel_loss_all *all)
{
    const keel_totals_args *a = c->args;
    const int64_t n = c->prediction->shape.dim[0];
    const int reduction = a->terms.reduction;
    const bool sums = reduction == KEEL_REDUCTION_SUM || reduction == KEEL_REDUCTION_NONE;
    const bool once = sums && !c->weight;
    double loss = 0, slope[NUMBERS_MAX];
    (void)keel_totals_of(a->total, all->record, n, all->rows, &loss, slope); /* it was checked */
    const double factor = c->seed * (once ? 1 : all->weights);
    for (int64_t i = 0; i < c->rows; i++) {
        const double w = keel_element_weight(c, real, 1, i, 0);
        double *sum = c->sum + 3 * i;
        sum[0] = once ? loss / (double)all->rows : w * loss;
        sum[1] = once ? 1 / (double)all->rows : 1;
        sum[2] = w;
        for (int64_t k = 0; c->grad && k < n; k++)
            if (real)
                ((double *)c->grad)[i * n + k] = factor * slope[k];
            else
                ((float *)c->grad)[i * n + k] = (float)(factor * slope[k]);
    }
}

static const keel_loss_whole whole = { .record = record, .leave = leave, .run = run };

static const keel_field fields[] = {
    KEEL_LOSS_FIELDS(keel_values_args),
    KEEL_VALUES_PROGRAM,
    { .key = "total",
      .kind = KEEL_FIELD_LIST,
      .offset = offsetof(keel_totals_args, total),
      .help = "steps from the totals of the terms to the loss" },
    { 0 },
};

const keel_loss keel_loss_totals = {
    .type = { .name = KEEL_TOTALS,
              .module = "keel",
              .help = "a number of totals over the rows",
              .args_size = sizeof(keel_totals_args),
              .fields = fields },
    .reduction_offset = offsetof(keel_totals_args, terms.reduction),
    .check = check,
    .whole = &whole,
};
