/* See input.h. The cost of a step: some clock readings by the feed, and here two additions; every
 * 25 steps the numbers of all threads are added up. */
#include "train/input.h"
#include "data/pool.h"
#include "data/stage.h"
#include "device/memory_limit.h"
#include "tensor/dtype.h"
#include "tensor/shape.h"
#include "train/input_advice.h"
#include <stdio.h>
#include <string.h>

enum { SETTLED = 20, ROTATE = 25 };
static const double DRAW_EVERY = 2;

/* ---- memory ---------------------------------------------------------------------------------- */

bool keel_input_group_limit(int64_t *limit, int64_t *left, const char **group)
{
    static _Thread_local keel_memory_limit m;
    keel_memory_limit_find(&m, "");
    if (m.limit < 0) return false;
    if (limit) *limit = m.limit;
    if (left) *left = m.free;
    if (group) *group = m.group;
    return true;
}

keel_status keel_input_limit(int64_t *out, int64_t asked)
{
    int64_t limit, left;
    const char *group;
    const bool limited = keel_input_group_limit(&limit, &left, &group);
    if (asked < 0)
        return keel_fail(KEEL_EARG, "input_memory is %lld; it must not be negative",
                         (long long)asked);
    if (asked && limited && asked > limit)
        return keel_fail(KEEL_EARG,
                         "input_memory is %lld bytes, but the control group %s allows this process "
                         "%lld",
                         (long long)asked, group, (long long)limit);
    *out = asked ? asked : limited ? left / 2 + 1 : 0;
    return KEEL_OK;
}

/* ---- stages ---------------------------------------------------------------------------------- */

/* True of stages whose elements several threads may make at once. */
static bool is_parallel(const keel_dataset *d)
{
    const keel_applied *s = d->origin->applied;
    if (!s) return d->origin->source->read != NULL;
    if (s->by_index) return true;
    return s->stage->label && !(s->stage->is_sequential && s->stage->is_sequential(s));
}

/* True if a cache may stand behind d, and what is before it then is not made again. */
static bool is_cacheable(const keel_dataset *d)
{
    const keel_applied *s = d->origin->applied;
    if (!s) return d->origin->source->read && !d->origin->source->in_memory;
    if (!s->by_index || d->origin->spec.batched || d->origin->spec.endless) return false;
    if (s->stage->is_random && s->stage->is_random(s)) return false;
    if (s->stage->keeps && !s->stage->where) return false; /* a cache */
    for (int i = 0; i < s->n_parent; i++) {
        const keel_dataset *p = s->parent[i];
        if (!is_cacheable(p) && !p->origin->source->in_memory) return false;
    }
    return true;
}

static void name_stage(char *out, size_t size, const keel_work_line *l, int part)
{
    static const char *const does[KEEL_PART_COUNT] = { "", ": read", ": decode", ": resize" };
    char name[32];
    if (!l->dataset) {
        snprintf(out, size, "%s", l->key == keel_work_gathers ? "batch" : (const char *)l->key);
        return;
    }
    const keel_applied *s = l->dataset->origin->applied;
    const char *label = s && s->stage->label ? s->stage->label(s) : NULL;
    snprintf(name, sizeof name, "%s", s ? s->stage->type.name : l->dataset->origin->source->name);
    for (char *c = name; *c; c++)
        if (*c == '_') *c = ' ';
    if (label && strcmp(label, name) != 0)
        snprintf(out, size, "%s '%.30s'", name, label);
    else
        snprintf(out, size, "%s%s", name, does[part]);
}

void keel_input_measure(keel_input_stats *in, const keel_work *w)
{
    keel_work_line line[KEEL_WORK_MAX];
    const int n = keel_work_lines(w, line);
    keel_work_sums(w, &in->work, &in->cpu);
    in->n_stage = 0;
    for (int i = 0; i < n; i++)
        for (int k = 0; k < KEEL_PART_COUNT && in->n_stage < KEEL_INPUT_STAGES; k++) {
            const keel_dataset *d = line[i].dataset;
            keel_input_stage *s = &in->stage[in->n_stage++]; /* always the same place */
            memset(s, 0, sizeof *s);
            s->seconds = line[i].seconds[k];
            s->waited = line[i].blamed[k];
            s->rows = k ? 0 : line[i].rows;
            name_stage(s->name, sizeof s->name, &line[i], k);
            s->parallel = !d || is_parallel(d);
            s->cacheable = d && is_cacheable(d);
            if (!d) continue;
            const keel_data_spec *spec = &d->origin->spec;
            for (int f = 0; f < spec->n_field; f++) {
                const keel_shape row = keel_shape_closed(&spec->field[f].shape, 1);
                s->row_bytes +=
                    keel_shape_count(&row) * (int64_t)keel_dtype_size(spec->field[f].dtype);
            }
        }
}

/* ---- following a feed ------------------------------------------------------------------------ */

void keel_input_begin(keel_input_follow *w, const keel_dataset *d, const keel_feed *f,
                      const keel_fit_options *o, const keel_strategy *s)
{
    *w = (keel_input_follow){ .data = d, .report = o->input_report, .next = 1 };
    w->now.threads_fixed = o->threads > 0;
    w->now.stream = keel_feed_is_stream(f);
    w->now.cores = keel_reading_threads();
    w->now.workers = keel_strategy_cores(s);
    w->now.rows = d->rows;
    w->epochs = o->epochs - o->initial_epoch;
    w->now.epochs = w->epochs;
}

static void look(keel_input_follow *w, const keel_feed *f)
{
    keel_input_stats *in = &w->now;
    keel_input_measure(in, keel_feed_work(f));
    in->threads = keel_feed_threads(f);
    in->batches = keel_feed_slots(f) - 1;
    const keel_account *a = keel_feed_account(f);
    if (!a) return;
    in->memory = atomic_load_explicit(&a->used, memory_order_relaxed);
    in->memory_peak = atomic_load_explicit(&a->peak, memory_order_relaxed);
    in->memory_limit = a->limit;
}

/* *in without what there was before. */
static void take_off(keel_input_stats *in, const keel_input_stats *before)
{
    in->steps -= before->steps;
    in->seconds -= before->seconds;
    in->waited -= before->waited;
    in->work -= before->work;
    in->cpu -= before->cpu;
    for (int i = 0; i < before->n_stage && i < in->n_stage; i++) {
        in->stage[i].seconds -= before->stage[i].seconds;
        in->stage[i].waited -= before->stage[i].waited;
        in->stage[i].rows -= before->stage[i].rows;
    }
}

static void move_on(keel_input_follow *w, const keel_feed *f)
{
    look(w, f);
    keel_input_stats last = w->now;
    take_off(&last, &w->before);
    const keel_input_stage *late = keel_input_latest(&last);
    w->share = last.seconds > 0 ? last.waited / last.seconds : 0;
    snprintf(w->late, sizeof w->late, "%s", late ? late->name : "");
    if (w->now.steps >= ROTATE) {
        w->before = w->recent;
        w->recent = w->now;
    }
    if (w->now.steps <= SETTLED) w->base = w->now;
    const int64_t n = w->now.steps;
    w->next = n < SETTLED && 2 * n > SETTLED ? SETTLED : n < ROTATE ? 2 * n : n + ROTATE;
    if (n == SETTLED) w->next = ROTATE;
}

void keel_input_epoch(keel_input_follow *w, const keel_feed *f, double now)
{
    const double waited = keel_feed_wait_seconds(f);
    w->now.seconds += waited - w->now.waited;
    w->now.waited = waited;
    w->last = now;
}

void keel_input_step(keel_input_follow *w, const keel_feed *f, double now)
{
    keel_input_stats *in = &w->now;
    in->steps++;
    in->seconds += now - w->last;
    in->waited = keel_feed_wait_seconds(f);
    w->last = now;
    if (in->steps < w->next) return;
    move_on(w, f);
    if (!w->report || w->failed < 0) return;
    if (now - w->drawn < DRAW_EVERY) return;
    keel_input_stats shown;
    w->drawn = now;
    keel_input_sum(w, &shown);
    if ((w->failed = keel_input_draw(&shown, w->report)) < 0)
        keel_failure_take(&w->failure, w->failed);
}

void keel_input_sum(const keel_input_follow *w, keel_input_stats *out)
{
    *out = w->now;
    if (w->base.steps && w->now.steps >= 2 * w->base.steps) take_off(out, &w->base);
    int n = 0; /* only what there is */
    for (int i = 0; i < out->n_stage; i++)
        if (out->stage[i].seconds > 0 || out->stage[i].waited > 0 || out->stage[i].rows > 0)
            out->stage[n++] = out->stage[i];
    out->n_stage = n;
    keel_input_advise(out);
}

keel_status keel_input_end(keel_input_follow *w, const keel_feed *f, keel_input_stats *out)
{
    if (!w->now.steps) return KEEL_OK;
    look(w, f);
    keel_input_sum(w, out);
    if (w->report && w->failed >= 0) return keel_input_draw(out, w->report);
    return w->failed < 0 ? keel_failure_raise(&w->failure) : KEEL_OK;
}
