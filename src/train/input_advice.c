/* See input_advice.h. A step takes as long as the slowest of: its computation; the work of its
 * rows, divided by the threads that share it; what one thread alone must do; and all work, divided
 * by the cores. Only remedies are named whose effect follows from what was measured. */
#include "train/input_advice.h"
#include "base/c_locale.h"
#include <math.h>
#include <stdio.h>
#include <string.h>

static const double WORTH = 1.03; /* a remedy that gains less is not named */
enum { THREADS_MAX = 64 };

const keel_input_stage *keel_input_latest(const keel_input_stats *in)
{
    const keel_input_stage *late = NULL;
    for (int i = 0; i < in->n_stage; i++)
        if (in->stage[i].waited > (late ? late->waited : 0)) late = &in->stage[i];
    return late;
}

/* Seconds of a step. */
typedef struct costs {
    double computes, work, alone; /* alone: of the work, what only one thread does at a time */
    double on_core;               /* share of the work: computing, not waiting for a disk */
} costs;

static costs costs_of(const keel_input_stats *in)
{
    const double n = (double)(in->steps > 0 ? in->steps : 1);
    costs c = { .computes = (in->seconds - in->waited) / n, .work = in->work / n };
    for (int i = 0; i < in->n_stage; i++)
        if (!in->stage[i].parallel) c.alone += in->stage[i].seconds / n;
    c.on_core = in->work > 0 ? in->cpu / in->work : 0;
    if (c.on_core > 1) c.on_core = 1;
    return c;
}

static double step_with(const keel_input_stats *in, const costs *c, int threads)
{
    const double shared = c->work - (in->stream ? c->alone : 0); /* its one thread does that */
    const double cores = in->cores > 0 ? in->cores : 1;
    const double all = (c->computes * in->workers + c->work * c->on_core) / cores;
    double step = c->computes;
    if (threads > 0) step = fmax(step, fmax(c->alone, shared / threads));
    if (threads <= 0) step += c->work;
    return fmax(step, all);
}

static void add(keel_input_stats *in, double step, const char *what)
{
    const double now = in->seconds / (double)in->steps;
    if (!(step > 0) || now / step < WORTH || in->n_remedy == KEEL_INPUT_REMEDIES) return;
    int at = in->n_remedy++;
    for (; at > 0 && in->remedy[at - 1].step_seconds > step; at--)
        in->remedy[at] = in->remedy[at - 1];
    in->remedy[at].step_seconds = step;
    in->remedy[at].factor = now / step;
    snprintf(in->remedy[at].what, sizeof in->remedy[at].what, "%s", what);
}

/* The fewest threads that gain all that threads can. */
static void more_threads(keel_input_stats *in, const costs *c)
{
    char what[120];
    int best = in->threads;
    if (in->threads < 1) return;
    for (int t = in->threads + 1; t <= THREADS_MAX; t++)
        if (step_with(in, c, t) < 0.99 * step_with(in, c, best)) best = t;
    if (best == in->threads) return;
    snprintf(what, sizeof what, "%d threads instead of %d", best, in->threads);
    add(in, step_with(in, c, best), what);
}

/* From the second epoch on the stages before the cache do nothing. */
static void a_cache(keel_input_stats *in, costs c)
{
    char what[200];
    const keel_input_stage *last = NULL;
    const double n = (double)in->steps;
    for (int i = 0; i < in->n_stage; i++) {
        const keel_input_stage *s = &in->stage[i];
        if (!s->cacheable) continue;
        c.work -= s->seconds / n;
        if (!s->parallel) c.alone -= s->seconds / n;
        last = s;
    }
    if (!last || in->epochs < 2 || in->rows <= 0) return;
    const double bytes = (double)in->rows * (double)last->row_bytes;
    if (in->memory_limit && bytes > (double)(in->memory_limit - in->memory)) return;
    const char *part = strchr(last->name, '\'') ? NULL : strstr(last->name, ": ");
    const size_t length = part ? (size_t)(part - last->name) : strlen(last->name); /* of a source */
    keel_snprintf(what, sizeof what, "a cache behind %.*s (%.1f MiB), from the second epoch on",
                  (int)length, last->name, bytes / (1 << 20));
    add(in, step_with(in, &c, in->threads), what);
}

void keel_input_advise(keel_input_stats *in)
{
    in->n_remedy = 0;
    if (in->steps < 1 || !(in->seconds > 0) || !(in->waited > 0)) return;
    const costs c = costs_of(in);
    if (in->threads_fixed) more_threads(in, &c);
    a_cache(in, c);
    add(in, c.computes, "rows that are there at once (the most that any remedy can gain)");
}

const char *keel_input_text(const keel_input_stats *in, char out[KEEL_INPUT_TEXT_MAX])
{
    const keel_input_stage *late = keel_input_latest(in);
    const double share = in->seconds > 0 ? in->waited / in->seconds : 0;
    *out = 0;
    if (share < 0.01 || !late) return out;
    int n = keel_snprintf(out, KEEL_INPUT_TEXT_MAX,
                          "steps waited %.0f %% of their time for rows, %.0f %% of that for %s",
                          100 * share, 100 * fmin(1, late->waited / in->waited), late->name);
    for (int i = 0; i < in->n_remedy && n < KEEL_INPUT_TEXT_MAX; i++)
        n += keel_snprintf(out + n, (size_t)(KEEL_INPUT_TEXT_MAX - n), "%s%s: %.2f times as fast",
                           i ? "; " : ". Predicted: ", in->remedy[i].what, in->remedy[i].factor);
    return out;
}
