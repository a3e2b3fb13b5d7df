/* Random functional models: layers by chance, patterns that are fused, shared layers, several
 * outputs. */
#ifndef TESTS_RANDOM_GRAPH_H
#define TESTS_RANDOM_GRAPH_H
#include "random_layers.h"

/* ---- graphs by chance -------------------------------------------------------------------------
 */

/* Put `s` behind what is there; false: it does not fit. */
static bool append(drawing *d, step s, int self)
{
    random_graph *g = d->g;
    if (g->n == STEPS_MAX) return false;
    s.self = self < 0 ? g->n : self;
    g->step[g->n] = s;
    if (build_step(d->m, g, g->n, d->symbol, d->made) < 0) return false;
    return ++g->n > 0;
}

/* Does it draw numbers while it trains? BatchNormalization, too, trains otherwise than it predicts,
 * but it may be called again. */
static bool draws_numbers(const struct drawer *w)
{
    return w->once && w->trains_otherwise;
}

/* A layer on what is at hand: on value `in`, or, where that is -1, on what its drawer picks. */
static bool append_layer(drawing *d, const char *layer, int in)
{
    const struct drawer *w = drawer_of(layer);
    step s = { .layer = w->layer };
    if (!w->draw || (d->certain && draws_numbers(w)) || !w->draw(d->g, &s)) return false;
    if (percent(10) && strncmp(layer, "ops.", 4)) GIVE_BOOL(&s, "trainable", false);
    if (in >= 0) s.in[0] = in;
    return append(d, s, -1);
}

/* A layer that was called before, on another value of the same shape, or on the same. */
static bool append_again(drawing *d)
{
    random_graph *g = d->g;
    const int i = chance(g->n);
    if (drawer_of(g->step[i].layer)->once) return false;
    step s = g->step[i];
    for (int k = 0; k < s.n_in; k++)
        for (int tries = 0; tries < 8; tries++) {
            const int v = g->n - 1 - chance(g->n);
            if (!keel_shape_equal(&g->step[v].shape, &g->step[g->step[i].in[k]].shape)) continue;
            s.in[k] = v;
            break;
        }
    return append(d, s, g->step[i].self);
}

/* What networks are made of, and what is fused: each word reads what the one before it gave, "Add"
 * the value that the pattern began with too. */
static void append_pattern(drawing *d)
{
    static const char *const patterns[][6] = {
        { "BatchNormalization", "ReLU" },
        { "Conv2D", "BatchNormalization", "Add", "ReLU" },
        { "BatchNormalization", "Add", "ReLU" },
        { "ReLU", "ZeroPadding2D", "MaxPooling2D" },
        { "BatchNormalization", "ReLU", "ZeroPadding2D", "MaxPooling2D" },
        { "ZeroPadding2D", "Conv2D", "BatchNormalization", "ReLU" },
        { "ZeroPadding2D", "DepthwiseConv2D", "BatchNormalization", "ReLU" },
        { "Rescaling", "Dropout", "Add", "Softmax" },
        { "Reshape", "Rescaling", "Dense", "Reshape" },
    };
    random_graph *g = d->g;
    const char *const *p = patterns[chance(sizeof patterns / sizeof *patterns)];
    const int begin = pick(g, percent(70) ? 3 : 0);
    for (int at = begin; at >= 0 && *p; p++) {
        if (!strcmp(*p, "Add")) {
            step s = { .layer = "Add", .n_in = 2, .in = { at, begin } };
            if (percent(50)) s.in[0] = begin, s.in[1] = at;
            if (!append(d, s, -1)) continue;
        } else if (!append_layer(d, *p, at)) {
            return;
        }
        at = g->n - 1;
    }
}

static void append_any(drawing *d)
{
    int all = 0, i = 0;
    for (int k = 0; k < DRAWERS; k++) all += drawers[k].often;
    for (int left = chance(all); left >= drawers[i].often; i++) left -= drawers[i].often;
    append_layer(d, drawers[i].layer, -1);
}

/* One more output: some of the values that nobody reads, and one more, joined into one row of
 * numbers, and a layer with the activation that the loss wants. */
static void append_output(drawing *d, loss_kind loss)
{
    static const char *const activations[] = { "linear", "softmax", "sigmoid" };
    random_graph *g = d->g;
    const int n = g->n;
    bool read[STEPS_MAX] = { false };
    step join = { .layer = "Concatenate" };
    for (int i = 0; i < n; i++)
        for (int k = 0; k < g->step[i].n_in; k++) read[g->step[i].in[k]] = true;
    for (int k = 0; k < g->n_out; k++) read[g->out[k]] = true;
    read[chance(n)] = false;
    for (int i = n - 1; i >= 0 && join.n_in < INS_MAX; i--) {
        if (read[i] || count_of(&g->step[i]) > ROW_MAX) continue;
        if (g->step[i].shape.rank == 1)
            join.in[join.n_in++] = i;
        else if (append(d, (step){ .layer = "Flatten", .n_in = 1, .in = { i } }, -1))
            join.in[join.n_in++] = g->n - 1;
    }
    if (join.n_in > 1) append(d, join, -1);
    step head = { .layer = "Dense", .n_in = 1, .in = { g->n - 1 } };
    GIVE_INT(&head, "units", loss == LOSS_SPARSE ? 2 + chance(3) : 1 + chance(3));
    GIVE_STR(&head, "activation", activations[loss]);
    if (!append(d, head, -1)) return;
    g->loss[g->n_out] = loss;
    g->loss_weight[g->n_out] = percent(50) ? 1 : 0.5 + 0.25 * chance(6);
    g->out[g->n_out++] = g->n - 1;
}

/* Images, volumes, rows of steps or of numbers, real or whole: such as `layer` may be called on. */
static void append_input(drawing *d, const char *layer)
{
    step s = { .layer = "InputLayer" };
    const bool volume = strstr(layer, "3D") != NULL, steps = strstr(layer, "1D") != NULL;
    const bool words = strstr(layer, "Embedding") != NULL;
    const bool colours = !strcmp(layer, "RandomHue") || !strcmp(layer, "RandomSaturation");
    if (!volume && !steps && !words && (strstr(layer, "Random") || percent(60)))
        s.shape = (keel_shape){ 3,
                                { 1 + chance(IMAGE_MAX), 1 + chance(IMAGE_MAX),
                                  colours ? 3 : 1 + chance(CHANNELS_MAX) } };
    else if (!steps && !words && (volume || percent(25)))
        s.shape = (keel_shape){
            4, { 1 + chance(4), 1 + chance(5), 1 + chance(5), 1 + chance(CHANNELS_MAX) }
        };
    else
        s.shape = (keel_shape){ steps ? 2 : 1 + chance(2), { 1 + chance(12), 1 + chance(4) } };
    if (words || (s.shape.rank < 3 && percent(50))) s.ids = 2 + chance(6);
    append(d, s, -1);
}

/* The graph of a seed. One layer is wanted in it, where it fits: neighbouring seeds want all.
 * certain: it has no layer that draws numbers while it trains. */
static keel_status draw_graph(random_graph *g, uint64_t seed, bool certain)
{
    drawing d = { .g = g, .certain = certain };
    const char *wanted = drawers[seed % DRAWERS].layer;
    bool there = false;
    chance_seed(seed);
    for (int i = 0; i < 8; i++) chance(2);
    *g = (random_graph){ .seed = seed, .rows = 1 + chance(7), .weighted = percent(25) };
    g->batch = percent(50) ? g->rows : 1 + chance((int)g->rows);
    KEEL_TRY(keel_model_create(&d.m, NULL, KEEL_FLOAT64, seed));
    append_input(&d, wanted);
    if (percent(25)) append_input(&d, "");
    const int n = 3 + chance(12), n_out = percent(70) ? 1 : 2 + chance(2);
    for (int tries = 0; tries < 4 * n && g->n < n; tries++) {
        there = there || append_layer(&d, wanted, -1);
        const int way = chance(10);
        if (way < 2)
            append_again(&d);
        else if (way < 5)
            append_pattern(&d);
        else
            append_any(&d);
    }
    for (int i = 0; i < n_out; i++)
        append_output(&d, percent(60) ? LOSS_MSE : (loss_kind)chance(LOSS_KINDS));
    keel_model_destroy(d.m);
    return KEEL_OK;
}

#endif
