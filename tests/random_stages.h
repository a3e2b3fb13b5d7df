/* Lines for the table of random_pipelines.h: a stage that is drawn, and stages that choose, order
 * and collect elements. */
#ifndef KEEL_TESTS_RANDOM_STAGES_H
#define KEEL_TESTS_RANDOM_STAGES_H
#include "random_files.h"
#include "data/stage.h"

typedef struct random_stage {
    const char *name;
    int weight; /* how often, among the others */
    /* Make *out of p->d and perhaps p->other; arguments that `expect` needs go to p->a and p->b. */
    keel_status (*put)(drawn *p, keel_dataset **out);
    /* What the elements of the parents become; NULL: only sameness is tested. If a parent's list
     * has not ended, neither does what it makes. */
    void (*expect)(const drawn *p, const listed *in, const listed *other, listed *out);
    bool breaks_fit; /* no model of these tests takes what comes */
} random_stage;

extern const random_stage random_stages[];

static drawn pipeline_drawn(uint64_t seed, int depth);

/* Another dataset like the one so far: the same stages on another source of the same kind, with
 * something taken off. */
static inline void drawn_other(drawn *p)
{
    drawn o = pipeline_drawn(p->seed, p->depth);
    keel_dataset *less = NULL;
    const int64_t n = draw(&p->r, 1, 9);
    if (chance(&p->r, 2) ? keel_dataset_skip(&less, o.d, n) >= 0
                         : keel_dataset_take(&less, o.d, n) >= 0) {
        keel_dataset_destroy(o.d);
        o.d = less;
    }
    keel_dataset_destroy(o.other);
    p->other = o.d;
}

static inline keel_status of_two(drawn *p, keel_dataset **out, const char *stage,
                                 const keel_arg *args)
{
    drawn_other(p);
    return keel_dataset_apply(out, stage, args, (keel_dataset *[]){ p->d, p->other }, 2);
}

/* Elements [from, to) of `in`; to -1: all. */
static inline void expect_some(const listed *in, int64_t from, int64_t to, int64_t step,
                               listed *out)
{
    for (int64_t i = from; i < in->n && (to < 0 || i < to); i += step) list_copy(out, in, (int)i);
    out->ended = in->ended || (to >= 0 && to <= in->n);
}

static inline keel_status put_take(drawn *p, keel_dataset **out)
{
    p->a = draw(&p->r, -1, 30);
    return keel_dataset_take(out, p->d, p->a);
}

static inline void expect_take(const drawn *p, const listed *in, const listed *other, listed *out)
{
    (void)other;
    expect_some(in, 0, p->a, 1, out);
}

static inline keel_status put_skip(drawn *p, keel_dataset **out)
{
    p->a = chance(&p->r, 9) ? -1 : draw(&p->r, 0, 12);
    return keel_dataset_skip(out, p->d, p->a);
}

static inline void expect_skip(const drawn *p, const listed *in, const listed *other, listed *out)
{
    (void)other;
    if (p->a >= 0)
        expect_some(in, p->a, -1, 1, out);
    else
        out->ended = true;
}

static inline keel_status put_shard(drawn *p, keel_dataset **out)
{
    p->a = draw(&p->r, 1, 4);
    p->b = draw(&p->r, 0, p->a - 1);
    return keel_dataset_shard(out, p->d, p->a, p->b);
}

static inline void expect_shard(const drawn *p, const listed *in, const listed *other, listed *out)
{
    (void)other;
    expect_some(in, p->b, -1, p->a, out);
}

static inline keel_status put_repeat(drawn *p, keel_dataset **out)
{
    p->a = chance(&p->r, 3) ? -1 : draw(&p->r, 0, 3);
    return keel_dataset_repeat(out, p->d, p->a);
}

/* `in` has its passes one after another. */
static inline void expect_repeat(const drawn *p, const listed *in, const listed *other, listed *out)
{
    (void)other;
    if (p->a) expect_some(in, 0, -1, 1, out);
    out->ended = !p->a || (p->a > 0 && in->ended);
}

static inline keel_status put_shuffle(drawn *p, keel_dataset **out)
{
    const keel_arg *seed = chance(&p->r, 3)
                               ? (const keel_arg[]){ KEEL_ARG_INT("seed", draw(&p->r, 0, 99)) }
                               : (const keel_arg[]){ { 0 } };
    const bool again = !chance(&p->r, 4);
    p->a = chance(&p->r, 2) ? 0 : draw(&p->r, 1, 12);
    if (!p->a)
        return keel_dataset_apply(
            out, "shuffle", KEEL_ARGS(KEEL_ARG_BOOL("reshuffle_each_iteration", again), *seed),
            &p->d, 1);
    return keel_dataset_apply(out, "shuffle",
                              KEEL_ARGS(KEEL_ARG_INT("buffer_size", p->a),
                                        KEEL_ARG_BOOL("reshuffle_each_iteration", again), *seed),
                              &p->d, 1);
}

static inline void expect_batches(const drawn *p, const listed *in, int64_t size, int end,
                                  listed *out)
{
    uint64_t row[64];
    int n = 0;
    (void)p;
    for (int i = 0; i < in->rows && list_room(out, size); i++) {
        row[n++] = in->row[i];
        if (n < size) continue;
        list_add(out, row, n, 0);
        n = 0;
    }
    out->ended = in->ended;
    if (!n || !in->ended || end == 1) return;
    for (int i = 0; end == 2 && n < size; i++) row[n++] = in->row[i % in->rows];
    list_add(out, row, n, 0);
}

static inline keel_status put_batch(drawn *p, keel_dataset **out)
{
    static const char *const ends[] = { "keep", "drop", "wrap", "error" };
    p->a = draw(&p->r, 1, 9);
    p->b = draw(&p->r, 0, chance(&p->r, 4) ? 3 : 2);
    return keel_dataset_apply(
        out, "batch", KEEL_ARGS(KEEL_ARG_INT("batch_size", p->a), KEEL_ARG_STR("end", ends[p->b])),
        &p->d, 1);
}

static inline void expect_batch(const drawn *p, const listed *in, const listed *other, listed *out)
{
    (void)other;
    expect_batches(p, in, p->a, (int)p->b, out);
}

static inline keel_status put_rebatch(drawn *p, keel_dataset **out)
{
    p->a = draw(&p->r, 1, 9);
    p->b = draw(&p->r, 0, 1);
    return keel_dataset_apply(
        out, "rebatch",
        KEEL_ARGS(KEEL_ARG_INT("batch_size", p->a), KEEL_ARG_BOOL("drop_remainder", p->b)), &p->d,
        1);
}

static inline void expect_rebatch(const drawn *p, const listed *in, const listed *other,
                                  listed *out)
{
    (void)other;
    expect_batches(p, in, p->a, (int)p->b, out);
}

static inline keel_status put_unbatch(drawn *p, keel_dataset **out)
{
    return keel_dataset_unbatch(out, p->d);
}

static inline void expect_unbatch(const drawn *p, const listed *in, const listed *other,
                                  listed *out)
{
    (void)p;
    (void)other;
    for (int i = 0; i < in->rows && list_room(out, 1); i++) list_add(out, in->row + i, -1, 0);
    out->ended = in->ended;
}

static inline keel_status put_concatenate(drawn *p, keel_dataset **out)
{
    return of_two(p, out, "concatenate", NULL);
}

static inline void expect_concatenate(const drawn *p, const listed *in, const listed *other,
                                      listed *out)
{
    (void)p;
    for (int i = 0; i < in->n; i++) list_copy(out, in, i);
    for (int i = 0; in->ended && i < other->n && list_room(out, 64); i++) list_copy(out, other, i);
    out->ended = in->ended && other->ended;
}

static inline keel_status put_interleave(drawn *p, keel_dataset **out)
{
    p->a = draw(&p->r, 1, 4);
    return of_two(p, out, "interleave", KEEL_ARGS(KEEL_ARG_INT("block_length", p->a)));
}

static inline void expect_interleave(const drawn *p, const listed *in, const listed *other,
                                     listed *out)
{
    const listed *of[2] = { in, other };
    int at[2] = { 0, 0 };
    for (int k = 0; list_room(out, 64); k = 1 - k) {
        for (int64_t i = 0; i < p->a && at[k] < of[k]->n && list_room(out, 64); i++)
            list_copy(out, of[k], at[k]++);
        if (at[k] == of[k]->n && !of[k]->ended) return; /* what comes is not known */
        if (at[0] == in->n && at[1] == other->n) break;
    }
    out->ended = in->ended && other->ended;
}

static inline keel_status put_sample(drawn *p, keel_dataset **out)
{
    static const char *const weights[] = { "[1, 1]", "[1, 4]", "[0, 1]", "[0.2, 0.1]" };
    return of_two(p, out, "sample",
                  KEEL_ARGS(KEEL_ARG_JSON("weights", weights[draw(&p->r, 0, 3)]),
                            KEEL_ARG_BOOL("stop_on_empty_dataset", chance(&p->r, 2))));
}

static inline keel_status put_zip(drawn *p, keel_dataset **out)
{
    return of_two(p, out, "zip", NULL);
}

#endif
