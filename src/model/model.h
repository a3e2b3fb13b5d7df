/* What the model is made of, for the rooms that compile, train and save it.
 *
 * A model is a list of layers and a list of calls of them (nodes, as Keras says). A call takes
 * symbols and makes one for each of its outputs. Emitting a model walks the calls in order and lets
 * each layer add its ops to a graph; a new call is emitted into a graph of its own first, so that
 * shapes are checked when it is made.
 *
 * A layer may be a model itself (keel_model_layer.inner), several deep. Only the outermost model
 * has weights, compiles and is saved; a model inside it has layers and calls of its own. A layer
 * that holds layers (TimeDistributed) or makes them (MultiHeadAttention) has them in a model that
 * has no calls: the layer itself calls them.
 *
 * Order: layers stand in the order in which Keras would list them (model.layers), for that order
 * gives the paths of the weights in the file, the order of the weights, and the order of the
 * optimizer's variables. It is final once the model is finished. */
#ifndef KEEL_MODEL_MODEL_H
#define KEEL_MODEL_MODEL_H
#include "graph/graph.h"
#include "keel/model.h"
#include "layers/layer.h"
#include "losses/loss.h"
#include "metrics/metric.h"
#include "optimizers/optimizer.h"

enum { KEEL_LAYER_WEIGHTS_MAX = 8 };

typedef struct keel_model_node { /* one call of a layer: a node of Keras */
    int layer;
    int index; /* the how-manieth call of its layer, from 0 */
    int n_in, n_mask;
    keel_symbol *in; /* [n_in + n_mask], made by nodes before this one; behind the inputs the masks
                        of the first n_mask of them, where the caller gave any */
    int n_out;
    keel_symbol out; /* its outputs are the symbols out .. out + n_out - 1 */
    json_t *call;    /* of an operation: its arguments, as layers/layer.h has them; or NULL */
    int turn;       /* calls of layers, those inside of models counted, that Keras runs before it */
    bool inference; /* a model called with training=False: also where the outer one trains */
} keel_model_node;

typedef struct keel_model_symbol { /* an output of a call */
    int node, output;
    keel_spec spec; /* of one row */
    bool masked;
    bool taken;     /* a layer was called on it that takes masks away (keel_layer.takes_masks) */
    keel_spec mask; /* of one row of its mask, where it has one */
} keel_model_symbol;

typedef struct keel_model_layer {
    const keel_layer *kind;
    void *args;      /* kind->type.args_size bytes */
    char *name;      /* unique among the layers beside it */
    const char *key; /* by which the layer that holds or made it calls it; NULL: it is in a model */
    keel_model *inner; /* the layer is this model, or holds the layers of it (inner->held); NULL:
                          neither */
    char *label;       /* "base/conv2d_1": the name, after those of the models around it */
    char *path;        /* in model.weights.h5: "layers/conv2d_1"; NULL: it is not in there */
    int stream;     /* of chance, in its first call; label, path, stream are final with the model */
    bool trainable; /* as its user said, last of it or of a model around it */
    bool mixed;     /* its policy is mixed_bfloat16; counts where the model is of float32 */
    keel_object activity; /* its activity_regularizer; type NULL: none */
    keel_spec input;      /* an InputLayer's: the spec of one row */
    int64_t batch;        /* an InputLayer's fixed batch size; -1: any */
    int n_weight;
    int weight[KEEL_LAYER_WEIGHTS_MAX]; /* indices into the outermost model's weight, in Keras's
                                           order of vars */
    int n_node;                         /* calls */
    int last_node;                      /* the last of them */
} keel_model_layer;

/* A weight: `info` is what the graph and the program see, `data` the host copy, dense, of
 * info.spec.dtype (the model's). Its index is its keel_variable. */
typedef struct keel_model_weight {
    keel_weight_info info; /* info.name is "conv2d/kernel" */
    keel_object initializer;
    keel_model *owner; /* the model whose layer has it */
    int layer;
    bool state;     /* not trainable by nature */
    bool trainable; /* moved by training: the layer is, and what holds or made it */
    void *data;     /* 64-byte aligned, written by keel_model_set_weight, load and training */
    char *path;     /* "layers/conv2d/vars/0"; final with the model */
} keel_model_weight;

typedef struct keel_model_metric {
    char *name;         /* as shown in logs and histories: "accuracy", or the config's name */
    keel_object metric; /* type NULL: `name` ("accuracy", "acc", "crossentropy", "ce") is resolved
                           by keel_metric_resolve once the target's shape is known */
    int output;
    bool weighted;
} keel_model_metric;

/* What compile chose. The state of the optimizer lives here between fits and in files. */
typedef struct keel_model_compiled {
    bool given;
    keel_object optimizer;
    keel_object loss[KEEL_OUTPUTS_MAX]; /* by output; type NULL: this output has no loss */
    double loss_weight[KEEL_OUTPUTS_MAX];
    int n_metric;
    keel_model_metric metric[2 * KEEL_METRICS_MAX];
    json_t *config; /* compile_config as it is written, or as it was read: kept as it is, but for
                       the learning rate */

    bool by_file;   /* read from a file: a metric that Keel does not have is no error */
    char *left_out; /* metrics of the file that Keel does not have, by name; NULL: none */

    int64_t iterations;           /* steps done */
    double learning_rate, number; /* number: keel_optimizer.number */
    char *schedule;   /* the schedule of the learning rate, by class; NULL: the rate is a number */
    keel_object rate; /* the schedule; type NULL: Keel does not have it, so training waits for a
                         number */
    int n_slot;       /* per trainable weight, as optimizer->slots says */
    int n_state;      /* n_slot * (number of trainable weights) */
    /* [n_state]: trainable weight t's slot k at t * n_slot + k, of the model's dtype; data NULL: a
     * slot without memory. Files keep Keras's order (Adam's velocity_hat after all others). */
    keel_tensor *state;
} keel_model_compiled;

struct keel_model {
    char *name;
    keel_dtype dtype;
    uint64_t seed;
    bool sequential, functional; /* neither: empty yet */
    bool finished;     /* it has outputs; only keel_model_add to a Sequential may follow */
    bool held;         /* no model: the layers that a layer of `outer` holds or made */
    bool made;         /* the latter */
    keel_model *outer; /* whose layer it is; NULL: the outermost, which has all the weights */
    int64_t work;      /* calls of layers, those inside of models counted */

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
    /* Of a model that was read: where each input and output is in its structure, as a list of keys
     * and places (["right", "u"], [0]). NULL: in a list. */
    json_t *input_paths, *output_paths;

    keel_model_compiled compiled;
    char *refused; /* why the compile_config of the file cannot be followed; NULL: it is, or there
                      is none, or another was given since */
    int64_t n_class;
    char **class_names; /* [n_class]: what the labels 0, 1, ... are called; none: not known */
    int n_kept;
    char **kept;         /* names that were handed out: keel_model_keep_name */
    json_t *file_config; /* config.json of a loaded model: written back but for what changed */
};

/* What a model is emitted for, and what comes of it. */
typedef struct keel_model_emission {
    keel_dtype real;
    bool training;
    bool scored;            /* there will be losses: terms that layers add are emitted too */
    const keel_spec *specs; /* [m->n_input], of one row of each input; NULL: those of the model, as
                               real numbers whatever their type is */
    keel_graph *graph;      /* out: the caller's */
    keel_value *input;      /* [m->n_input], filled */
    keel_value *output;     /* [m->n_output], filled */
    keel_value *mask;       /* [m->n_output], filled: the output's mask, as layers/layer.h has it;
                               NULL: nobody asks */
} keel_model_emission;

/* Emit all layers into a fresh graph. The weights are the model's (keel_variable = index into
 * m->weight; their specs are emitted with dtype `real`); shapes are checked against them. The model
 * is not changed, so any thread may call it. */
keel_status keel_model_emit(const keel_model *m, keel_model_emission *e);

/* Does a layer take its input where rows are read? Then the graph has inputs of its own for that
 * (keel_graph.host). */
bool keel_model_reads_rows(const keel_model *m);

/* A copy of the text that lives as long as the model; the same for equal texts. NULL: no memory. */
const char *keel_model_keep_name(keel_model *m, const char *name);

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

/* Is the layer a model? */
static inline bool keel_model_layer_is_model(const keel_model_layer *l)
{
    return l->inner && !l->inner->held;
}

/* The node that made a symbol. */
static inline const keel_model_node *keel_model_maker(const keel_model *m, keel_symbol s)
{
    return &m->node[m->symbol[s].node];
}

/* How many weights training moves; keel_model_trainable gives the t-th of them (index into
 * m->weight), in the order of Keras's model.trainable_variables. */
int keel_model_trainable_count(const keel_model *m);
int keel_model_trainable(const keel_model *m, int t);

/* Make the optimizer's state anew: iterations 0, learning rate of its args, slots of zeros. */
keel_status keel_model_state_reset(keel_model *m);

#endif
