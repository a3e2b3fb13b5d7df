/* What a run gives back: scalars, and values of rows, which lie where the workers left them. */
#include "base/hash.h"
#include "base/memory.h"
#include "train/function.h"
#include "train/together.h"
#include <math.h>
#include <string.h>

static keel_status find(const keel_function *f, const char *name, bool scalar,
                        const keel_traced_return **out)
{
    if (!f->ran)
        return keel_fail(KEEL_EARG,
                         "%s: there is no result '%s': its last run failed, or there "
                         "was none",
                         f->name, name);
    const keel_trace *t = &f->planned[f->at].trace;
    for (int i = 0; i < t->n_return; i++) {
        if (strcmp(t->ret[i].name, name)) continue;
        if ((t->ret[i].scalar >= 0) != scalar)
            return keel_fail(KEEL_EARG, "%s: the result '%s' is %s", f->name, name,
                             scalar ? "a value of rows: reduce or gather it"
                                    : "a scalar: use keel_function_scalar");
        *out = &t->ret[i];
        return KEEL_OK;
    }
    return keel_fail(KEEL_EARG, "%s: there is no result '%s'", f->name, name);
}

keel_status keel_function_scalar(const keel_function *f, const char *name, double *out)
{
    const keel_traced_return *r = NULL;
    KEEL_TRY(find(f, name, true, &r));
    *out = f->score.each[f->planned[f->at].trace.loss[r->scalar].scored];
    return KEEL_OK;
}

static const keel_spec *spec_of(const keel_function *f, const keel_traced_return *r)
{
    const keel_program *p = keel_function_scored(f)->program;
    return keel_graph_spec(p->graph, p->output[r->output]);
}

static double number_at(keel_dtype dtype, const void *x, int64_t i)
{
    return dtype == KEEL_FLOAT64 ? ((const double *)x)[i] : (double)((const float *)x)[i];
}

/* Rows of one process, in their places. */
static void copy_rows(const keel_function *f, const keel_traced_return *r, void *to, size_t bytes)
{
    const keel_bound *b = f->trainer->bound;
    for (int i = 0; i < b->n_busy; i++)
        memcpy((char *)to + (size_t)b->piece[i].row * bytes,
               keel_program_output(keel_function_scored(f)->program, r->output, &b->piece[i]),
               (size_t)b->piece[i].rows * bytes);
}

/* All rows of all processes at `to`. failed: this process has no room for them. */
static keel_status collect(const keel_function *f, const keel_traced_return *r, keel_status failed,
                           void *to, size_t bytes)
{
    keel_strategy *s = f->trainer->strategy;
    KEEL_TRY(keel_together_same(s, failed, keel_fingerprint(r->name, strlen(r->name)) + bytes));
    copy_rows(f, r, to, bytes);
    return keel_together_rows(s, f->trainer->bound->rows, to, (int64_t)bytes);
}

static double join(keel_rows_op how, double a, double b)
{
    if (how == KEEL_ROWS_MIN) return b < a || isnan(b) ? b : a;
    if (how == KEEL_ROWS_MAX) return b > a || isnan(b) ? b : a;
    return a + b;
}

typedef struct reducing {
    keel_rows_op how;
    keel_dtype dtype;
    int64_t n; /* numbers of a row */
    double *sum;
    bool begun;
} reducing;

static void join_rows(reducing *x, const void *rows, int64_t n_row)
{
    for (int64_t row = 0; row < n_row; row++) {
        for (int64_t k = 0; k < x->n; k++) {
            const double one = number_at(x->dtype, rows, row * x->n + k);
            x->sum[k] = x->begun ? join(x->how, x->sum[k], one) : one;
        }
        x->begun = true;
    }
}

/* Row after row, so rows of other processes must come first. */
static keel_status join_all(const keel_function *f, const keel_traced_return *r, keel_status mine,
                            reducing *x)
{
    const keel_bound *b = f->trainer->bound;
    if (!f->trainer->strategy->comm) {
        if (mine < 0) return mine;
        for (int i = 0; i < b->n_busy; i++)
            join_rows(
                x, keel_program_output(keel_function_scored(f)->program, r->output, &b->piece[i]),
                b->piece[i].rows);
        return KEEL_OK;
    }
    const size_t bytes = (size_t)x->n * keel_dtype_size(x->dtype);
    void *all = keel_calloc((size_t)b->rows, bytes);
    const keel_status s = collect(f, r, mine >= 0 && !all ? KEEL_ENOMEM : mine, all, bytes);
    if (s >= 0) join_rows(x, all, b->rows);
    keel_free(all);
    return s;
}

keel_status keel_reduce(const keel_function *f, const char *name, keel_rows_op how,
                        keel_tensor *out)
{
    const keel_traced_return *r = NULL;
    keel_tensor t = { 0 };
    if ((unsigned)how > KEEL_ROWS_MAX)
        return keel_fail(KEEL_EARG, "%s: no way to reduce: %d", f->name, (int)how);
    KEEL_TRY(find(f, name, false, &r));
    const keel_spec *spec = spec_of(f, r);
    const int64_t n = keel_row_count(spec);
    const keel_bound *b = f->trainer->bound;
    double *sum = keel_calloc((size_t)n, sizeof *sum);
    keel_status s = keel_tensor_create(&t, spec->dtype, &spec->shape);
    if (!sum && s >= 0) s = KEEL_ENOMEM;
    reducing x = { .how = how, .dtype = spec->dtype, .n = n, .sum = sum };
    s = join_all(f, r, s, &x);
    if (s < 0) goto out;
    for (int64_t k = 0; k < n; k++) {
        const double all = how == KEEL_ROWS_MEAN ? sum[k] / (double)b->rows : sum[k];
        if (spec->dtype == KEEL_FLOAT64)
            ((double *)t.data)[k] = all;
        else
            ((float *)t.data)[k] = (float)all;
    }
    *out = t;
    t.data = NULL;
out:
    keel_tensor_free(&t);
    keel_free(sum);
    return s;
}

keel_status keel_gather(const keel_function *f, const char *name, keel_tensor *out)
{
    const keel_traced_return *r = NULL;
    keel_tensor t = { 0 };
    KEEL_TRY(find(f, name, false, &r));
    const keel_spec *spec = spec_of(f, r);
    keel_shape shape = { .rank = spec->shape.rank + 1, .dim = { f->trainer->bound->rows } };
    const size_t bytes = (size_t)keel_row_count(spec) * keel_dtype_size(spec->dtype);
    if (shape.rank > KEEL_RANK_MAX)
        return keel_fail(KEEL_ESHAPE, "%s: the rows of '%s' have too many dims to gather", f->name,
                         name);
    for (int k = 0; k < spec->shape.rank; k++) shape.dim[k + 1] = spec->shape.dim[k];
    keel_status s = keel_tensor_create(&t, spec->dtype, &shape);
    s = collect(f, r, s, t.data, bytes);
    if (s >= 0)
        *out = t;
    else
        keel_tensor_free(&t);
    return s;
}
