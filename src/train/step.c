/* See step.h. What the caller does around the part of each worker (step_worker.h): it begins the
 * step, which binds the batch to the program, and has the team run it. Then it raises what failed,
 * skips a step that is not finite where a loss scale allows it, and adds up what is left. */
#include "train/step.h"
#include "data/source.h"
#include "graph/on_device.h"
#include "train/finite.h"
#include "train/mover.h"
#include "train/penalty.h"
#include "train/resident.h"
#include "train/step_worker.h"
#include "train/together.h"
#include "train/whole_loss.h"
#include <inttypes.h>
#include <string.h>

/* ---- before the workers begin -------------------------------------------------------------------
 */

/* The rows of a batch that an input of the program takes; NULL: they are not of the batch. */
static const void *rows_of_input(const keel_scored *s, const keel_batch *b, int input)
{
    const int field = s->field[input];
    if (field == KEEL_ROW_STATE) return NULL;
    return field >= 0 ? b->field[field] : keel_batch_weights(b);
}

void keel_trainer_look_ahead(keel_trainer *t, keel_feed *f)
{
    t->next_number = 0;
    if (keel_lanes_device(&t->strategy->lanes) && keel_feed_peek(f, &t->next))
        t->next_number = ++t->batches;
}

static bool is_same(const keel_batch *a, const keel_batch *b)
{
    return a->epoch == b->epoch && a->step == b->step && a->slot == b->slot && a->rows == b->rows &&
           a->first_row == b->first_row;
}

static void read_next(const void *batch, int64_t first, int64_t end)
{
    keel_feed_read(batch, first, end);
}

/* Tells the program which batch this is, and which comes next. That is only known to be for the
 * same program if all rows of the feed have one shape. */
static void tell_batches(keel_trainer *t, const keel_scored *s, const keel_batch *b)
{
    keel_program *p = s->program;
    const bool known = t->next_number && t->next.spec == b->spec;
    p->given = t->expected_number && is_same(&t->expected, b) ? t->expected_number : 0;
    p->coming.batch = known ? t->next_number : 0;
    t->expected_number = p->coming.batch;
    t->next_number = 0;
    if (!known) return;
    t->expected = t->next;
    p->coming.rows = t->expected.rows;
    p->coming.read = t->expected.unread ? read_next : NULL;
    p->coming.context = &t->expected;
    for (int i = 0; i < p->graph->n_input; i++)
        p->coming.input[i] = rows_of_input(s, &t->expected, i);
}

static keel_status begin_alone(keel_trainer *t, keel_scored *s, const keel_batch *b, uint64_t seed)
{
    keel_program *p = s->program;
    const keel_row_state *states = t->model ? t->model->row_states.state : NULL;
    KEEL_TRY(keel_resident_begin(t));
    KEEL_TRY(keel_scored_takes(s, b->rows));
    for (int i = 0; i < p->graph->n_input; i++)
        if (s->field[i] != KEEL_ROW_STATE) p->input[i] = rows_of_input(s, b, i);
    for (int i = 0; i < p->graph->n_carried; i++)
        p->input[p->graph->carried[i].input] = states[s->state[i]].data;
    p->facts = (keel_step_facts){
        .seed = seed, .epoch = b->epoch, .first_row = b->first_row, .rows = b->rows
    };
    keel_scored_begin(s, b->rows, s == &t->train ? (double)t->loss_scale.now : 1);
    t->no_op = t->moved_there = false;
    t->batch = b;
    tell_batches(t, s, b);
    KEEL_TRY(keel_program_bind(p, b->rows, &t->bound));
    keel_on_device_choose_sums(p, t->bound);
    p->meanwhile = t->resident ? keel_resident_settle : NULL;
    p->meanwhile_for = t;
    return KEEL_OK;
}

static keel_status begin(keel_trainer *t, keel_scored *s, const keel_batch *b, uint64_t seed)
{
    t->common.status = KEEL_OK;
    return keel_together_begin(t->strategy, begin_alone(t, s, b, seed), b, t->set, &t->stops);
}

/* ---- once they have ended -----------------------------------------------------------------------
 */

void keel_trainer_output(const keel_trainer *t, const keel_scored *s, int k, void *out)
{
    const keel_program *p = s->program;
    const int64_t bytes = p->value[p->output[k]].row_bytes;
    for (int i = 0; i < t->bound->n_busy; i++) {
        const keel_piece *piece = &t->bound->piece[i];
        memcpy((char *)out + piece->row * bytes, keel_program_output(p, k, piece),
               (size_t)(piece->rows * bytes));
    }
}

/* After a step that was applied: the optimizer counts it, and its tiles' penalties are added. */
static void end_mover(keel_mover *x, double *loss)
{
    if (!x->rests) keel_updater_end(&x->update);
    for (int i = 0; i < x->update.n_tile; i++) *loss += x->tile_penalty[i];
}

/* After a step that has not failed: stateful layers go on from where its rows ended. */
static void keep_states(const keel_trainer *t, const keel_scored *s)
{
    const keel_program *p = s->program;
    const int first = p->n_output - p->graph->n_carried;
    for (int i = 0; i < p->graph->n_carried; i++) {
        void *to = t->model->row_states.state[s->state[i]].data;
        if (p->across)
            keel_across_carried(p, t->bound, i, to);
        else
            keel_trainer_output(t, s, first + i, to);
    }
}

/* "row 7 of t.npz (its name)": in the source of the data, if it is known, else in the epoch. */
static void name_row(const keel_batch *b, int64_t row, char *out, size_t size)
{
    int64_t index = (int64_t)b->first_row + row;
    const keel_data_origin *o = keel_feed_row(b, row, &index);
    const char *name = o && o->source->row_name ? o->source->row_name(o->state, index) : NULL;
    snprintf(out, size, "row %" PRId64 "%s%.100s%s%.160s%s", index, o ? " of " : "",
             o ? o->name : "", name ? " (" : "", name ? name : "", name ? ")" : "");
}

/* Whether it may be a loss of all rows, which the first row has for all of them. */
static bool is_of_all_rows(const keel_trainer *t, int64_t row)
{
    bool of_all = false;
    for (int k = 0; k < t->train.n_loss; k++)
        of_all = of_all || t->train.loss[k].args.loss == &keel_loss_of_whole;
    return of_all && row == 0;
}

/* Fail, and name the device and row, or the weight, that has a number that is not finite. */
static keel_status not_finite(const keel_trainer *t, const keel_batch *b)
{
    const keel_program *p = t->train.program;
    const int64_t row = p->across ? t->bad_row : keel_program_bad_row(p);
    char where[KEEL_COMM_NAME_MAX], which[320];
    if (row >= 0) KEEL_TRY(keel_finite_check(t, b->epoch, b->step));
    if (row >= 0 && is_of_all_rows(t, row))
        return keel_fail(KEEL_ENUMERIC,
                         "epoch %" PRIu32 ", step %" PRId64 ": the loss of all rows is not finite; "
                         "the weights are as before the step. Lower the learning rate, or look at "
                         "these rows",
                         b->epoch + 1, b->step + 1);
    if (row >= 0) {
        name_row(b, row, which, sizeof which);
        return keel_fail(KEEL_ENUMERIC,
                         "epoch %" PRIu32 ", step %" PRId64 ": the loss of %s, on %s, is not "
                         "finite; the weights are as before the step. Lower the learning rate or "
                         "look at this row",
                         b->epoch + 1, b->step + 1, which, keel_together_where(t, row, where));
    }
    for (int w = 0; w < t->strategy->lanes.n_worker; w++)
        if (t->vote[w].bad >= 0)
            return keel_fail(
                KEEL_ENUMERIC,
                "epoch %" PRIu32 ", step %" PRId64 ": the gradient of '%s' is not finite; the "
                "weights are as before the step. Lower the learning rate or clip gradients",
                b->epoch + 1, b->step + 1, t->store->weight[t->vote[w].bad].info.name);
    return KEEL_OK;
}

/* Nothing of a skipped step stays but the smaller scale. Too many in a row fail, with the weight
 * whose gradient is the first in backward order that is not finite. */
static keel_status skip(keel_trainer *t, const keel_batch *b)
{
    keel_loss_scale_skip(&t->loss_scale);
    KEEL_TRY(keel_finite_check(t, b->epoch, b->step)); /* no smaller scale helps */
    if (t->loss_scale.in_a_row <= KEEL_SKIPS_MAX) return KEEL_OK;
    const keel_status s = not_finite(t, b);
    return keel_fail_within(s < 0 ? s : KEEL_ENUMERIC,
                            "more than %d steps in a row skipped, down to a loss scale of %g",
                            KEEL_SKIPS_MAX, (double)t->loss_scale.now);
}

/* ---- steps --------------------------------------------------------------------------------------
 */

keel_status keel_train_step(keel_trainer *t, const keel_batch *b, uint64_t seed, keel_tally *tally)
{
    keel_program *p = t->train.program;
    keel_score score;
    double loss = 0;
    const keel_status begun = begin(t, &t->train, b, seed);
    if (begun != KEEL_OK) return begun;
    for (int w = 0; w < t->strategy->lanes.n_worker; w++) t->vote[w].bad = -1;
    for (int k = 0; k < t->n_mover; k++) {
        t->mover[k].rests = false;
        KEEL_TRY(keel_updater_begin(&t->mover[k].update));
    }
    keel_team_run(t->strategy->team, keel_step_train_worker, t);
    for (int w = 0; p->timing && w < t->strategy->lanes.n_worker; w++)
        keel_timing_phase(p->timing, w, KEEL_PHASE_WAIT, t->vote[w].ended);
    keel_status s = keel_step_failure(t, p) < 0 ? keel_together_failure(t, p) : KEEL_OK;
    if (s >= 0) keel_resident_ran(t);
    if (s >= 0 && t->moved_there) s = keel_resident_end(t);
    if (s >= 0) keel_scored_read(&t->train, t->bound, &score);
    const bool applied = s >= 0 && !t->no_op && keel_step_is_finite(t, &score);
    const bool skipped = s >= 0 && !t->no_op && !applied && t->loss_scale.on;
    if (!applied) keel_spectral_undo(&t->spectral);
    if (s >= 0 && !t->no_op) s = skipped ? skip(t, b) : not_finite(t, b);
    if (s < 0) return s;
    if (skipped && !score.finite) return KEEL_OK; /* it would spoil the epoch's means */
    if (score.finite) loss = score.loss;
    if (applied) {
        keel_loss_scale_good(&t->loss_scale);
        for (int k = 0; k < t->n_mover; k++) {
            keel_mover *x = &t->mover[k];
            x->rests = x->rests || keel_mover_is_idle(x, &score);
            end_mover(x, &loss);
        }
        loss += keel_orthogonal_loss(&t->orthogonal);
    } else
        loss += keel_trainer_penalty(t); /* a step that moves nothing has it, too */
    keep_states(t, &t->train);
    keel_tally_add(tally, &t->train, t->bound, b->rows, loss, &score);
    return KEEL_OK;
}

void keel_test_begin(keel_trainer *t)
{
    t->penalty = keel_trainer_penalty(t);
}

keel_status keel_test_step(keel_trainer *t, const keel_batch *b, keel_tally *tally)
{
    keel_score score;
    const keel_status s = keel_forward_step(t, b, t->test_seed);
    if (s != KEEL_OK) return s;
    keel_scored_read(&t->test, t->bound, &score);
    keep_states(t, &t->test);
    keel_tally_add(tally, &t->test, t->bound, b->rows, score.loss + t->penalty, &score);
    return KEEL_OK;
}

keel_status keel_forward_step(keel_trainer *t, const keel_batch *b, uint64_t seed)
{
    keel_program *p = t->test.program;
    const keel_status begun = begin(t, &t->test, b, seed);
    if (begun != KEEL_OK) return begun;
    keel_team_run(t->strategy->team, keel_step_test_worker, t);
    if (keel_step_failure(t, p) < 0) return keel_together_failure(t, p);
    keel_resident_ran(t);
    return KEEL_OK;
}

keel_status keel_predict_step(keel_trainer *t, const keel_batch *b, void *const *out, bool all)
{
    const keel_program *p = t->test.program;
    const keel_status s = keel_forward_step(t, b, t->test_seed);
    if (s != KEEL_OK) return s;
    for (int k = 0; k < t->model->n_output; k++) {
        if (!out[k]) continue;
        keel_trainer_output(t, &t->test, k, out[k]);
        if (!all) continue;
        KEEL_TRY(
            keel_together_rows(t->strategy, b->rows, out[k], p->value[p->output[k]].row_bytes));
    }
    keep_states(t, &t->test);
    return KEEL_OK;
}
