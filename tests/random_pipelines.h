/* Pipelines drawn by chance, each from one number: a source, of files too where drawn_files_begin
 * was called, and up to six stages with arguments that may be refused. A stage of keel is a line in
 * `random_stages`: `put` draws its arguments, and `expect` says in plain C which elements it makes
 * of those of its parents. */
#ifndef KEEL_TESTS_RANDOM_PIPELINES_H
#define KEEL_TESTS_RANDOM_PIPELINES_H
#include "random_calls.h"
#include "random_more_stages.h"
#include <sys/stat.h>

const random_stage random_stages[] = {
    { "take", 3, put_take, expect_take, false },
    { "skip", 2, put_skip, expect_skip, false },
    { "shard", 2, put_shard, expect_shard, false },
    { "repeat", 3, put_repeat, expect_repeat, false },
    { "shuffle", 5, put_shuffle, NULL, false },
    { "batch", 6, put_batch, expect_batch, false },
    { "rebatch", 3, put_rebatch, expect_rebatch, false },
    { "unbatch", 3, put_unbatch, expect_unbatch, false },
    { "concatenate", 2, put_concatenate, expect_concatenate, false },
    { "interleave", 2, put_interleave, expect_interleave, false },
    { "sample", 2, put_sample, NULL, false },
    { "zip", 1, put_zip, NULL, true },
    { "map", 3, put_map, NULL, false },
    { "noise", 3, put_noise, NULL, false },
    { "in_order", 1, put_in_order, NULL, false },
    { "errors", 2, put_errors, NULL, false },
    { "filter", 3, put_filter, expect_filter, false },
    { "cache", 2, put_cache, expect_same, false },
    { "window", 2, put_window, NULL, true },
    { "bucket_by_sequence_length", 2, put_bucket, NULL, false },
    MORE_RANDOM_STAGES{ NULL, 0, NULL, NULL, false },
};

static inline bool refused_without_files(const drawn *p);

static inline void drawn_stage(drawn *p)
{
    int sum = 0;
    keel_dataset *next = NULL;
    const random_stage *s = random_stages;
    for (int i = 0; random_stages[i].name; i++) sum += random_stages[i].weight;
    for (int64_t at = draw(&p->r, 1, sum); (at -= s->weight) > 0;) s++;
    keel_dataset_destroy(p->other);
    p->other = NULL;
    p->last = NULL;
    p->a = p->b = 0;
    const bool one_pass = p->one_pass;
    const keel_status made = refused_without_files(p) ? KEEL_EUNSUP : s->put(p, &next);
    if (made < 0) {
        if (!*keel_error()) fail_msg("%s | %s: refused without a word", p->text, s->name);
        p->a = p->b = 0;
        p->one_pass = one_pass;
        return;
    }
    keel_dataset_destroy(p->d);
    p->d = next;
    p->last = s;
    p->fits &= !s->breaks_fit;
    drawn_say(p, " | %s", s->name);
    if (p->a || p->b) drawn_say(p, " %lld %lld", (long long)p->a, (long long)p->b);
}

/* The first `depth` stages of a pipeline: the same for any depth up to there. */
static drawn pipeline_drawn(uint64_t seed, int depth)
{
    drawn p = { .seed = seed, .r = { mixed(seed, 77) } };
    draws files = { mixed(seed, 99) };
    if (*files_root && chance(&files, 3))
        drawn_of_file(&p, &files);
    else
        drawn_source(&p);
    for (; p.depth < depth; p.depth++) {
        p.r.state = mixed(seed, (uint64_t)p.depth);
        drawn_stage(&p);
    }
    return p;
}

/* True if what a file made rows by number was a stream before, and the next stage refuses that: it
 * is refused here, too, or a pipeline would be another one as soon as its file is there. */
static inline bool refused_without_files(const drawn *p)
{
    const keel_applied *a = p->d->origin->applied;
    if (!a || !a->revived || !a->by_index) return false;
    const size_t n = strlen(drawn_folder);
    snprintf(drawn_folder + n, sizeof drawn_folder - n, "/none");
    mkdir(drawn_folder, 0700);
    drawn q = pipeline_drawn(p->seed, p->depth + 1);
    drawn_folder[n] = 0;
    const bool refused = !q.last;
    keel_dataset_destroy(q.d);
    keel_dataset_destroy(q.other);
    return refused;
}

static inline void pipeline_free(drawn *p)
{
    keel_dataset_destroy(p->d);
    keel_dataset_destroy(p->other);
    p->d = p->other = NULL;
}

#endif
