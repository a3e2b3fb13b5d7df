/* tf.data's ignore_errors: elements that cannot be made are left out, up to a budget in each pass,
 * and their number is said. */
#include "data/iter.h"
#include "data/stage.h"

static keel_status infer(keel_applied *s, keel_data_spec *spec)
{
    spec->rows = spec->yields = -1;
    return keel_passed_create((keel_passed **)&s->made, s->args);
}

typedef struct ignore_iter {
    int64_t left_out, seen;
} ignore_iter;

static keel_status begin(keel_iter *it)
{
    *(ignore_iter *)it->own = (ignore_iter){ 0 };
    return keel_iter_begin(it->parent[0], it->at.pass);
}

static keel_status next(keel_iter *it, keel_element **out)
{
    ignore_iter *w = it->own;
    keel_run *run = it->run;
    const keel_applied *a = it->applied;
    const keel_data_spec parent = keel_stage_spec(a->parent[0]);
    for (;;) {
        run->place = (keel_spot){ 0 };
        const keel_status s = keel_iter_next(it->parent[0], out);
        w->seen += s != KEEL_END;
        if (s >= 0 || !keel_stage_may_pass(s)) return s;
        keel_fault f = { .stage = a, .pass = it->at.pass, .place = run->place };
        keel_failure_take(&f.failure, s);
        keel_passed_add(a->made, &f);
        const int64_t most =
            keel_budget_allows(a->args, parent.endless ? -1 : parent.rows, w->seen);
        if (w->left_out >= most) {
            w->seen--; /* the next call tries it again */
            keel_failure_raise(&f.failure);
            return keel_fail_within(s, "ignore_errors: the failure after %lld that %s left out",
                                    (long long)w->left_out, w->left_out == 1 ? "was" : "were");
        }
        w->left_out++;
        keel_iter_pass(it->parent[0]);
    }
}

static void note(const keel_applied *s, char *text, size_t size)
{
    keel_passed_note(s->made, keel_dataset_name(s->parent[0]), " and is left out",
                     " and are left out", text, size);
}

static void release(keel_applied *s)
{
    keel_passed_destroy(s->made);
}

static const keel_field fields[] = {
    KEEL_BUDGET_FIELDS("elements that may be left out"),
    { .key = NULL },
};

const keel_stage keel_stage_ignore_errors = {
    .type = { .name = "ignore_errors",
              .module = "keel.data",
              .help = "Leaves out elements that cannot be made.",
              .args_size = sizeof(keel_budget),
              .fields = fields },
    .n_parent = 1,
    .no_index = true,
    .infer = infer,
    .iter_size = sizeof(ignore_iter),
    .begin = begin,
    .next = next,
    .note = note,
    .release = release,
};
