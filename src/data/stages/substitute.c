/* A row that cannot be read is replaced by the next one that can, up to a budget in each pass; so
 * batches keep their size, and every other row keeps its place. Which row stands for which depends
 * on the data alone. */
#include "data/stage.h"
#include "data/trail.h"

enum { TRIES = 16 };

static keel_status infer(keel_applied *s, keel_data_spec *spec)
{
    if (!s->by_index || spec->batched)
        return keel_fail(KEEL_EUNSUP, "only rows that are read by number can be substituted: put "
                                      "it before filters and batches, or use ignore_errors");
    if (keel_spec_is_open(spec)) /* the length of a row is asked for before the row is read */
        return keel_fail(KEEL_EUNSUP, "rows that differ in length cannot be substituted: use "
                                      "ignore_errors");
    return keel_passed_create((keel_passed **)&s->made, s->args);
}

/* Leave word of a row that failed, for who gives it out. */
static keel_status tell(const keel_applied *s, keel_position there, keel_status failed,
                        keel_trail *t)
{
    keel_fault f = { .stage = s, .pass = there.pass, .order = -1 };
    if (!t) return KEEL_OK; /* nobody counts */
    keel_failure_take(&f.failure, failed);
    f.place = (keel_spot){ s->parent[0], there, t->failed_in, t->failed_row };
    return keel_faults_add(&t->faults, &f);
}

static keel_status read(const keel_applied *s, keel_position at, const keel_row *row,
                        keel_scratch *scratch)
{
    keel_scratch *inner = keel_scratch_inner(scratch);
    const int64_t n = s->parent[0]->rows;
    keel_position there = keel_stage_into(s, 0, &at);
    if (!inner) return KEEL_ENOMEM;
    if (inner->trail) inner->trail->failed_in = NULL;
    for (int i = 0;; i++) {
        const keel_status got = keel_dataset_read(s->parent[0], there, row, inner);
        if (got >= 0 || !keel_stage_may_pass(got)) return got;
        if (!i) KEEL_TRY(tell(s, there, got, inner->trail));
        if (i + 1 == TRIES || i + 1 >= n)
            return keel_fail_within(got, "substitute: %d rows in succession failed", i + 1);
        if (inner->trail) inner->trail->failed_in = NULL;
        there.index = (there.index + 1) % n;
    }
}

static void note(const keel_applied *s, char *text, size_t size)
{
    keel_passed_note(s->made, keel_dataset_name(s->parent[0]), " and another stands for it",
                     " and others stand for them", text, size);
}

static void release(keel_applied *s)
{
    keel_passed_destroy(s->made);
}

static const keel_field fields[] = {
    KEEL_BUDGET_FIELDS("rows that may be substituted"),
    { .key = NULL },
};

const keel_stage keel_stage_substitute = {
    .type = { .name = "substitute",
              .module = "keel.data",
              .help = "The next row that can be read in place of one that cannot.",
              .args_size = sizeof(keel_budget),
              .fields = fields },
    .n_parent = 1,
    .rowwise = true,
    .infer = infer,
    .read = read,
    .note = note,
    .release = release,
};
