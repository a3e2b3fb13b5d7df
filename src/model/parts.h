/* What the files of this room share: growing lists, making one call, config and file. */
#ifndef KEEL_MODEL_PARTS_H
#define KEEL_MODEL_PARTS_H
#include "base/args.h"
#include "base/text.h"
#include "io/weights_h5.h"
#include "io/zip.h"
#include "model/model.h"

enum {
    KEEL_MODEL_LAYERS_MAX = 1 << 14
}; /* fits a stream of random numbers: 16 bits, the last one reserved */

/* build.c. A layer of that class without calls; its index is *layer. */
keel_status keel_model_new_layer(keel_model *m, const char *class_name, const json_t *config,
                                 int *layer);
/* Puts a layer at the end of the list. */
keel_status keel_model_put_layer(keel_model *m, const keel_model_layer *l);
/* Makes room for a weight at that place of the list. */
keel_status keel_model_reserve_weight(keel_model *m, int weight);
/* As keel_model_create, with any name: of a file of Keras 2, or of a function. */
keel_status keel_model_begin(keel_model **out, const char *name, keel_dtype dtype, uint64_t seed);
/* What a layer is called with, as in keel_model_node. */
typedef struct keel_model_call_of {
    const keel_symbol *in; /* [n_in + n_mask] */
    int n_in, n_mask;
    bool inference;
    json_t *call; /* shared, not taken over */
} keel_model_call_of;
/* Adds a call of a layer; the first call makes its weights, without data. *out is the symbol of its
 * first output. */
keel_status keel_model_new_node(keel_model *m, int layer, const keel_model_call_of *call,
                                keel_symbol *out);
/* Whether calls that Keras runs after n see its input i without a mask (keel_layer.takes_masks): n
 * calls an attention on it, or a model that does. */
bool keel_model_takes_mask(const keel_model *m, const keel_model_node *n, int i);
/* Whether a layer sees the masks that its inputs still have when Keras runs it, of which an
 * attention may have removed some; else those that they were made with. */
bool keel_model_mask_at_run(const keel_model_layer *l);
/* calls.c: a call as the layers read it that have their own arguments: inputs first, then those by
 * name. *out: the caller's; unchanged if the call has none. */
keel_status keel_model_call_json(const keel_layer *kind, const keel_arg *with, int n_in,
                                 json_t **out);
/* Whether Keras calls the layer with a list of its inputs. */
bool keel_model_calls_with_list(const keel_layer *kind);
/* infer_call.c: the outputs of such a call, which the caller frees. The layer's first call makes
 * its weights. KEEL_ESHAPE: it does not fit its inputs. */
keel_status keel_model_infer_call(keel_model *m, int layer, const keel_model_call_of *call,
                                  keel_model_symbol **out, int *n_out);
/* Adds a weight of that layer as declared, without data. */
keel_status keel_model_new_weight(keel_model *m, int layer, const keel_weight_decl *d, int *weight);
/* The lengths of the lists, and restoring them. */
typedef struct keel_model_mark {
    int n_layer, n_weight, n_node;
} keel_model_mark;
keel_model_mark keel_model_where(const keel_model *m);
void keel_model_back(keel_model *m, keel_model_mark mark);
/* Memory and first values for the weights without data. */
keel_status keel_model_fill_weights(keel_model *m);
keel_status keel_model_fill_weight(keel_model *m, int weight); /* or new first values */
keel_status keel_model_alloc_weight(keel_model *m, int weight);
int keel_model_find_layer(const keel_model *m, const char *name); /* index, -1: none */
int keel_model_find_weight(const keel_model *m, const char *name);
/* Replaces a list of symbols. */
keel_status keel_model_put_symbols(keel_symbol **list, int *count, const keel_symbol *from, int n);

/* The streams of random numbers that one call of a model uses. */
typedef struct keel_model_draws {
    int n;
    struct {
        int own, stream; /* of the layer; that which it uses */
    } * of;
} keel_model_draws;

/* While a model is emitted: which streams of random numbers are taken, and the order of its calls.
 */
typedef struct keel_model_chances {
    bool *drew; /* [KEEL_MODEL_LAYERS_MAX], by stream: the layer has been called before */
    int next;   /* free for another call */
    keel_model_draws *log;         /* what is drawn is added to it; NULL: nobody asks */
    const keel_model_draws *again; /* a call that is made again: what that call drew, with a log */
    int first;                     /* of the streams of this model, of several in a graph; else 0 */
    bool alone;                    /* layers without a model: they have no weights */
    bool in_turn; /* in the order in which Keras runs them, so that each reads the state that
                     earlier calls moved; else in the order in which they were written */
} keel_model_chances;
enum { KEEL_STREAMS_MAX = UINT16_MAX }; /* the last is reserved */

/* emit.c: lets a layer add its ops to e->graph. In *e the graph, in and mask are given; out and
 * out_mask are made, and the caller frees them in any case. maker (m itself): makes the weights;
 * NULL: they exist. chances NULL: only shapes matter. */
keel_status keel_model_emit_layer(const keel_model *m, keel_model *maker, int layer, keel_emit *e,
                                  keel_model_chances *chances);

/* Emits the calls of a finished model into a graph that has other values: *out and its masks
 * [m->n_output], in the type `real`. mask [m->n_input]. g->first_weight, g->training and
 * chances->first are the caller's. wanted [m->n_output]: only calls that lead to these outputs are
 * emitted, and the others are -1; NULL: all. KEEL_EARG: an input is -1, and a call needs it. */
keel_status keel_model_emit_into(const keel_model *m, keel_graph *g, const keel_value *in,
                                 const keel_value *mask, const bool *wanted,
                                 keel_model_chances *chances, keel_value *out,
                                 keel_value *out_mask);

/* order.c: puts layers in the order of Keras's model.layers, and sets the turns in which Keras runs
 * them. KEEL_EARG names a layer that leads to no output. */
keel_status keel_model_keras_order(keel_model *m);
/* The calls in the order in which Keras runs them: *out [m->n_node], which the caller frees. */
keel_status keel_model_run_order(const keel_model *m, int **out);

/* number.c, for the outermost model once its layers are in order: names, paths and streams of all
 * layers, and the order of the weights. On failure the names stay valid. */
keel_status keel_model_number(keel_model *m);
/* The path of a weight in Keras: with the name of the model whose layer has it if that is
 * Sequential, and without it if it is Functional. */
void keel_model_variable_path(const keel_model *m, int weight, keel_text *out);
/* Sets which weights are trained, after a layer's `trainable` has changed. */
void keel_model_mark_trainable(keel_model *m);

/* missing.c, after reading a model gave KEEL_EUNSUP: if Keel lacks several things, or parts of
 * them, the error names them all: layers, optimizer, losses and metrics; or only what compile
 * chooses. The status stays. */
keel_status keel_model_list_missing(const json_t *root);
keel_status keel_compile_list_missing(const json_t *compile_config);

/* nested.c: models as layers. */
extern const keel_layer keel_kind_functional, keel_kind_sequential;
enum { KEEL_MODELS_DEEP = 16 };
/* Makes a finished model a layer of m and calls it. On success it belongs to m. */
keel_status keel_model_take_in(keel_model *m, keel_model *inner, const keel_model_call_of *call,
                               keel_symbol *out);
/* A layer that is the model in that JSON, {"class_name": "Functional", ...}. */
keel_status keel_model_read_inner(keel_model *m, const json_t *v, int *layer);
/* The layers that a layer of m holds, from its config; *out becomes l->inner. */
keel_status keel_model_read_held(keel_model *m, const keel_layer *kind, const json_t *config,
                                 keel_model **out);
/* Adds a layer that a layer of m makes in its first call; the config is taken over. */
keel_status keel_model_make_held(keel_model *m, int layer, const char *key, const char *class_name,
                                 json_t *config);
/* All layers through all models, in order: the caller frees *out, not the entries. */
keel_status keel_model_all_layers(const keel_model *m, keel_model_layer ***out, int *count);
/* Finds the layer "base/conv2d" and its model. false: there is none. */
bool keel_model_find_label(const keel_model *m, const char *label, keel_model **in, int *layer);

/* emit_types.c. The type in which the outputs of a call of l are held; whether an output is bool or
 * whole in Keras; and outputs of an operation by places, cast to the type of its values. */
keel_dtype keel_emit_held(const keel_model_layer *l, const keel_emit *e);
bool keel_emit_gives_whole(const keel_emit *e, int out);
keel_status keel_emit_cast_back(keel_emit *e);

/* config_layer.c. The layer class that a layer's JSON names, by class and module; NULL: none. Not
 * for models. */
const keel_layer *keel_model_class_of(const json_t *v);

/* A layer from its JSON, without calls. */
keel_status keel_model_read_layer(keel_model *m, const json_t *v, int *layer);
/* config.c and config_write.c. */
keel_status keel_model_from_config(keel_model *m, const json_t *config);
keel_status keel_model_to_config(const keel_model *m, json_t **out);

/* compile_config.c: kinds of things that compile chooses. keel_kind_read is keel_object_read; for
 * an unknown name its error lists the known ones. */
typedef struct keel_kind {
    const char *what; /* "loss" */
    const keel_type *(*find)(const char *name);
    const keel_type *(*nth)(int i); /* NULL after the last */
    const char *registers;          /* the function that registers one; NULL: none does */
} keel_kind;
extern const keel_kind keel_kind_optimizer, keel_kind_loss, keel_kind_metric;
keel_status keel_kind_read(keel_object *o, const json_t *v, const keel_kind *kind);
/* The class of an entry of compile_config, and its name: a text, or that of a function or class.
 * NULL: it has none. */
const char *keel_compiled_class(const json_t *v);
const char *keel_compiled_name(const json_t *v);
/* compile_optimizer.c. The optimizer of that JSON, into an empty *c; after a failure the caller
 * frees it. And that of m, as it trains now, into a compile_config; false: no memory. */
keel_status keel_compiled_optimizer(const json_t *v, keel_model_compiled *c);
bool keel_compiled_put_optimizer(const keel_model *m, json_t *config);
/* compile.c: an optimizer or a loss by a call from C. KEEL_EUNSUP: an optimizer of several. On
 * failure there is nothing to free. */
keel_status keel_named_optimizer(const keel_named *n, keel_model_compiled *out);
keel_status keel_named_loss(const keel_named *n, keel_object *out);
/* Calls back for each optimizer, loss and metric of a compile_config that Keel does not have, with
 * the reason. */
void keel_compile_missing(const json_t *compile_config,
                          void (*tell)(void *context, const char *what), void *context);

/* compile.c and compile_config.c. Reading does not make the optimizer's state yet. by_file: metrics
 * that Keel does not have are left out and named in out->left_out; else they are refused. */
keel_status keel_compiled_from_config(keel_model *m, const json_t *compile_config, bool by_file,
                                      keel_model_compiled *out);
keel_status keel_compiled_config(const keel_model *m, json_t **out);
/* state.c: new slots and iterations of c, zero, for m's current trainable weights. */
keel_status keel_compiled_state_create(const keel_model *m, keel_model_compiled *c);
/* The state is kept elsewhere: its memory is freed. And it returns, as memory that the caller
 * fills; after a failure it is still elsewhere. */
void keel_compiled_state_leave(keel_model_compiled *c);
keel_status keel_compiled_state_return(const keel_model *m, keel_model_compiled *c);
/* Bytes of the state, whether it has memory or is kept elsewhere. */
int64_t keel_compiled_state_bytes(const keel_model *m, const keel_model_compiled *c);
void keel_compiled_free(keel_model_compiled *c);
/* values.c. *out: the program that a loss or metric has, for the caller; NULL: it has none. */
keel_status keel_model_read_values(const keel_model *m, const keel_object *o, keel_model **out);
/* weight_decay.c: no weight is excluded any more. */
void keel_model_decay_all(keel_model *m);

/* assets.c, for all layers through all models. Reading: KEEL_EFORMAT names a file that is missing
 * or does not fit. Writing: the caller frees the members; their texts belong to the layers. */
keel_status keel_model_read_assets(keel_model *m, keel_zip *zip);
keel_status keel_model_list_assets(const keel_model *m, keel_zip_member **out, int64_t *count);
void keel_model_free_assets(keel_zip_member *members, int64_t count);
/* The numbers that Keras keeps among the weights as "idf_weights": reading, writing, counting. */
keel_status keel_model_read_idf(const keel_model *m, keel_weights *file);
keel_status keel_model_add_idf(const keel_model *m, keel_weights *file);
keel_status keel_model_count_idf(const keel_model *m, int64_t *count);

/* file.c: reads m->file_config, the root of config.json, into the model and its compilation. */
keel_status keel_model_read_root(keel_model *m);
/* Parses the text of a configuration; `what` names it in errors. */
keel_status keel_model_parse(const char *text, size_t n_bytes, const char *what, json_t **out);

/* file.c. The largest size that model.weights.h5 may have for this model, with `idf` numbers of
 * keel_model_count_idf. */
uint64_t keel_model_weights_bytes_max(const keel_model *m, int64_t idf);

/* stored_weights.c. The weight of a file for weight i; *out NULL: there is none. */
keel_status keel_model_stored_weight(const keel_model *m, const keel_weights *file, int i,
                                     const keel_weight **out);
/* KEEL_EFORMAT: a layer has more weights in the file than in the model. */
keel_status keel_model_check_counts(const keel_model *m, const keel_weights *file);
/* Takes the weights of a model that was read, and what its optimizer keeps, from that list. */
keel_status keel_model_take_weights(keel_model *m, keel_weights *file);
/* Writes model.weights.h5 as keel_weights_write does. */
keel_status keel_model_write_weights(const keel_model *m, keel_new_file *f, int64_t at,
                                     uint64_t *n_bytes);

/* legacy_file.c: a whole model in the older HDF5 format. */
bool keel_is_legacy_file(const char *path);
keel_status keel_model_load_legacy(keel_model *m, const char *path);
/* The weights of `file`, a whole model or only them in that format, under the paths of a .keras
 * file. The caller destroys *out before `file`, whose numbers it borrows. */
keel_status keel_legacy_weights(const keel_model *m, keel_weights *file, keel_weights **out);
/* legacy_config.c: makes the model_config of such a file what config.json is. training: its
 * training_config, which becomes compile_config; NULL: none. */
keel_status keel_legacy_config(json_t *root, json_t *training);
/* legacy_names.c: '_' for each '/' in names of layers, wherever they are. */
keel_status keel_legacy_names(json_t *root);
/* legacy_ops.c: whether a layer is a function of TensorFlow; and what is one, with its calls in
 * today's form, as an operation of keras.ops. KEEL_EUNSUP names the function or its argument. */
bool keel_legacy_is_operation(const json_t *layer);
keel_status keel_legacy_operation(json_t *layer);

enum { KEEL_EXTRA_BYTES_MAX = 32 << 20 };
/* class_names.c: reads and writes the member keel.json, for what Keras has no place for. The caller
 * gives the text to free(). */
keel_status keel_model_read_extra(keel_model *m, const char *text, size_t n_bytes);
keel_status keel_model_extra_text(const keel_model *m, char **out);

/* weights.c: converts n numbers between float32 and float64. */
void keel_convert_reals(void *to, keel_dtype to_type, const void *from, keel_dtype from_type,
                        int64_t n);

#endif
