/* A layer is its arguments, its weights, and the ops it emits. One file each, in Keras's folders.
 */
#ifndef KEEL_LAYERS_LAYER_H
#define KEEL_LAYERS_LAYER_H
#include "activations/activation.h"
#include "base/field.h"
#include "constraints/constraint.h"
#include "graph/graph.h"
#include "initializers/initializer.h"
#include "ops/all.h"
#include "regularizers/regularizer.h"

typedef struct keel_weight_decl {
    const char *name; /* Keras's: "kernel", "bias", "gamma", "moving_mean" */
    keel_shape shape;
    const keel_object *initializer; /* of the layer's args */
    const keel_object *regularizer; /* NULL or type NULL: none */
    bool state;                     /* not trainable by nature: moving mean */
    int lead; /* keel_weight_info.lead; the fans of an initializer are that matrix's, too */
    const keel_object *constraint; /* NULL or type NULL: none */
} keel_weight_decl;

#define KEEL_CALL_VALUE "keel_value"

/* How a layer calls one that it holds. */
typedef struct keel_call_of {
    const keel_value *in, *mask; /* [n_in] */
    int n_in;
    const void *how; /* keel_emit.how of the layer that is called */
} keel_call_of;

enum {
    KEEL_MASK_NONE = -1,   /* every place counts */
    KEEL_MASK_DEFAULT = -2 /* of an output: what Keras does where a layer says nothing */
};

/* What a layer emits into: a graph, and a store that makes its weights the first time.
 *
 * A mask travels beside a value and says which of its places count: real numbers, 1 for a place
 * that counts and 0 for one that does not, mostly [T] beside [T, C]. A layer that supports masking
 * passes the mask of its first input on to its first output; one that does not loses it. */
typedef struct keel_emit {
    keel_graph *graph;
    const void *args; /* of this layer instance */
    const char *name; /* of this layer instance */
    bool training;    /* of the graph */
    bool direct; /* by the layer that holds it, as Keras's layer.call: it adds no loss itself */
    const keel_object *activity; /* its activity_regularizer; type NULL: none */
    bool trainable; /* of this layer: a frozen BatchNormalization uses its moving statistics */
    int n_in;
    const keel_value *in;
    const keel_value *mask; /* [n_in] */
    bool mask_said;         /* the caller gave it; else it came beside the input */
    int n_out;              /* 1, until keel_emit_outputs */
    keel_value *out;        /* [n_out]; the layer sets them */
    keel_value *out_mask;   /* [n_out]; the layer may set them */
    const json_t
        *call; /* of an operation, or of a layer by_arguments: {"args", "kwargs"}, where
                  {KEEL_CALL_VALUE: i} stands for in[i]; NULL: called on its inputs alone */
    /* The k-th call of one emit is the layer's k-th weight, in Keras's order of layer.weights. */
    keel_status (*weight)(struct keel_emit *e, const keel_weight_decl *d, keel_variable *out,
                          keel_spec *spec);
    /* In keel_layer.make: a layer of that class is made, to be called as `key`, a text of the
     * program's. The config, which is taken over, may say its name; `trainable` and the policy are
     * those of this layer. NULL elsewhere. */
    keel_status (*make)(struct keel_emit *e, const char *key, const char *class_name,
                        json_t *config);
    /* Call a layer that this one holds or made, by its key, as often as need be. It must give one
     * output. */
    keel_status (*sub)(struct keel_emit *e, const char *key, const keel_value *in,
                       const keel_value *mask, int n_in, keel_value *out);
    /* The same of a layer of any number of outputs, at most *n_out, which becomes how many there
     * are; the layer is told `how` it is called. */
    keel_status (*sub_outs)(struct keel_emit *e, const char *key, const keel_call_of *call,
                            keel_value *out, int *n_out);
    const void *how; /* what the layer that holds this one tells it; NULL: nothing */
    /* The class of that layer; NULL: it is a model. */
    const struct keel_layer *(*sub_kind)(const struct keel_emit *e, const char *key);
    void *context;
} keel_emit;

typedef struct keel_layer {
    keel_type type;
    int min_inputs, max_inputs; /* 0, 0: InputLayer; max -1: any number, called on a list */
    bool by_chance;             /* it draws numbers: a second call would draw the same ones */
    bool supports_masking;      /* as in Keras: masks pass through it */
    bool takes_masks;           /* calls that Keras runs after its own find its inputs unmasked */
    bool operation;             /* of keras.ops: no weights, no policy, no `trainable` */
    bool by_arguments;          /* its calls have arguments by name, which keel_emit.call holds */
    const char *aliases;        /* Keras's other names of the class: "MaxPool2D|..."; NULL: none */
    bool reads_rows;            /* what it makes of its input is made where rows are read */
    bool last_dim; /* it looks at the last dim alone: one call does for all places before it */
    /* Keys of its config that are layers, in the order in which Keras's class sets them as
     * attributes; ends with NULL. The layer's weights come before theirs; in a file theirs are in
     * groups named for the keys. Its field table has each as a KEEL_IGNORE. NULL: none. */
    const char *const *held;
    const char *const
        *held_as; /* as the layer calls them, and their groups in a file; NULL: held */
    /* Make the layers that it calls itself, whose arguments follow from its own and from its
     * inputs, by e->make, in the order in which Keras's class sets them as attributes: once, before
     * it is first emitted. They are no part of the config; in a file they are in groups named for
     * their keys. Not beside `held`. NULL: it makes none. */
    keel_status (*make)(keel_emit *e);
    bool passes_activity; /* its activity_regularizer is for layers that it makes, not for it */
    bool cell;            /* one step of a layer that goes through time, which calls it: RNN */
    bool takes_states;    /* inputs behind the first are Keras's argument initial_state */
    bool uncast;          /* it takes its inputs in the type they have (Keras: no autocast) */
    bool counts; /* Keras has one more whole number behind its weights, always 0, in a file */
    keel_status (*emit)(keel_emit *e);
    /* Put keys into `config` that Keras wants in another form than the field table's; NULL: none.
     */
    keel_status (*to_config)(const void *args, json_t *config);
    /* A file of the layer beside the weights, in Keras's assets; name NULL: it has none. Reading it
     * takes the text of a file that is needed; `asset` gives the text to write, borrowed, or false
     * where all is in the config. `idf`: numbers that Keras keeps among the weights under that
     * name, *n of them, to be read or written in place; NULL: none. */
    const char *asset_name;
    bool (*needs_asset)(const void *args);
    keel_status (*read_asset)(void *args, const char *text, size_t n_bytes);
    bool (*asset)(const void *args, const char **text, size_t *n_bytes);
    float *(*idf)(const void *args, int64_t *n);
    const char *asset_again; /* a layer inside Keras's class, which has the file and the numbers
                                once more, in its own group; NULL: none */
} keel_layer;

/* What every layer has, whatever its table says. An InputLayer's shape is here too, because null
 * stands for any number of rows there. */
typedef struct keel_layer_common {
    const char *name; /* borrowed from the JSON; NULL: the user did not say */
    bool trainable;
    bool mixed;           /* the policy is mixed_bfloat16: weights in float32, values in bfloat16 */
    keel_shape shape;     /* InputLayer: of one row */
    int64_t batch;        /* InputLayer: a fixed batch size; -1: any */
    keel_dtype dtype;     /* InputLayer: of what is fed; float32 stands for the model's own type */
    keel_object activity; /* activity_regularizer; type NULL: none. Owned by whoever read it */
} keel_layer_common;

/* Read a layer's config: the common keys into *common, the others by the layer's table into `args`
 * (type.args_size zeroed bytes; on failure it holds nothing). Texts name the layer. */
keel_status keel_layer_read(const keel_layer *l, const json_t *config, void *args,
                            keel_layer_common *common);

/* A dim as Keras writes it: null where it is open. The caller's; NULL: no memory. */
json_t *keel_dim_json(int64_t dim);

/* Keras's names of dtype policies. KEEL_EUNSUP names what is not supported. */
keel_status keel_policy_find(const char *name, bool *mixed);
const char *keel_policy_name(bool mixed);
json_t *keel_policy_json(bool mixed); /* as in a config; the caller's; NULL: no memory */

/* The config that Keras would write. KEEL_ENOMEM or KEEL_OK. */
keel_status keel_layer_config(const keel_layer *l, const void *args,
                              const keel_layer_common *common, json_t **out);

/* Shorthands for emit: the spec of input i; an op of one output; the op that is all of a layer, on
 * all its inputs; an op on some values; an op on input 0 with n weights that e->weight gave. */
const keel_spec *keel_emit_in(const keel_emit *e, int i);
keel_status keel_emit_op(keel_emit *e, const keel_node_parts *parts, keel_value *out);
keel_status keel_emit_one(keel_emit *e, const keel_op *op, const void *args);
keel_status keel_emit_on(keel_emit *e, const keel_op *op, const void *args, const keel_value *in,
                         int n_in, keel_value *out);
keel_status keel_emit_weighted(keel_emit *e, const keel_op *op, const void *args,
                               const keel_variable *weight, const keel_spec *spec, int n_weight,
                               keel_value *out);
/* A value whose rows are made of those of the inputs where rows are read; `op` gets the layer's
 * args. KEEL_EUNSUP: one of them is neither an input of the model nor made so itself. */
keel_status keel_emit_host(keel_emit *e, keel_host_op op, const keel_spec *spec, keel_value *out);
/* More outputs than one: e->out and e->out_mask move. */
keel_status keel_emit_outputs(keel_emit *e, int n);
/* The first input that has a mask; -1: none has. */
int keel_emit_masked(const keel_emit *e);
/* Emit an activation given as an argument; none or "linear" emits nothing. */
keel_status keel_emit_activation(keel_emit *e, const keel_object *activation, keel_value in,
                                 keel_value *out);

/* activity.c. Make l1 * sum |in| + l2 * sum in^2, of a row, a term of the loss; and that of the
 * regularizer (type NULL: none) for all that the layer gives. Nothing where the graph has no loss.
 */
extern const keel_op keel_activity_op;
keel_status keel_emit_activity(keel_emit *e, double l1, double l2, keel_value in);
keel_status keel_emit_regularized(keel_emit *e, const keel_object *regularizer);

/* What many layers share. Images are [H, W, C]. */
keel_status keel_emit_image(const keel_emit *e, const keel_spec **in); /* input 0 has rank 3 */
/* For layers of one to three dims of places before the channels: input 0 as an image, [T, C] as a
 * view [T, 1, C], or as the volume that it is; what the op gave, without the dim of 1; an argument
 * of `dims` numbers as that of an image. */
keel_status keel_emit_as_image(keel_emit *e, int dims, keel_value *x, keel_shape *image);
keel_status keel_emit_from_image(keel_emit *e, int dims, keel_value y, keel_value *out);
keel_ints keel_image_ints(const keel_ints *a);
/* The same in another shape, a view. */
keel_status keel_emit_view(keel_emit *e, const keel_shape *shape, keel_value in, keel_value *out);
/* {before, behind} of each dim of a window that moves over places: zeros when !same, else
 * TensorFlow's rule: as many outputs as strides fit, the odd one of the padding at the end. */
void keel_same_padding(const keel_shape *places, bool same, const keel_ints *size,
                       const keel_ints *strides, const keel_ints *dilation, int64_t *pad);
/* Keras counts axes with the batch; -1 is the last. Gives the index among the dims of one row. */
keel_status keel_row_axis(const keel_emit *e, int64_t axis, int64_t *row_axis);
/* Keel's images are channels_last (choice 0); the other is refused by name. */
#define KEEL_DATA_FORMAT(args)                                                                     \
    KEEL_CHOICE(args, data_format, "\"channels_last\"", "channels_last|channels_first",            \
                "order of the dims; only channels_last is supported")
keel_status keel_channels_last(int data_format);
/* A bias, if the layer has one, and then its activation. */
keel_status keel_emit_bias_weight(keel_emit *e, bool use, int64_t n, const keel_object *initializer,
                                  const keel_object *regularizer, const keel_object *constraint,
                                  keel_variable *w, keel_spec *spec, int *n_weight);

extern const keel_layer *const keel_layers[]; /* generated; ends with NULL */
/* By its class or an alias: "MaxPooling2D", "MaxPool2D"; an operation of keras.ops: "ops.Add". */
const keel_layer *keel_layer_find(const char *class_name);

#endif
