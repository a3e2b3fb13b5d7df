/* What the user should know of a fit, in one line at its end. */
#include "base/plural.h"
#include "base/text.h"
#include "train/fit.h"

/* Name the layers that only the slow plain reference can run. */
static void add_slow(keel_text *t, const keel_program *p)
{
    enum { NAMED = 6 };
    int n = 0;
    for (int i = 0; i < p->graph->n_node; i++) {
        const keel_node *node = &p->graph->node[i].node;
        if (!keel_program_is_slow(p, i)) continue;
        if (n == 0) keel_text_add(t, "%sno fast kernel runs all passes of ", t->length ? "; " : "");
        if (n < NAMED)
            keel_text_add(t, "%s'%.60s' (%s)", n ? ", " : "", node->layer, node->op->name);
        n++;
    }
    if (n > NAMED) keel_text_add(t, " and %d more", n - NAMED);
    if (n) keel_text_add(t, ": the plain reference runs (see keel inspect --kernels)");
}

/* What kernels of the devices have asked for in vain. */
static void add_lacks(keel_text *t, const keel_lanes *l)
{
    for (int w = 0; w < l->n_worker; w++)
        if (l->device[w] && l->device[w]->lacks[0])
            keel_text_add(t, "%s%s", t->length ? "; " : "", l->device[w]->lacks);
}

/* Name the weights that no loss depends on, which are not trained. */
static void add_unreached(keel_text *t, const keel_trainer *trainer)
{
    enum { NAMED = 6 };
    int n = 0;
    for (int v = 0; v < trainer->store->n_weight; v++) {
        const keel_weight_info *info = &trainer->store->weight[v].info;
        const keel_program *p = trainer->train.program;
        if (!p->trains[v] || p->schedule.reached[v]) continue;
        if (n == 0) keel_text_add(t, "%sno loss depends on ", t->length ? "; " : "");
        if (n < NAMED) keel_text_add(t, "%s'%.80s'", n ? ", " : "", info->name);
        n++;
    }
    if (n > NAMED) keel_text_add(t, " and %d more", n - NAMED);
    if (n) keel_text_add(t, ": %s not trained", n > 1 ? "they are" : "it is");
}

/* Row i of a shuffled step has nothing to do with row i of the step before. */
static void add_shuffled_states(keel_text *t, const keel_fitting *f)
{
    const keel_graph *g = f->trainer->train.program->graph;
    if (g->n_carried == 0 || f->o.no_shuffle) return;
    keel_text_add(t,
                  "%sthe layer of '%.80s' is stateful, but rows are shuffled: each goes on from "
                  "the state of another (--no-shuffle keeps their order)",
                  t->length ? "; " : "", g->carried[0].name);
}

/* Tell that the trace is incomplete; a profile shows this itself. */
static void add_cut(keel_text *t, const keel_fitting *f)
{
    int64_t lost = 0;
    for (int w = 0; f->timing && w < f->timing->n_worker; w++) lost += f->timing->workspace[w].lost;
    if (lost && !f->o.profile)
        keel_text_add(t, "%sthe trace is incomplete: %lld later event%s did not fit",
                      t->length ? "; " : "", (long long)lost, keel_s(lost));
}

/* Which steps a profile and a trace show, where rows have several shapes. */
static void add_shapes(keel_text *t, const keel_fitting *f)
{
    if (!f->timing || f->trainer->trained.made < 2) return;
    keel_text_add(t, "%sthe profile and the trace are of steps of %lld shapes, their kernels of ",
                  t->length ? "; " : "", (long long)f->trainer->trained.made);
    keel_text_add(t, "the last");
    if (f->work.steps < f->history.steps)
        keel_text_add(t, "; without %lld step%s of shapes for which the model has other ops",
                      (long long)(f->history.steps - f->work.steps),
                      keel_s(f->history.steps - f->work.steps));
}

/* Tell how many steps the loss scale was too large for. */
static void add_skipped(keel_text *t, const keel_fitting *f)
{
    const keel_loss_scale *l = &f->trainer->loss_scale;
    if (l->skipped == 0) return;
    keel_text_add(t, "%s%lld of %lld step%s skipped, since a loss or gradient was not finite; the ",
                  t->length ? "; " : "", (long long)l->skipped, (long long)f->history.steps,
                  keel_s(f->history.steps));
    keel_text_add(t, "loss scale is now %g", (double)l->now);
}

static void add_kept(keel_text *t, const keel_program *p)
{
    if (!p->options.recompute) return;
    for (int at = 0; at < p->schedule.n_instruction; at++)
        if (p->schedule.instruction[at].kind == KEEL_RUN_AGAIN) return;
    keel_text_add(t, "%srecompute has changed nothing: to make values again would save no memory",
                  t->length ? "; " : "");
}

/* Files that decoders have complained of. */
static void add_warnings(keel_text *t, const keel_dataset *d)
{
    char text[768];
    if (d && keel_dataset_warnings(d, text, sizeof text))
        keel_text_add(t, "%s%s", t->length ? "; " : "", text);
}

void keel_fit_take_notes(keel_fitting *f, const keel_dataset *data)
{
    keel_text t = { 0 };
    const keel_program *p = f->trainer ? f->trainer->train.program : NULL;
    if (f->feed && keel_feed_note(f->feed)) keel_text_add(&t, "%s", keel_feed_note(f->feed));
    add_warnings(&t, data);
    if (f->o.validation && f->o.validation->origin != data->origin)
        add_warnings(&t, f->o.validation);
    if (p && !f->o.reference_kernels) add_slow(&t, p);
    if (p) add_lacks(&t, p->lanes);
    if (p) add_unreached(&t, f->trainer);
    if (p) add_shuffled_states(&t, f);
    if (p) add_kept(&t, p);
    if (f->trainer) add_skipped(&t, f);
    add_cut(&t, f);
    add_shapes(&t, f);
    if (keel_saver_line(f->resume.saver) && !(f->o.checkpoint && f->o.checkpoint->on_line))
        keel_text_add(&t, "%s%s", t.length ? "; " : "", keel_saver_line(f->resume.saver));
    if (f->run.notes.length) keel_text_add(&t, "%s%s", t.length ? "; " : "", f->run.notes.data);
    if (t.failed) keel_text_free(&t);
    f->history.note = t.data;
}
