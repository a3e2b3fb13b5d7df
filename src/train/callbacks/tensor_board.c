/* Event files for TensorBoard, with Keras's names: epoch_loss in train/ and validation/, batch_loss
 * with update_freq, evaluation_loss_vs_iterations, histograms of weights, a graph of the layers.
 * The first images that the model reads can be shown too (write_inputs, which Keras does not have).
 */
#include "base/memory.h"
#include "io/events.h"
#include "io/png_write.h"
#include "model/parts.h"
#include "train/callbacks/watcher.h"
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { TRAIN, TEST, INPUTS_MAX = 8 };

typedef struct args_t {
    char *log_dir, *update_freq;
    int64_t histogram_freq, write_inputs;
    bool write_graph, write_steps_per_second;
} args_t;

typedef struct state_t {
    int64_t train_steps;
} state_t;

static const keel_field fields[] = {
    KEEL_STRING(args_t, log_dir, "\"logs\"", "the folder of the event files"),
    KEEL_INT(args_t, histogram_freq, "0", 0, 1e9, "epochs between histograms of weights; 0: none"),
    KEEL_BOOL(args_t, write_graph, "true", "show the layers as a graph"),
    KEEL_REFUSE("write_images", "false", "it writes numbers and histograms of weights"),
    KEEL_BOOL(args_t, write_steps_per_second, "false", "show the speed"),
    KEEL_STRING(args_t, update_freq, "\"epoch\"",
                "epoch; batch or a number of steps: also the logs of steps"),
    KEEL_REFUSE("profile_batch", "0", "it profiles TensorFlow; keel fit --trace writes a profile"),
    KEEL_REFUSE("embeddings_freq", "0", "it writes no view of embeddings"),
    KEEL_REFUSE("embeddings_metadata", "null", "it writes no view of embeddings"),
    KEEL_INT(args_t, write_inputs, "0", 0, INPUTS_MAX, "show so many images of the first step"),
    { 0 },
};

static const keel_field state_fields[] = {
    KEEL_INT(state_t, train_steps, "0", 0, 0, "steps of training"),
    { 0 },
};

/* Steps from one entry to the next; 0: after epochs; -1: neither. */
static int64_t steps_of(const args_t *a)
{
    char *end;
    if (!a->update_freq || !strcmp(a->update_freq, "epoch")) return 0;
    if (!strcmp(a->update_freq, "batch")) return 1;
    const long long n = strtoll(a->update_freq, &end, 10);
    return *end || n < 1 ? -1 : n;
}

static keel_status check(const void *args)
{
    const args_t *a = args;
    if (!a->log_dir || !*a->log_dir)
        return keel_fail(KEEL_EARG, "TensorBoard: log_dir names a folder");
    if (steps_of(a) >= 0) return KEEL_OK;
    return keel_fail(KEEL_EARG,
                     "TensorBoard: update_freq is '%s'; it must be epoch, batch or a number of "
                     "steps above 0",
                     a->update_freq);
}

/* ---- files ----------------------------------------------------------------------------------- */

typedef struct own_t {
    keel_events *events[2]; /* made when first needed */
    bool shown;             /* the inputs */
} own_t;

static void release(keel_watching *w)
{
    own_t *o = w->own;
    if (!o) return;
    for (int i = 0; i < 2; i++) keel_events_close(o->events[i]);
    keel_free(o);
    w->own = NULL;
}

static keel_status events_of(keel_watching *w, int which, keel_events **out)
{
    static const char *const names[] = { "train", "validation" };
    own_t *o = w->own;
    keel_text folder = { 0 };
    if (!o && !(o = w->own = keel_calloc(1, sizeof *o))) return KEEL_ENOMEM;
    keel_text_add(&folder, "%s/%s", ((const args_t *)w->args.args)->log_dir, names[which]);
    keel_status s = folder.failed ? KEEL_ENOMEM : KEEL_OK;
    if (s >= 0 && !o->events[which]) s = keel_events_create(&o->events[which], folder.data);
    keel_text_free(&folder);
    *out = o->events[which];
    return s;
}

/* One number for each of the logs; `val` chooses those with val_, which the name then lacks. */
static keel_status write_logs(keel_watching *w, int which, const char *form, const keel_logs *logs,
                              bool val, int64_t step)
{
    keel_events *e;
    for (int i = 0; i < logs->count; i++) {
        const bool is_val = !strncmp(logs->name[i], "val_", 4);
        keel_text tag = { 0 };
        if (is_val != val) continue;
        KEEL_TRY(events_of(w, which, &e));
        const char *before = strchr(form, '*'), *name = logs->name[i] + (val ? 4 : 0);
        keel_text_add(&tag, "%.*s%s%s", (int)(before - form), form, name, before + 1);
        const keel_status s =
            tag.failed ? KEEL_ENOMEM : keel_events_scalar(e, tag.data, step, logs->value[i]);
        keel_text_free(&tag);
        KEEL_TRY(s);
    }
    return KEEL_OK;
}

/* ---- the graph ------------------------------------------------------------------------------- */

static keel_status write_graph(keel_watching *w, const keel_model *m)
{
    keel_events *e = NULL;
    keel_status s = events_of(w, TRAIN, &e);
    int most = 1;
    for (int i = 0; i < m->n_node; i++)
        if (m->node[i].n_in > most) most = m->node[i].n_in;
    if (s < 0) return s;
    keel_events_node *node = keel_calloc((size_t)m->n_node, sizeof *node);
    keel_text *name = keel_calloc((size_t)m->n_node, sizeof *name);
    const char **in = keel_calloc((size_t)m->n_node * (size_t)most, sizeof *in);
    s = node && name && in ? KEEL_OK : KEEL_ENOMEM;
    for (int i = 0; s >= 0 && i < m->n_node; i++) {
        const keel_model_node *n = &m->node[i];
        const keel_model_layer *l = &m->layer[n->layer];
        keel_text_add(&name[i], n->index ? "%s/call_%d" : "%s", l->name, n->index);
        if (name[i].failed) s = KEEL_ENOMEM;
        for (int k = 0; k < n->n_in; k++) in[i * most + k] = name[m->symbol[n->in[k]].node].data;
        node[i] = (keel_events_node){ .name = name[i].data,
                                      .op = l->kind->type.name,
                                      .input = &in[i * most],
                                      .n_input = n->n_in };
    }
    if (s >= 0) s = keel_events_graph(e, node, m->n_node);
    for (int i = 0; name && i < m->n_node; i++) keel_text_free(&name[i]);
    keel_free(node);
    keel_free(name);
    keel_free(in);
    return s;
}

/* ---- weights --------------------------------------------------------------------------------- */

static keel_status write_weight(keel_watching *w, const keel_model *m, int v, int64_t epoch)
{
    const keel_model_weight *x = &m->weight[v];
    keel_events *e;
    keel_text tag = { 0 };
    KEEL_TRY(events_of(w, TRAIN, &e));
    keel_model_variable_path(m, v, &tag);
    keel_text_add(&tag, "/histogram");
    const keel_status s = tag.failed ? KEEL_ENOMEM
                                     : keel_events_histogram(e, tag.data, epoch, m->dtype, x->data,
                                                             keel_shape_count(&x->info.spec.shape));
    keel_text_free(&tag);
    return s;
}

/* ---- images of the inputs -------------------------------------------------------------------- */

static double value_at(const keel_data_field *f, const void *data, int64_t i)
{
    switch (f->dtype) {
    case KEEL_UINT8:
        return ((const uint8_t *)data)[i];
    case KEEL_FLOAT32:
        return (double)((const float *)data)[i];
    case KEEL_FLOAT64:
        return ((const double *)data)[i];
    default:
        return 0;
    }
}

/* Bytes stay; other values from 0 to 1, or to 255, become 0 to 255; any other range is stretched.
 */
static void paint(unsigned char *pixel, const keel_data_field *f, const void *data, int64_t first,
                  int64_t n)
{
    double least = 0, most = 0;
    for (int64_t i = 0; i < n; i++) {
        const double v = value_at(f, data, first + i);
        if (!isfinite(v)) continue;
        least = fmin(least, v);
        most = fmax(most, v);
    }
    if (f->dtype == KEEL_UINT8 || (least == 0 && most > 1 && most <= 255))
        most = 255;
    else if (least == 0 && most <= 1)
        most = 1;
    for (int64_t i = 0; i < n; i++) {
        const double v = 255 * (value_at(f, data, first + i) - least) / (most - least);
        pixel[i] = (unsigned char)(v > 0 ? v < 255 ? v + 0.5 : 255 : 0);
    }
}

static keel_status write_inputs(keel_watching *w, const keel_batch *b, int field)
{
    const args_t *a = w->args.args;
    const keel_data_field *f = &b->spec[field];
    const int64_t *dim = f->shape.dim, n = keel_shape_count(&f->shape);
    const int64_t rows = b->end < a->write_inputs ? b->end : a->write_inputs;
    keel_events_image image[INPUTS_MAX] = { { 0 } };
    keel_events *e;
    if (f->shape.rank != 3 || (dim[2] != 1 && dim[2] != 3 && dim[2] != 4))
        return keel_fail(KEEL_EARG, "write_inputs: the first input is no image");
    if (f->dtype != KEEL_UINT8 && !keel_dtype_is_real(f->dtype))
        return keel_fail(KEEL_EARG, "write_inputs: images of %s", keel_dtype_name(f->dtype));
    KEEL_TRY(events_of(w, TRAIN, &e));
    keel_feed_read(b, 0, rows);
    unsigned char *pixel = keel_calloc((size_t)n, 1);
    keel_status s = pixel ? KEEL_OK : KEEL_ENOMEM;
    for (int64_t i = 0; s >= 0 && i < rows; i++) {
        void *png = NULL;
        paint(pixel, f, b->field[field], i * n, n);
        s = keel_png_write(&png, &image[i].n_bytes, pixel, dim[0], dim[1], (int)dim[2]);
        image[i].png = png;
    }
    if (s >= 0) s = keel_events_images(e, "inputs", 0, dim[1], dim[0], image, (int)rows);
    for (int i = 0; i < INPUTS_MAX; i++) keel_free((void *)image[i].png);
    keel_free(pixel);
    return s;
}

/* ---- its functions --------------------------------------------------------------------------- */

static keel_status on_train_begin(void *context, const keel_moment *at)
{
    keel_watching *w = context;
    keel_events *e;
    release(w);
    KEEL_TRY(keel_watching_reset(w));
    KEEL_TRY(events_of(w, TRAIN, &e)); /* an unwritable folder fails before the first step */
    return ((const args_t *)w->args.args)->write_graph ? write_graph(w, at->model) : KEEL_OK;
}

static keel_status on_train_batch_begin(void *context, const keel_moment *at)
{
    keel_watching *w = context;
    own_t *o = w->own;
    if (o->shown || !((const args_t *)w->args.args)->write_inputs) return KEEL_OK;
    o->shown = true;
    return write_inputs(w, at->watch->batch, at->watch->input);
}

static keel_status on_train_batch_end(void *context, const keel_moment *at)
{
    keel_watching *w = context;
    state_t *s = w->state;
    const int64_t every = steps_of(w->args.args);
    s->train_steps++;
    if (!every || s->train_steps % every) return KEEL_OK;
    return write_logs(w, TRAIN, "batch_*", at->logs, false, s->train_steps);
}

static keel_status on_test_end(void *context, const keel_moment *at)
{
    keel_model_pull(at->model, KEEL_LIVE_NUMBERS);
    return write_logs(context, TEST, "evaluation_*_vs_iterations", at->logs, false,
                      at->model->compiled.iterations);
}

static keel_status on_epoch_end(void *context, const keel_moment *at)
{
    keel_watching *w = context;
    const args_t *a = w->args.args;
    keel_events *e;
    KEEL_TRY(write_logs(w, TRAIN, "epoch_*", at->logs, false, at->epoch));
    KEEL_TRY(write_logs(w, TEST, "epoch_*", at->logs, true, at->epoch));
    double rate;
    if (keel_model_schedule(at->model) && keel_model_learning_rate(at->model, &rate) >= 0) {
        KEEL_TRY(events_of(w, TRAIN, &e));
        KEEL_TRY(keel_events_scalar(e, "epoch_learning_rate", at->epoch, rate));
    }
    if (a->write_steps_per_second && at->seconds > 0) {
        KEEL_TRY(events_of(w, TRAIN, &e));
        KEEL_TRY(keel_events_scalar(e, "epoch_steps_per_second", at->epoch,
                                    (double)at->step / at->seconds));
    }
    if (!a->histogram_freq || at->epoch % a->histogram_freq) return KEEL_OK;
    keel_model_pull(at->model, KEEL_LIVE_WEIGHTS);
    for (int v = 0; v < at->model->n_weight; v++)
        KEEL_TRY(write_weight(w, at->model, v, at->epoch));
    return KEEL_OK;
}

static keel_status on_train_end(void *context, const keel_moment *at)
{
    keel_watching *w = context;
    own_t *o = w->own;
    keel_status s = KEEL_OK;
    (void)at;
    for (int i = 0; i < 2; i++) {
        const keel_status closed = keel_events_close(o->events[i]);
        if (s >= 0) s = closed;
        o->events[i] = NULL;
    }
    return s;
}

static int reads(const void *args)
{
    return ((const args_t *)args)->histogram_freq ? KEEL_LIVE_WEIGHTS : 0;
}

static const char *output(const void *args)
{
    return ((const args_t *)args)->log_dir;
}

const keel_watcher keel_watcher_tensor_board = {
    .type = {
        .name = "TensorBoard",
        .module = "keras.callbacks",
        .help = "write what TensorBoard shows: logs, histograms of weights, a graph, inputs",
        .args_size = sizeof(args_t),
        .fields = fields,
    },
    .state = { .name = "TensorBoard", .args_size = sizeof(state_t), .fields = state_fields },
    .on = {
        .on_train_begin = on_train_begin,
        .on_train_end = on_train_end,
        .on_epoch_end = on_epoch_end,
        .on_train_batch_begin = on_train_batch_begin,
        .on_train_batch_end = on_train_batch_end,
        .on_test_end = on_test_end,
    },
    .check = check,
    .reads = reads,
    .output = output,
    .fills_folder = true,
    .release = release,
    .only_writes = true,
};
