/* Tracing and compiling a function for the shapes of its inputs. The first time a step is traced
 * twice: first to find out which models it calls and whether it applies an optimizer, then for
 * good. All programs share the store of the weights, the optimizers and the arenas. */
#include "base/memory.h"
#include "model/lend.h"
#include "tensor/dtype.h"
#include "train/function.h"
#include <string.h>

static void free_planned(keel_planned *p)
{
    keel_scored_free(&p->scored);
    keel_trace_free(&p->trace);
    keel_free(p->input);
    *p = (keel_planned){ 0 };
}

static keel_status trace(keel_function *f, keel_planned *p, keel_trace *t, bool backward)
{
    *t = (keel_trace){ .options = &f->o,
                       .input = p->input,
                       .models = &f->models,
                       .rows = p->rows,
                       .backward = backward,
                       .s = &p->scored };
    return keel_trace_run(t);
}

/* Finds the models and whether there are optimizers. */
static keel_status discover(keel_function *f, keel_planned *p)
{
    keel_status s = trace(f, p, &f->first, true);
    if (s >= 0) {
        f->backward = f->first.n_apply > 0;
        f->model = keel_calloc((size_t)f->models.n, sizeof(*f->model));
        if (!f->model) s = KEEL_ENOMEM;
        for (int i = 0; i < f->models.n && s >= 0; i++) f->model[i] = f->models.model[i].model;
        f->models.sealed = s >= 0;
    }
    keel_scored_free(&p->scored);
    keel_graph_destroy(f->first.g);
    f->first.g = NULL;
    return s;
}

static keel_status create_trainer(keel_function *f, keel_strategy *s)
{
    keel_trainer *t = keel_calloc(1, sizeof *t);
    if (!t) return KEEL_ENOMEM;
    f->trainer = t;
    t->strategy = s;
    t->loss_scale.now = 1;
    KEEL_TRY(keel_strategy_check_compress(s, f->o.dtype));
    if (s->shard_optimizer)
        return keel_fail(KEEL_EUNSUP, "a function on a strategy that shards the optimizer, which "
                                      "only a fit can: use another strategy");
    if (s->micro_batch)
        return keel_fail(KEEL_EUNSUP, "a function on a strategy of micro-batches, which only a fit "
                                      "can make: use another strategy");
    KEEL_TRY(keel_arenas_create(&t->arenas, s->lanes.device, s->lanes.n_worker));
    t->options = (keel_program_options){ .real = f->o.dtype,
                                         .comm = s->comm,
                                         .micro_batch = -1, /* results are of all rows */
                                         .compress = s->compress,
                                         .recompute = s->recompute,
                                         .arenas = t->arenas };
    t->vote = keel_aligned_calloc((size_t)s->lanes.n_worker, sizeof *t->vote);
    return t->vote ? KEEL_OK : KEEL_ENOMEM;
}

/* Makes the optimizers of the first trace. */
static keel_status take_optimizers(keel_function *f)
{
    const keel_trace *of = &f->first;
    keel_trainer *t = f->trainer;
    if (!(t->mover = keel_calloc((size_t)of->n_apply, sizeof *t->mover))) return KEEL_ENOMEM;
    while (t->n_mover < of->n_apply) {
        const keel_traced_apply *a = &of->apply[t->n_mover];
        const keel_traced_gradients *g = &of->gradients[a->gradients];
        keel_mover *x = &t->mover[t->n_mover++];
        bool *moves = keel_calloc((size_t)f->models.n_weight, sizeof *moves);
        if (!moves) return KEEL_ENOMEM;
        memcpy(moves, g->watched, (size_t)g->n_weight * sizeof *moves);
        const keel_status s = keel_trainer_take(t, x, &a->chosen.optimizer[0], moves);
        keel_free(moves);
        if (s < 0) return s;
        for (int i = 0; i < a->gradients; i++) x->first_loss += of->gradients[i].n_term;
        x->n_loss = g->n_term;
        x->when = a->options.when;
        x->when_context = a->options.context;
        x->needs_norms = x->needs_norms || x->when;
    }
    if (t->n_mover > 1) t->train.program->n_moment = 0; /* kernels prefetch those of one */
    KEEL_TRY(keel_spectral_create(&t->spectral, t->train.program->graph, t->store));
    return keel_orthogonal_create(&t->orthogonal, t->store, t->trains, t->strategy->lanes.n_worker);
}

/* Whether two gradients are for the same weights. The first trace did not know all models yet. */
static bool same_watched(const keel_traced_gradients *a, const keel_traced_gradients *b)
{
    const int most = a->n_weight > b->n_weight ? a->n_weight : b->n_weight;
    bool same = true;
    for (int v = 0; v < most; v++)
        same = same && (v < a->n_weight && a->watched[v]) == (v < b->n_weight && b->watched[v]);
    return same;
}

static bool same_optimizers(const keel_trace *a, const keel_trace *b)
{
    bool same = a->n_apply == b->n_apply;
    for (int i = 0; same && i < a->n_apply; i++)
        same = a->apply[i].chosen.optimizer[0].optimizer.type ==
                   b->apply[i].chosen.optimizer[0].optimizer.type &&
               same_watched(&a->gradients[a->apply[i].gradients],
                            &b->gradients[b->apply[i].gradients]);
    return same;
}

/* Points the optimizers to the program in use. */
static void follow_program(keel_function *f)
{
    keel_trainer *t = f->trainer;
    if (!f->backward) return;
    for (int k = 0; k < t->n_mover; k++) {
        t->mover[k].update.program = t->train.program;
        t->mover[k].when_context = f->planned[f->at].trace.apply[k].options.context;
        t->mover[k].when = f->planned[f->at].trace.apply[k].options.when;
    }
    keel_trainer_look(t);
}

static keel_status compile(keel_function *f, keel_planned *p)
{
    keel_trainer *t = f->trainer;
    keel_value *outputs = NULL;
    int n_output = 0;
    keel_status s = trace(f, p, &p->trace, f->backward);
    if (s >= 0) s = keel_trace_finish(&p->trace, &outputs, &n_output);
    if (s >= 0 && !same_optimizers(&p->trace, &f->first))
        s = keel_fail(KEEL_EARG, "the step applies other optimizers than when it was first traced");
    if (s < 0) goto out;
    if (!t->store) {
        t->trains = p->trace.trains;
        p->trace.trains = NULL;
        s = keel_trainer_lay_out(t, p->trace.g, f->model, f->models.n);
        if (s < 0) goto out;
        keel_function_take_weights(f, true);
    }
    p->contents = keel_function_contents_of(p->trace.g);
    t->options.max_rows = p->rows;
    t->options.trains = f->backward ? t->trains : NULL;
    s = keel_program_create(&p->scored.program, p->trace.g, outputs, n_output, t->store,
                            &t->strategy->lanes, &t->options);
    p->trace.g = NULL;
out:
    keel_free(outputs);
    return s;
}

/* Puts the program of planned[i] into use. */
static void use(keel_function *f, int i)
{
    keel_scored *s = keel_function_scored(f);
    if (f->at >= 0) f->planned[f->at].scored = *s;
    *s = f->planned[i].scored;
    f->planned[i].scored = (keel_scored){ 0 };
    f->planned[i].used = ++f->clock;
    f->at = i;
    follow_program(f);
}

static keel_status create_planned(keel_function *f, const keel_tensor *inputs, int64_t rows,
                                  keel_planned *p)
{
    *p = (keel_planned){ .rows = rows };
    p->input = keel_calloc((size_t)f->o.n_input, sizeof *p->input);
    if (!p->input) return KEEL_ENOMEM;
    for (int i = 0; i < f->o.n_input; i++) {
        keel_shape *shape = &p->input[i].shape;
        p->input[i] = f->input[i];
        for (int k = 0; k < shape->rank; k++) shape->dim[k] = inputs[i].shape.dim[k + 1];
    }
    return KEEL_OK;
}

static bool fits(const keel_function *f, const keel_planned *p, const keel_tensor *inputs)
{
    for (int i = 0; i < f->o.n_input; i++)
        for (int k = 0; k < p->input[i].shape.rank; k++)
            if (p->input[i].shape.dim[k] != inputs[i].shape.dim[k + 1]) return false;
    return true;
}

/* Drops planned[i]: the last takes its place. */
static void drop(keel_function *f, int i)
{
    if (i == f->at) {
        keel_scored_free(keel_function_scored(f));
        f->at = -1;
    }
    free_planned(&f->planned[i]);
    f->n_planned--;
    if (i == f->n_planned) return;
    f->planned[i] = f->planned[f->n_planned];
    f->planned[f->n_planned] = (keel_planned){ 0 };
    if (f->at == f->n_planned) f->at = i;
}

/* Makes room for another: the program of these shapes, which has too few rows, or the one that was
 * not used for longest. */
static void make_room(keel_function *f, const keel_tensor *inputs)
{
    int oldest = -1;
    for (int i = f->n_planned - 1; i >= 0; i--)
        if (fits(f, &f->planned[i], inputs)) {
            drop(f, i);
            return;
        }
    if (f->n_planned < f->o.programs) return;
    for (int i = 0; i < f->n_planned; i++)
        if (i != f->at && (oldest < 0 || f->planned[i].used < f->planned[oldest].used)) oldest = i;
    drop(f, oldest);
}

/* Prepares everything that the first program needs. */
static keel_status begin_first(keel_function *f, keel_strategy *s, keel_planned *p)
{
    keel_status st = create_trainer(f, s);
    if (st >= 0) st = discover(f, p);
    if (st >= 0) st = compile(f, p);
    if (st < 0) return st;
    keel_scored *in_use = keel_function_scored(f);
    *in_use = p->scored; /* optimizers are made for the program in use */
    p->scored = (keel_scored){ 0 };
    return f->backward ? take_optimizers(f) : KEEL_OK;
}

static void forget_trainer(keel_function *f)
{
    const keel_store *store = f->trainer ? f->trainer->store : NULL;
    for (int i = 0; store && i < f->models.n; i++)
        keel_model_take_back(f->models.model[i].model, store->master,
                             (size_t)store->n_master * keel_dtype_size(store->real), true);
    keel_trainer_destroy(f->trainer);
    keel_trace_free(&f->first);
    keel_free(f->models.model);
    keel_free(f->model);
    f->trainer = NULL;
    f->arenas = 0;
    f->model = NULL;
    f->models = (keel_called_models){ 0 };
}

keel_status keel_function_plan(keel_function *f, keel_strategy *s, const keel_tensor *inputs,
                               int64_t rows)
{
    keel_planned p;
    keel_status st = KEEL_OK;
    for (int i = 0; i < f->n_planned; i++) {
        if (!fits(f, &f->planned[i], inputs) || f->planned[i].rows < rows) continue;
        if (i != f->at) use(f, i);
        f->planned[i].used = ++f->clock;
        return KEEL_OK;
    }
    const bool first = !f->trainer;
    st = create_planned(f, inputs, rows, &p);
    if (st >= 0) st = first ? begin_first(f, s, &p) : compile(f, &p);
    if (st < 0) {
        free_planned(&p);
        if (first) forget_trainer(f);
        return st;
    }
    f->made++;
    if (first) {
        f->planned[0] = p;
        f->n_planned = 1;
        f->at = 0;
        f->planned[0].used = ++f->clock;
        follow_program(f);
        return KEEL_OK;
    }
    make_room(f, inputs);
    f->planned[f->n_planned] = p;
    use(f, f->n_planned++);
    return KEEL_OK;
}

void keel_function_forget(keel_function *f)
{
    while (f->n_planned > 0) drop(f, f->n_planned - 1);
    if (f->trainer) forget_trainer(f);
}
