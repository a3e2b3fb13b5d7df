/* What processes that run a function compare before each of its steps. Their C code, models and
 * rows are not known to be the same, and weights that drift apart would not be seen otherwise. */
#include "base/hash.h"
#include "train/function.h"
#include "train/whole_loss.h"
#include <string.h>

static void mix_number(uint64_t *sum, int64_t x)
{
    keel_fingerprint_add(sum, &x, sizeof x);
}

/* Some rows of an input, the first and the last among them: to read all of 64 rows of 784 numbers
 * took 88 us on a busy machine, and a small step takes 600. */
static void mix_rows(uint64_t *sum, const keel_tensor *t)
{
    enum { BYTES = 16 << 10 };
    const int64_t rows = t->shape.dim[0], all = keel_shape_count(&t->shape);
    const int64_t bytes = all / rows * (int64_t)keel_dtype_size(t->dtype);
    const int64_t fit = BYTES / bytes, most = fit > 2 ? fit : 2, n = most < rows ? most : rows;
    keel_fingerprint_add(sum, t->shape.dim, (size_t)t->shape.rank * sizeof *t->shape.dim);
    for (int64_t i = 0; i < n; i++) {
        const int64_t row = n > 1 ? i * (rows - 1) / (n - 1) : 0; /* n and rows are below 2^31 */
        keel_fingerprint_add(sum, (const char *)t->data + row * bytes, (size_t)bytes);
    }
}

uint64_t keel_function_contents_of(const keel_graph *g)
{
    uint64_t sum = 0;
    for (int i = 0; i < g->n_node; i++) {
        const keel_graph_node *n = &g->node[i];
        keel_fingerprint_add(&sum, n->node.op->name, strlen(n->node.op->name));
        mix_number(&sum, n->repeats);
        for (int k = 0; k < n->node.n_in; k++) mix_number(&sum, n->in[k]);
        for (int k = 0; k < n->node.n_weight; k++) mix_number(&sum, n->weight[k]);
        for (int k = 0; k < n->node.n_out; k++) {
            const keel_spec *s = keel_graph_spec(g, n->out[k]);
            mix_number(&sum, s->dtype);
            keel_fingerprint_add(&sum, s->shape.dim, (size_t)s->shape.rank * sizeof *s->shape.dim);
        }
    }
    return sum;
}

static void mix_states(uint64_t *sum, const keel_updater *u)
{
    keel_fingerprint_add(sum, &u->number, sizeof u->number);
    for (int k = 0; k < u->n_slot; k++) keel_fingerprint_add(sum, u->memory[k], (size_t)u->held[k]);
}

uint64_t keel_function_contents(const keel_function *f, const keel_tensor *inputs, int n)
{
    const keel_trainer *t = f->trainer;
    const uint64_t of_losses = keel_wholes_contents(&f->planned[f->at].trace);
    uint64_t sum = f->planned[f->at].contents ^ of_losses;
    mix_number(&sum, (int64_t)f->o.seed);
    mix_number(&sum, (int64_t)f->first_row);
    mix_number(&sum, t->strategy->compress);
    for (int i = 0; i < n; i++) mix_rows(&sum, &inputs[i]);
    for (int k = 0; k < t->n_mover; k++) {
        double rate = 0;
        keel_function_learning_rate(f, k, &rate);
        keel_fingerprint_add(&sum, &rate, sizeof rate);
        mix_number(&sum, t->mover[k].update.iterations);
        if (f->anew && t->mover[k].update.given) mix_states(&sum, &t->mover[k].update);
    }
    for (int v = 0; f->anew && v < t->store->n_weight; v++)
        keel_fingerprint_add(&sum, keel_store_data(t->store, v),
                             (size_t)t->store->weight[v].count * keel_dtype_size(t->store->real));
    return sum ? sum : 1; /* 0: nothing is compared */
}
