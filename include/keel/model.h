/* Models: built by calls with Keras's names and arguments, or loaded from a .keras file; compiled,
 * inspected and saved. Training is in train.h. */
#ifndef KEEL_MODEL_H
#define KEEL_MODEL_H
#include <keel/args.h>
#include <keel/status.h>
#include <keel/tensor.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct keel_model keel_model;

/* ---- building -------------------------------------------------------------------------------- */

/* Create an empty model; keel_model_add makes it Sequential, keel_model_input Functional.
 *
 * name     NULL: "sequential" or "functional"; it must not have a '/', as in Keras
 * dtype    KEEL_FLOAT32, or KEEL_FLOAT64 for accuracy checks
 * seed     of the initial weights: the same seed gives the same weights on every machine
 * Returns  KEEL_OK; KEEL_EARG: the name; KEEL_EUNSUP: another dtype; KEEL_ENOMEM
 * Owns     the caller destroys *out
 * Threads  any */
keel_status keel_model_create(keel_model **out, const char *name, keel_dtype dtype, uint64_t seed);

/* Destroy a model. NULL is allowed.
 *
 * Returns  nothing
 * Owns     frees the model and all texts that it returned
 * Threads  any, after the model's last use */
void keel_model_destroy(keel_model *m);

/* Append a layer to a Sequential model. The first is an "InputLayer" with "shape" (of one row,
 * without the batch). "name" and "trainable" are arguments of every layer.
 *
 * Returns  KEEL_OK; KEEL_EARG, KEEL_ESHAPE, KEEL_EUNSUP: the text names layer and argument;
 *          KEEL_ENOMEM. After a failure the model is unchanged
 * Owns     args are copied
 * Threads  one at a time on one model
 * Source   Keras: Sequential.add */
keel_status keel_model_add(keel_model *m, const char *layer, const keel_arg *args);

/* The result of a layer call, Keras's symbolic tensor: a number within its model. */
typedef int keel_symbol;

/* A shape as an argument: keel_model_input(m, KEEL_DIMS(28, 28, 1), NULL, &x). */
#define KEEL_DIMS(...)                                                                             \
    (&(const keel_shape){ .rank = sizeof((int64_t[]){ __VA_ARGS__ }) / sizeof(int64_t),            \
                          .dim = { __VA_ARGS__ } })

/* Add an input to a Functional model.
 *
 * Shapes   `shape` is that of one row: (28, 28, 1); KEEL_DIM_OPEN is Keras's None
 * Returns  as keel_model_add
 * Owns     everything is copied
 * Threads  one at a time on one model
 * Source   Keras: Input */
keel_status keel_model_input(keel_model *m, const keel_shape *shape, const keel_arg *args,
                             keel_symbol *out);

/* Call a new layer on symbols of a Functional model. *out is what it gives; if it gives several
 * values (LSTM with return_state, ops.Split), the first: the others are *out + 1, *out + 2, ...
 *
 * Returns  as keel_model_add
 * Owns     everything is copied
 * Threads  one at a time on one model
 * Source   Keras: Conv2D(...)(x) */
keel_status keel_model_call(keel_model *m, const char *layer, const keel_arg *args,
                            const keel_symbol *in, int n_in, keel_symbol *out);

/* Call a new layer that reads more than its inputs in a call: KEEL_ARGS(KEEL_ARG_BOOL(
 * "use_causal_mask", true)) of an attention layer, KEEL_ARGS(KEEL_ARG_FLOAT("x2", 1)) of the
 * operation ops.Subtract. The inputs are the call's first arguments.
 *
 * with     arguments of the call, by Keras's names; NULL: none
 * Returns  as keel_model_add; KEEL_EARG: this layer is called with its inputs only
 * Owns     everything is copied
 * Threads  one at a time on one model
 * Source   Keras: MultiHeadAttention(...)(x, x, use_causal_mask=True) */
keel_status keel_model_call_with(keel_model *m, const char *layer, const keel_arg *args,
                                 const keel_arg *with, const keel_symbol *in, int n_in,
                                 keel_symbol *out);

/* Call an existing layer again, sharing its weights.
 *
 * Returns  as keel_model_add
 * Owns     everything is copied
 * Threads  one at a time on one model */
keel_status keel_model_call_again(keel_model *m, const char *layer_name, const keel_symbol *in,
                                  int n_in, keel_symbol *out);

/* Call a finished model as a layer of another. It becomes a layer with the name and weights that it
 * has. keel_model_call_again calls it again, keel_model_set_trainable(m, "base", false) freezes all
 * of it, and "base/conv2d" is a layer inside it.
 *
 * args     NULL, or KEEL_ARGS(KEEL_ARG_BOOL("training", false)): its layers run in inference mode,
 *          also while m trains
 * out      the symbol of its first output; those of its other outputs follow
 * Returns  as keel_model_add; KEEL_EARG: `inner` is not finished, has another dtype, or is a layer
 *          already
 * Owns     on success m owns `inner`: do not use or destroy it
 * Threads  one at a time on one model
 * Source   Keras: base(x, training=False) */
keel_status keel_model_call_model(keel_model *m, keel_model *inner, const keel_arg *args,
                                  const keel_symbol *in, int n_in, keel_symbol *out);

/* Set the outputs of a Functional model, which finishes it. Layers are sorted in Keras's order.
 *
 * Returns  as keel_model_add; KEEL_EARG: no output depends on a layer
 * Owns     nothing changes hands
 * Threads  one at a time on one model
 * Source   Keras: Model(inputs, outputs) */
keel_status keel_model_outputs(keel_model *m, const keel_symbol *out, int n_out);

/* ---- files ----------------------------------------------------------------------------------- */

/* Read a .keras file (Keras 3: config.json, metadata.json, model.weights.h5), with its compile
 * configuration and optimizer state, if any. If only the compile configuration is not supported,
 * the model is loaded without it: see keel_model_refused.
 *
 * Returns  KEEL_OK; KEEL_EIO; KEEL_EFORMAT: damaged; KEEL_EUNSUP: a layer or an option that Keel
 *          does not have, which the text names; KEEL_ENOMEM
 * Owns     the caller destroys *out; on failure *out is unchanged
 * Threads  any */
keel_status keel_model_load(keel_model **out, const char *path);

/* Read a model that will not be trained. The state of its optimizer stays in the file: Adam's would
 * take twice the memory of the weights. It predicts and is evaluated and planned as any other, with
 * the steps done and the learning rate of the file. keel_fit refuses it until it is compiled, which
 * begins anew, and files that are saved from it are without the state.
 *
 * Returns  as keel_model_load
 * Owns     as keel_model_load
 * Threads  any
 * Source   Keras: load_model(path, compile=False), which leaves out losses and metrics, too */
keel_status keel_model_load_without_state(keel_model **out, const char *path);

/* Write a .keras file that Keras loads, atomically: the file appears complete or not at all.
 *
 * Returns  KEEL_OK; KEEL_EARG: the model is not finished; KEEL_EIO; KEEL_ENOMEM
 * Owns     nothing changes hands
 * Threads  one at a time on one model */
keel_status keel_model_save(const keel_model *m, const char *path);

/* ---- states --------------------------------------------------------------------------------- */

/* Set the states of all stateful layers to 0. The state in which row i of a batch ends is that in
 * which row i of the next batch begins, from step to step and from one fit, evaluate or predict to
 * the next. States are not saved. May be called in the progress callback of a fit.
 *
 * Returns  nothing
 * Owns     nothing changes hands
 * Threads  one at a time on one model
 * Source   Keras: layer.reset_state() of each layer with stateful=True */
void keel_model_reset_states(keel_model *m);

/* ---- inspection ------------------------------------------------------------------------------ */

/* Name, and numbers of layers, inputs and outputs.
 *
 * Returns  the number or text; never fails
 * Owns     text belongs to the model
 * Threads  any, not while the model is changed */
const char *keel_model_name(const keel_model *m);
int keel_model_layer_count(const keel_model *m);
int keel_model_input_count(const keel_model *m);
int keel_model_output_count(const keel_model *m);

/* Shape of one row of an input or output; KEEL_DIM_OPEN is Keras's None.
 *
 * Returns  KEEL_OK; KEEL_EARG: no such input or output
 * Owns     nothing changes hands
 * Threads  any, not while the model is changed */
keel_status keel_model_input_shape(const keel_model *m, int input, keel_shape *out);
keel_status keel_model_output_shape(const keel_model *m, int output, keel_shape *out);

/* The name of an input: that of its layer, or its key where inputs are a dict. Fields of rows may
 * have these names.
 *
 * Returns  the text; NULL: no such input
 * Owns     it belongs to the model
 * Threads  any, not while the model is changed
 * Source   Keras: Model.input_names, and the keys of a dict of inputs */
const char *keel_model_input_name(const keel_model *m, int input);

/* The name of an output: that of its layer, or its key where outputs are a dict. It keys losses and
 * metrics. Of several outputs of one layer the later ones are "split_1", "split_2"; in Keras they
 * share their name, and of their logs one is left.
 *
 * Returns  the text; NULL: no such output
 * Owns     it belongs to the model
 * Threads  any, not while the model is changed
 * Source   Keras: Model.output_names, and the keys of a dict of outputs */
const char *keel_model_output_name(const keel_model *m, int output);

/* Name and Keras class of the i-th layer; NULL: no such layer.
 *
 * Returns  the text
 * Owns     it belongs to the model
 * Threads  any, not while the model is changed */
const char *keel_model_layer_name(const keel_model *m, int layer);
const char *keel_model_layer_class(const keel_model *m, int layer);

/* The number of parameters; *trainable (may be NULL): of those that training changes.
 *
 * Returns  the count
 * Owns     nothing changes hands
 * Threads  any, not while the model is changed */
int64_t keel_model_count_params(const keel_model *m, int64_t *trainable);

/* A table of the layers, as Keras's summary, and of the optimizer's state, in several lines.
 *
 * Returns  KEEL_OK; KEEL_ENOMEM
 * Owns     the caller frees *out with keel_model_summary_free
 * Threads  any, not while the model is changed */
keel_status keel_model_summary(const keel_model *m, char **out);
void keel_model_summary_free(char *text);

/* ---- names of classes ------------------------------------------------------------------------ */

/* Set the class names of labels 0, 1, ... in that order; n 0: none. They are saved with the model,
 * in a member keel.json that Keras ignores, and loaded with it.
 *
 * Returns  KEEL_OK; KEEL_EARG: more than 1,048,576 names or 4 MiB of them, or a name that is empty,
 *          longer than 4096 bytes, not UTF-8 or repeated (the text has its number); KEEL_ENOMEM.
 *          After a failure nothing has changed
 * Owns     the names are copied
 * Threads  one at a time on one model */
keel_status keel_model_set_class_names(keel_model *m, const char *const *names, int64_t n);

/* The number of class names (0: not known), and the i-th; NULL: none.
 *
 * Returns  the number or text
 * Owns     text belongs to the model, until names are set again
 * Threads  any, not while the model is changed */
int64_t keel_model_class_count(const keel_model *m);
const char *keel_model_class_name(const keel_model *m, int64_t i);

/* ---- the reference of arguments -------------------------------------------------------------- */

/* The i-th layer class of Keel ("Conv2D"), NULL after the last; and a text with the arguments of
 * one, their defaults and help.
 *
 * Returns  the name; KEEL_OK, KEEL_EARG: no such layer, KEEL_ENOMEM
 * Owns     names are static; *out is freed with keel_model_summary_free
 * Threads  any */
const char *keel_layer_class(int i);
keel_status keel_layer_help(const char *layer, char **out);

#ifdef __cplusplus
}
#endif
#include <keel/compile.h>
#include <keel/weights.h>
#endif
