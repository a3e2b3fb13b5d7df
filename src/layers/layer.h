/* A layer: its arguments, its weights, and the ops it emits. Each has a file of its own, in Keras's
 * folders. */
#ifndef KEEL_LAYERS_LAYER_H
#define KEEL_LAYERS_LAYER_H
#include "activations/activation.h"
#include "base/field.h"
#include "constraints/constraint.h"
#include "graph/graph.h"
#include "initializers/initializer.h"
#include "layers/activity.h"
#include "ops/all.h"
#include "regularizers/regularizer.h"

typedef struct keel_weight_decl {
    const char *name; /* Keras's: "kernel", "bias", "gamma", "moving_mean" */
    keel_shape shape;
    const keel_object *initializer; /* of the layer's args */
    const keel_object *regularizer; /* NULL or type NULL: none */
    bool state;                     /* not trainable by its kind: moving mean */
    int lead; /* keel_weight_info.lead; an initializer takes its fans from that matrix, too */
    const keel_object *constraint; /* NULL or type NULL: none */
    bool besides; /* Keras's files do not have it: it begins anew, and Keel's have it by its name */
} keel_weight_decl;

/* The weights of an op, in its order. The op may see another shape than the file: spec[i]. */
enum { KEEL_WEIGHTS_MAX = 8 };
typedef struct keel_weights {
    int n;
    keel_variable of[KEEL_WEIGHTS_MAX];
    keel_spec spec[KEEL_WEIGHTS_MAX];
} keel_weights;

#define KEEL_CALL_VALUE "keel_value"

/* How a layer calls a layer that it holds. */
typedef struct keel_call_of {
    const keel_value *in, *mask; /* [n_in] */
    int n_in;
    const void *how; /* keel_emit.how of the called layer, which may then take more inputs */
} keel_call_of;

enum {
    KEEL_MASK_NONE = -1,   /* every place counts */
    KEEL_MASK_DEFAULT = -2 /* for an output: what Keras does if a layer does not handle masks */
};

/* Values of a model are real numbers, whatever Keras calls them. Those that are bool or whole there
 * do not widen the values that an operation has beside them. */
typedef enum keel_whole_outputs {
    KEEL_WHOLE_NEVER,
    KEEL_WHOLE_ALWAYS,
    KEEL_WHOLE_KEPT,   /* if all its operands are */
    KEEL_WHOLE_TAKEN,  /* never, but it makes float32 of operands that are, and rounds none */
    KEEL_WHOLE_SECOND, /* its outputs after the first */
} keel_whole_outputs;

/* What a layer emits into: a graph, and a store that makes its weights in the first call.
 *
 * A mask belongs to a value and says which of its places count: real numbers, 1 for a place that
 * counts and 0 for one that does not, mostly [T] for [T, C]. A layer that supports masking passes
 * the mask of its first input to its first output; other layers drop it. */
typedef struct keel_emit {
    keel_graph *graph;
    const void *args; /* of this layer instance */
    const char *name; /* of this layer instance */
    bool training;    /* of the graph */
    bool direct; /* called by the layer that holds it, as Keras's layer.call: it adds no loss itself
                  */
    const keel_object *activity; /* its activity_regularizer; type NULL: none */
    bool trainable; /* of this layer: a frozen BatchNormalization uses its moving statistics */
    int n_in;
    const keel_value *in;
    const keel_value *mask; /* [n_in] */
    bool mask_said;         /* the caller gave the mask; else it is the input's own */
    int n_out;              /* 1, until keel_emit_outputs */
    keel_value *out;        /* [n_out]; the layer sets them */
    keel_value *out_mask;   /* [n_out]; the layer may set them */
    const json_t
        *call; /* for an operation, or a layer with by_arguments: {"args", "kwargs"}, in which
                  {KEEL_CALL_VALUE: i} means in[i]; NULL: called with its inputs only */
    /* The k-th call during one emit returns the layer's k-th weight, in Keras's order of
     * layer.weights. */
    keel_status (*weight)(struct keel_emit *e, const keel_weight_decl *d, keel_variable *out,
                          keel_spec *spec);
    /* In keel_layer.make: makes a layer of that class, to be called as `key`, a constant text. The
     * config, which is taken over, may contain its name; `trainable` and the policy are those of
     * this layer. Elsewhere NULL. */
    keel_status (*make)(struct keel_emit *e, const char *key, const char *class_name,
                        json_t *config);
    /* Calls a layer that this one holds or made, by its key, any number of times. It must have one
     * output. */
    keel_status (*sub)(struct keel_emit *e, const char *key, const keel_value *in,
                       const keel_value *mask, int n_in, keel_value *out);
    /* The same for a layer with several outputs, at most *n_out, which becomes their number. The
     * layer gets `how`. */
    keel_status (*sub_outs)(struct keel_emit *e, const char *key, const keel_call_of *call,
                            keel_value *out, int *n_out);
    /* The first weight of that layer, once it has been called; *name without the layer's, NULL: it
     * has none of its own. */
    void (*held_weight)(const struct keel_emit *e, const char *key, const char **name,
                        keel_variable *out, keel_spec *spec);
    const void *how; /* what the layer that holds this one tells it; NULL: nothing */
    /* The class of that layer; NULL: it is a model. */
    const struct keel_layer *(*sub_kind)(const struct keel_emit *e, const char *key);
    const bool *whole;        /* [n_in], see keel_whole_outputs; NULL: as their types say */
    keel_whole_outputs gives; /* at first the layer's `whole`; emit may change it */
    void *context;
} keel_emit;

typedef struct keel_layer {
    keel_type type;
    int min_inputs, max_inputs; /* 0, 0: InputLayer; max -1: any number, called with a list */
    bool takes_list; /* it is called with a list, although the number of its inputs is fixed */
    bool by_chance;  /* it draws random numbers: a second call would draw the same */
    bool supports_masking; /* as in Keras: masks pass through it */
    bool takes_masks;      /* calls that Keras runs after it see its inputs without masks */
    /* Masks in Keras: a call in Python writes those of its inputs into its argument `mask`, and a
     * run reads it (mask_argument), or a run takes what the values still have (masks_at_run). */
    bool mask_argument, masks_at_run;
    bool operation;  /* of keras.ops: no weights, no policy, no `trainable` */
    bool wide_alone; /* an operation that takes its only value as float32, if it is narrow, beside
                        a real number, as Keras's equal does */
    bool places;     /* an operation of places, since bfloat16 counts to 256 only, or one that Keras
                        computes so: in float32; it gives the type of its values */
    keel_whole_outputs whole; /* which of its outputs are bool or whole in Keras */
    bool by_arguments;        /* its calls have named arguments, which keel_emit.call holds */
    const char *aliases;      /* other names of the class in Keras: "MaxPool2D|..."; NULL: none */
    const char
        *exported; /* its class in a file, if Keras exports it under another name; NULL: its own */
    bool reads_rows; /* its output is computed from its input when rows are read */
    bool last_dim;   /* it uses the last dim only: one call serves all places before it */
    /* Keys of its config that are layers, in the order in which Keras's class sets them as
     * attributes; ends with NULL. The layer's own weights come before theirs. In a file their
     * weights are in groups with the names of the keys. The field table has each key as a
     * KEEL_IGNORE. NULL: none. */
    const char *const *held;
    const char *const
        *held_as; /* the names by which it calls them, and of their groups in a file; NULL: held */
    /* The key of its config that is a list of layers. It calls layer k by the key
     * keel_held_in_list(k). In a file their groups are in a group with the name of the list, by
     * class and number. Cannot be used together with `held`. NULL: none. */
    const char *held_list;
    /* The group of its weights in a file, if Keras has them in a layer that it makes: "cell". NULL:
     * its own. */
    const char *weights_in;
    /* Makes the layers that it calls itself, by e->make, in the order in which Keras's class sets
     * them as attributes: once, before it is first emitted. Their arguments follow from its own and
     * from its inputs, so they are not in the config. In a file their weights are in groups with
     * the names of their keys. Cannot be used together with `held`. NULL: it makes none. */
    keel_status (*make)(keel_emit *e);
    bool passes_activity; /* its activity_regularizer is for the layers that it makes, not for
                             itself */
    bool cell;            /* one step of a layer over time, which calls it: RNN */
    bool takes_states;    /* inputs after the first are Keras's argument initial_state */
    bool uncast;          /* it takes its inputs in their own types (Keras: autocast=False) */
    bool counts;          /* in a file, Keras has another integer after its weights, always 0 */
    bool untrained;       /* Keras's class does not take `trainable`, so no file may have it */
    bool first_again;     /* in a file, the first weight of the layer it holds is there a second
                             time, before its own */
    keel_status (*emit)(keel_emit *e);
    /* Puts keys into `config` that Keras needs in another form than the field table's; NULL: none.
     */
    keel_status (*to_config)(const void *args, json_t *config);
    /* A file of the layer besides the weights, in Keras's assets; name NULL: none. `read_asset`
     * takes the text of the file; `asset` gives the text to write, borrowed, or false if all of it
     * is in the config. `idf`: *n numbers that Keras stores among the weights under that name, to
     * read or write in place; NULL: none. */
    const char *asset_name;
    bool (*needs_asset)(const void *args);
    keel_status (*read_asset)(void *args, const char *text, size_t n_bytes);
    bool (*asset)(const void *args, const char **text, size_t *n_bytes);
    float *(*idf)(const void *args, int64_t *n);
    /* What the product of the two last weights, which are `besides`, counts in the first, which is
     * frozen: files have the sum as the first weight. 0: there is no such product. NULL: never. */
    double (*low_rank)(const void *args);
    const char *asset_again; /* a layer inside Keras's class that has the file and the numbers
                                again, in its own group; NULL: none */
} keel_layer;

/* What every layer has besides its table. The shape of an InputLayer is here, too, because its null
 * means any number of rows. */
typedef struct keel_layer_common {
    const char *name; /* borrowed from the JSON; NULL: not given */
    bool trainable;
    keel_dtype compute;   /* Keras's compute_dtype: bfloat16 or float16 if the policy is mixed:
                             weights   in float32, values in that type; else float32 */
    keel_shape shape;     /* InputLayer: of one row */
    int64_t batch;        /* InputLayer: a fixed batch size; -1: any */
    keel_dtype dtype;     /* InputLayer: of its data; float32 means the type of the model */
    keel_object activity; /* activity_regularizer; type NULL: none. The reader owns it */
} keel_layer_common;

/* Reads a layer's config: the common keys into *common, the others by the layer's table into `args`
 * (type.args_size zeroed bytes, empty on failure). Errors name the layer. */
keel_status keel_layer_read(const keel_layer *l, const json_t *config, void *args,
                            keel_layer_common *common);

enum { KEEL_HELD_IN_LIST_MAX = 16 };
const char *keel_held_in_list(int k);

/* A dim as Keras writes it: null if it is open. The caller owns it; NULL: no memory. */
json_t *keel_dim_json(int64_t dim);

/* Keras's names of dtype policies. KEEL_EUNSUP names what is not supported. */
keel_status keel_policy_find(const char *name, keel_dtype *compute);
const char *keel_policy_name(keel_dtype compute);
json_t *
keel_policy_json(keel_dtype compute); /* as in a config; the caller owns it; NULL: no memory */

/* The config that Keras would write. KEEL_ENOMEM or KEEL_OK. */
keel_status keel_layer_config(const keel_layer *l, const void *args,
                              const keel_layer_common *common, json_t **out);

/* emit.c. Short forms: the spec of input i; an op with one output; an op that is the whole layer,
 * on all its inputs; an op on some values; one more weight; an op on a value and weights, or on
 * some. */
const keel_spec *keel_emit_in(const keel_emit *e, int i);
/* Whether input i is bool or whole in Keras, by what the model declares where that is known: the
 * rows of a real input may come as bytes. */
bool keel_emit_is_whole(const keel_emit *e, int i);
/* KEEL_EUNSUP: input 0 is; `why` says what Keras does then. */
keel_status keel_emit_not_whole(const keel_emit *e, const char *why);
keel_status keel_emit_op(keel_emit *e, const keel_node_parts *parts, keel_value *out);
keel_status keel_emit_one(keel_emit *e, const keel_op *op, const void *args);
keel_status keel_emit_on(keel_emit *e, const keel_op *op, const void *args, const keel_value *in,
                         int n_in, keel_value *out);
keel_status keel_emit_weight(keel_emit *e, const keel_weight_decl *d, keel_weights *w);
keel_status keel_emit_weighted(keel_emit *e, const keel_op *op, const void *args, keel_value in,
                               const keel_weights *w, keel_value *out);
keel_status keel_emit_weighted_on(keel_emit *e, const keel_op *op, const void *args,
                                  const keel_value *in, int n_in, const keel_weights *w,
                                  keel_value *out);
/* A number as Keras takes it beside values of the call: in their type. Only so is 0.1 equal to a
 * value of 0.1. */
double keel_emit_constant(const keel_emit *e, double x);
/* A value whose rows are computed from those of the inputs when rows are read; `op` gets the
 * layer's args. KEEL_EUNSUP: one of them is neither an input of the model nor computed in this way.
 */
keel_status keel_emit_host(keel_emit *e, keel_host_op op, const keel_spec *spec, keel_value *out);
/* The arguments of the call by their names, which are in Keras's order and end with NULL; out[k]
 * NULL: not given. */
keel_status keel_call_arguments(const keel_emit *e, const char *const *names, const json_t **out);
/* Sets the number of outputs; e->out and e->out_mask move. */
keel_status keel_emit_outputs(keel_emit *e, int n);
/* The first input with a mask; -1: none. */
int keel_emit_masked(const keel_emit *e);
/* Emits an activation given as an argument; none or "linear" emits nothing. */
keel_status keel_emit_activation(keel_emit *e, const keel_object *activation, keel_value in,
                                 keel_value *out);

/* Adds a term to the loss (activity.h); or what the regularizer (type NULL: none) makes of all
 * outputs of the layer. Does nothing if the graph has no loss. */
keel_status keel_emit_activity(keel_emit *e, const keel_activity *term, keel_value in);
keel_status keel_emit_regularized(keel_emit *e, const keel_object *regularizer);

/* What several layers share. Images are [H, W, C]. */
keel_status keel_emit_image(const keel_emit *e, const keel_spec **in); /* input 0 has rank 3 */
/* For layers with one to three dims of places before the channels: input 0 as an image, where [T,
 * C] becomes the view [T, 1, C], or as a volume; the op's output without that dim of 1; and an
 * argument of `dims` numbers as one for an image. */
keel_status keel_emit_as_image(keel_emit *e, int dims, keel_value *x, keel_shape *image);
keel_status keel_emit_from_image(keel_emit *e, int dims, keel_value y, keel_value *out);
keel_ints keel_image_ints(const keel_ints *a);
/* The same elements in another shape, a view; with dim from[d] as dim d. Nothing is emitted where
 * nothing changes. */
keel_status keel_emit_view(keel_emit *e, const keel_shape *shape, keel_value in, keel_value *out);
keel_status keel_emit_permuted(keel_emit *e, const int64_t *from, keel_value x, keel_value *out);
/* `count` places of an axis of a row, from `begin` on; an axis from the last place to the first; a
 * place of dim 0, without that dim. */
keel_status keel_emit_part(keel_emit *e, keel_value in, int64_t axis, int64_t begin, int64_t count,
                           keel_value *out);
keel_status keel_emit_reversed(keel_emit *e, keel_value in, int64_t axis, keel_value *out);
keel_status keel_emit_place(keel_emit *e, keel_value in, int64_t at, keel_value *out);
/* The shape with a 1 there, and without that dim. */
keel_shape keel_shape_with_one(keel_shape s, int64_t place);
keel_shape keel_shape_without(keel_shape s, int64_t place);
/* {before, behind} for each dim of a window that moves over places: zeros if !same, else
 * TensorFlow's rule: as many outputs as strides fit, with the odd one of the padding at the end. */
void keel_same_padding(const keel_shape *places, bool same, const keel_ints *size,
                       const keel_ints *strides, const keel_ints *dilation, int64_t *pad);
/* Keras counts axes with the batch, and -1 is the last. Gives the index among the dims of one row.
 */
keel_status keel_row_axis(const keel_emit *e, int64_t axis, int64_t *row_axis);
/* Ops know channels_last only (choice 0). A layer with the other choice is turned (_turned.h), or
 * refuses it by keel_channels_last. */
#define KEEL_DATA_FORMAT(args)                                                                     \
    KEEL_CHOICE(args, data_format, "\"channels_last\"", "channels_last|channels_first",            \
                "order of the dims")
keel_status keel_channels_last(int data_format);

#define KEEL_LAYER_HEAD(class_, help_) .name = class_, .module = "keras.layers", .help = help_

extern const keel_layer *const keel_layers[]; /* generated; ends with NULL */
/* Finds a layer by its class or an alias, "MaxPooling2D", "MaxPool2D"; an operation of keras.ops,
 * "ops.Add"; or a class that the program registered, "my>Gain". */
const keel_layer *keel_layer_find(const char *class_name);
/* custom.c. NULL: no such class is registered. */
const keel_layer *keel_layer_registered(const char *name);

#endif
