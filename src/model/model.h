/* The parts of a model, for the rooms that compile, train and save it.
 *
 * A model is a list of layers and a list of calls of them (nodes, in Keras's words). A call takes
 * symbols and makes one symbol for each of its outputs. Emitting a model walks the calls in order
 * and lets each layer add its ops to a graph. A new call is first emitted into a graph of its own,
 * which checks its shapes.
 *
 * A layer may itself be a model (keel_model_layer.inner), several levels deep. Only the outermost
 * model has weights, is compiled and is saved; a model inside it has its own layers and calls. A
 * layer that holds layers (TimeDistributed) or makes them (MultiHeadAttention) has them in a model
 * without calls: the layer calls them itself.
 *
 * Layers are in the order of Keras's model.layers, because this order decides the paths of the
 * weights in the file, the order of the weights, and the order of the optimizer's variables. It is
 * final once the model is finished. */
#ifndef KEEL_MODEL_MODEL_H
#define KEEL_MODEL_MODEL_H
#include "graph/graph.h"
#include "keel/model.h"
#include "layers/layer.h"
#include "losses/loss.h"
#include "metrics/metric.h"
#include "model/live.h"
#include "model/row_states.h"
#include "optimizers/loss_scale.h"
#include "optimizers/optimizer.h"

enum { KEEL_LAYER_WEIGHTS_MAX = 8 };

typedef struct keel_model_node { /* one call of a layer: a node of Keras */
    int layer;
    int index; /* number of this call among those of its layer, from 0 */
    int n_in, n_mask;
    keel_symbol *in; /* [n_in + n_mask], made by earlier nodes; after the inputs come the masks of
                        the first n_mask inputs, if the caller gave any; -1: none */
    int n_out;
    keel_symbol out; /* its outputs are the symbols out .. out + n_out - 1 */
    json_t *call;    /* for an operation, its arguments as in layers/layer.h; else NULL */
    int turn; /* how many calls of layers Keras runs before it, those inside of models included */
    bool inference; /* a model called with training=False, which holds while the outer model trains,
                       too */
} keel_model_node;

typedef struct keel_model_symbol { /* an output of a call */
    int node, output;
    keel_spec spec; /* of one row */
    bool masked;
    bool taken;     /* a layer that removes masks was called on it (keel_layer.takes_masks) */
    keel_spec mask; /* of one row of its mask, if it has one */
} keel_model_symbol;

typedef struct keel_model_layer {
    const keel_layer *kind;
    void *args;        /* kind->type.args_size bytes */
    char *name;        /* unique among the layers of the same model */
    const char *key;   /* the key by which the layer that has it calls it; NULL: it is in a model */
    keel_model *inner; /* the model that the layer is, or whose layers it holds (inner->held); NULL:
                          neither */
    char *label;       /* "base/conv2d_1": the name after those of the models around it */
    char *path;        /* in model.weights.h5: "layers/conv2d_1"; NULL: it has no group there */
    int stream;     /* of random numbers, in its first call; label, path, stream are final with the
                       model */
    bool trainable; /* as the user last set it, for the layer or for a model around it */
    keel_dtype compute;   /* keel_layer_common.compute; has an effect if the model is float32 */
    keel_object activity; /* its activity_regularizer; type NULL: none */
    keel_spec input;      /* an InputLayer's: the spec of one row */
    int64_t batch;        /* an InputLayer's fixed batch size; -1: any */
    int n_weight;
    int weight[KEEL_LAYER_WEIGHTS_MAX]; /* indices into the outermost model's weights, in Keras's
                                           order of vars */
    int n_node;                         /* calls */
    int last_node;                      /* the last of them */
} keel_model_layer;

/* A weight: `info` is what the graph and the program see; `data` is the host copy, dense, of
 * info.spec.dtype (the model's). Its index is its keel_variable. */
typedef struct keel_model_weight {
    keel_weight_info info; /* info.name is "conv2d/kernel" */
    keel_object initializer;
    keel_model *owner; /* the model whose layer has it */
    int layer;
    bool state;     /* not trainable by its kind */
    bool besides;   /* Keras's files do not have it (keel_weight_decl) */
    bool trainable; /* trained: its layer is trainable, and so is what holds or made that */
    void *data;     /* 64-byte aligned, written by keel_model_set_weight, load and training */
    void *own;      /* the model's memory for it, while data is in that of a function: lend.h */
    char *path;     /* "layers/conv2d/vars/0"; final with the model */
} keel_model_weight;

typedef struct keel_model_metric {
    char *name;         /* the name in logs and histories: "accuracy", or the config's name */
    keel_object metric; /* type NULL: `name` ("accuracy", "acc", "crossentropy", "ce") is resolved
                           by keel_metric_resolve when the target's shape is known */
    struct keel_model *values; /* the program that gives its values; NULL: it has none */
    int output;
    bool weighted;
} keel_model_metric;

/* One of the optimizers that compile chose; mostly there is only one. */
typedef struct keel_model_optimizer {
    char
        *pattern; /* of a MultiOptimizer: which weights it moves; NULL: all that no pattern names */
    keel_object optimizer;
    double learning_rate, number; /* number: keel_optimizer.number */
    char *schedule;   /* class of the learning rate's schedule; NULL: the rate is a number */
    keel_object rate; /* the schedule; type NULL: Keel lacks it, so training needs a number first */
    bool scheduled;   /* the schedule was set later: the config does not have it */
} keel_model_optimizer;

/* What compile chose. The optimizer's state is kept here between fits and when saved. */
typedef struct keel_model_compiled {
    bool given;
    bool multi; /* the optimizers are those of a MultiOptimizer, in its order */
    int n_optimizer;
    keel_model_optimizer *optimizer; /* [n_optimizer] the last is the one without a pattern */
    bool wrapped;                    /* the config has a LossScaleOptimizer around it */
    keel_loss_scale_args loss_scale_args;
    keel_object loss[KEEL_OUTPUTS_MAX];          /* by output; type NULL: this output has no loss */
    struct keel_model *values[KEEL_OUTPUTS_MAX]; /* the program of a loss; NULL: it has none */
    double loss_weight[KEEL_OUTPUTS_MAX];
    int n_metric;
    keel_model_metric metric[2 * KEEL_METRICS_MAX];
    json_t *config; /* compile_config as it is written, or unchanged as it was read, except for the
                       learning rate */

    bool by_file;   /* read from a file: a metric that Keel does not have is not an error */
    char *left_out; /* metrics of the file that Keel does not have, by name; NULL: none */
    bool left_out_of[KEEL_OUTPUTS_MAX]; /* which outputs they are of */

    /* Variables of the file's optimizer, which moved other weights; 0: none are left out. */
    int64_t state_left_out;
    bool built; /* in Keras the optimizer has its slots before it trains: it was read from a file */
    keel_state_loaded state_loaded; /* by load_weights */

    float loss_scale;   /* where keel_model_scales_loss */
    int64_t good_steps; /* since it last moved */
    int64_t iterations; /* steps done */
    int *moved_by;      /* [n_weight of the model] which optimizer moves a weight */
    int n_slot;         /* for each trainable weight; the most that one of the optimizers has */
    int n_state;        /* n_slot * (number of trainable weights) */
    /* [n_state]: slot k of trainable weight t is at t * n_slot + k, in the model's dtype; data
     * NULL: a slot without memory. Files have Keras's order (Adam's velocity_hat after all others).
     */
    keel_tensor *state;
    /* The state is not here, and has no memory, only its shapes: processes have parts of it, or it
     * is lost with one of them. Files of the model are without it. */
    bool stateless;
    bool unread; /* it is not here since it stays in the file: keel_model_load_without_state */
} keel_model_compiled;

struct keel_model {
    char *name;
    keel_dtype dtype;
    keel_dtype compute; /* of the model's own policy; if it is float16, training scales the loss */
    uint64_t seed;
    bool sequential, functional; /* neither: empty yet */
    bool finished; /* it has outputs; from now on only keel_model_add to a Sequential may follow */
    bool held;     /* not a model: the layers that a layer of `outer` holds or made */
    bool made;     /* the layer made them */
    const char
        *list; /* the layers are held in the list with that name; NULL: each by its own key */
    keel_model *outer;  /* the model whose layer it is; NULL: it is the outermost, which has all the
                           weights */
    bool without_state; /* it was loaded so */
    /* Stages of pipelines that read its weights where they are, at any time. */
    _Atomic int readers;
    uint64_t changes; /* how often weights were written, to find out whether a copy is old */
    int64_t work;     /* calls of layers, those inside of models included */

    int n_layer;
    keel_model_layer *layer;
    int n_weight;
    keel_model_weight *weight;
    int n_node;
    keel_model_node *node;
    int n_symbol;
    keel_model_symbol *symbol; /* a keel_symbol is an index into it */
    int n_input;
    keel_symbol *input; /* of InputLayers, in the order of the model's inputs */
    int n_output;
    keel_symbol *output;
    const char **output_name; /* no two alike; NULL: one output, named as its layer */
    /* Of a model that was read: where each input and output is in its structure, as a list of keys
     * and places (["right", "u"], [0]). NULL: in a list. */
    json_t *input_paths, *output_paths;

    keel_row_states row_states; /* of stateful layers; empty before the first run */

    keel_model_live *live; /* while a fit, evaluate or predict runs; else NULL */
    keel_model_compiled compiled;
    char *refused; /* why the compile_config of the file cannot be used; NULL: it can, or there is
                      none, or another was given since */
    int64_t n_class;
    char **class_names; /* [n_class]: the names of the labels 0, 1, ...; none: not known */
    int n_kept;
    char **kept;         /* names for others to keep: keel_model_keep_name */
    json_t *file_config; /* config.json of a loaded model; written back except for what changed */
};

/* What a model is emitted for, and the results. */
typedef struct keel_model_emission {
    keel_dtype real;
    bool training;
    bool scored;            /* losses will follow: terms that layers add are emitted, too */
    const keel_spec *specs; /* [m->n_input], of one row of each input; NULL: those of the model, as
                               real numbers */
    keel_graph *graph;      /* out: the caller's */
    keel_value *input;      /* [m->n_input], filled */
    keel_value *output;     /* [m->n_output], filled */
    keel_value *mask; /* [m->n_output], filled: masks, as in layers/layer.h; NULL: not wanted */
} keel_model_emission;

/* Emits all layers into a new graph. The weights are the model's (keel_variable = index into
 * m->weight), with specs of dtype `real`, and shapes are checked against them. The model is not
 * changed, so any thread may call this. */
keel_status keel_model_emit(const keel_model *m, keel_model_emission *e);

/* values.c. Adds the program of a loss or metric behind an output: *out are its values. */
keel_status keel_model_emit_values(const keel_model *program, keel_graph *g, keel_value target,
                                   keel_value prediction, keel_value *out);

/* Whether a layer reads its input when rows are read. Then the graph has extra inputs for it
 * (keel_graph.host). */
bool keel_model_reads_rows(const keel_model *m);

/* A copy of the text that lives as long as the model; equal texts have one copy. NULL: no memory.
 */
const char *keel_model_keep_name(keel_model *m, const char *name);

/* Give each output a name that no other has, once they are all known. */
keel_status keel_model_name_outputs(keel_model *m);

/* Where an end is in the structure of the model's inputs or outputs: "right/u", "rest/0"; "" if it
 * is the only one. `last`: a name for the last step where that is a place in a list, as in Keras's
 * logs of losses; NULL: the place. Cut to `size`. */
void keel_model_path_text(char *text, size_t size, const json_t *paths, int end, const char *last);

/* The spec of a symbol: of one row. */
const keel_spec *keel_model_spec(const keel_model *m, keel_symbol s);

static inline keel_model *keel_model_outermost(const keel_model *m)
{
    while (m->outer) m = m->outer;
    return (keel_model *)m;
}

/* Whether the layer is a model. */
static inline bool keel_model_layer_is_model(const keel_model_layer *l)
{
    return l->inner && !l->inner->held;
}

/* The node that made a symbol. */
static inline const keel_model_node *keel_model_maker(const keel_model *m, keel_symbol s)
{
    return &m->node[m->symbol[s].node];
}

/* How many weights training changes. keel_model_trainable gives the t-th of them (index into
 * m->weight), in the order of Keras's model.trainable_variables. */
int keel_model_trainable_count(const keel_model *m);
int keel_model_trainable(const keel_model *m, int t);

/* Whether training multiplies the loss by a scale: the optimizer is wrapped, or Keras would wrap it
 * since the model's policy is mixed_float16. */
bool keel_model_scales_loss(const keel_model *m);

/* Makes new state for the optimizer: iterations 0, the learning rate of its args, slots of zeros.
 */
keel_status keel_model_state_reset(keel_model *m);

#endif
