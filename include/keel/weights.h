/* The weights of a model: values, trainability and types. Included by model.h. */
#ifndef KEEL_WEIGHTS_H
#define KEEL_WEIGHTS_H
#include <keel/model.h>

#ifdef __cplusplus
extern "C" {
#endif

/* The number of weights (tensors), and the name of the i-th, "conv2d/kernel"; NULL: none.
 *
 * Returns  the number or text
 * Owns     text belongs to the model
 * Threads  any, not while the model is changed */
int keel_model_weight_count(const keel_model *m);
const char *keel_model_weight_name(const keel_model *m, int weight);

/* Get or set a weight by name. Setting converts between float32 and float64.
 *
 * Returns  KEEL_OK; KEEL_EARG: no such weight; KEEL_ESHAPE, KEEL_EUNSUP: the tensor does not fit;
 *          KEEL_ENOMEM
 * Owns     the caller frees *out with keel_tensor_free
 * Threads  one at a time on one model, not while it trains */
keel_status keel_model_get_weight(const keel_model *m, const char *name, keel_tensor *out);
keel_status keel_model_set_weight(keel_model *m, const char *name, const keel_tensor *value);

/* Write a .weights.h5 file that Keras loads: all weights and, if the model is compiled, the
 * optimizer's state. The file appears complete or not at all.
 *
 * Returns  KEEL_OK; KEEL_EARG: the model is not finished, or the name does not end in .weights.h5;
 *          KEEL_EIO; KEEL_ENOMEM
 * Owns     nothing changes hands
 * Threads  one at a time on one model
 * Source   Keras: Model.save_weights */
keel_status keel_model_save_weights(const keel_model *m, const char *path);

/* Read all weights from a file: .weights.h5 or .keras of Keras 3, by their paths; .h5 of Keras 2
 * and 3 (weights or a whole model), by the names of layers and weights.
 *
 * The optimizer goes on with its state in the file, its steps and learning rate included, where
 * Keras does so: this model was read from a file with its optimizer, or has trained, and a file of
 * Keras 3 has as many variables of an optimizer, of the same shapes. Else the optimizer keeps its
 * own state, as in a callback of a fit; keel_model_state_loaded tells which.
 *
 * Returns  KEEL_OK; KEEL_EARG: the model is not finished; KEEL_EIO; KEEL_EFORMAT: damaged, or a
 *          weight is missing, or a layer has more of them there; KEEL_ESHAPE: a weight does not
 *          fit; KEEL_EUNSUP: two weights of the file may be meant; KEEL_ENOMEM
 * Owns     nothing changes hands
 * Threads  one at a time on one model; while it trains, only in a callback
 * Source   Keras: Model.load_weights */
keel_status keel_model_load_weights(keel_model *m, const char *path);

/* What keel_model_load_weights made of the optimizer's state in its file. */
typedef enum keel_state_loaded {
    KEEL_STATE_UNREAD, /* nothing: no file was loaded since the model was compiled, or it is not */
    KEEL_STATE_TAKEN,  /* the optimizer goes on with it */
    KEEL_STATE_ABSENT, /* the file has none */
    KEEL_STATE_OTHER   /* it is of another optimizer or other weights, or this optimizer is new */
} keel_state_loaded;

/* What became of the optimizer's state when weights were last loaded into the model.
 *
 * Returns  the answer
 * Owns     nothing changes hands
 * Threads  any, not while the model is changed */
keel_state_loaded keel_model_state_loaded(const keel_model *m);

/* Freeze or unfreeze a layer (NULL: all layers) and all layers inside it. A frozen
 * BatchNormalization uses its moving statistics. A frozen model freezes all its layers, whatever
 * their own setting. If this changes anything, the optimizer's state is dropped.
 *
 * Returns  KEEL_OK; KEEL_EARG: no such layer; to get, also NULL
 * Owns     nothing changes hands
 * Threads  one at a time on one model
 * Source   Keras: layer.trainable */
keel_status keel_model_set_trainable(keel_model *m, const char *layer_name, bool trainable);
keel_status keel_model_get_trainable(const keel_model *m, const char *layer_name, bool *out);

/* Convert weights and optimizer state to another type, in which training then computes.
 *
 * Returns  KEEL_OK; KEEL_EUNSUP: neither float32 nor float64; KEEL_ENOMEM: nothing has changed
 * Owns     nothing changes hands
 * Threads  one at a time on one model */
keel_status keel_model_set_dtype(keel_model *m, keel_dtype dtype);

/* Set the dtype policy of all layers except inputs: "float32", or "mixed_bfloat16" or
 * "mixed_float16", in which weights, their gradients and all sums are float32, and values between
 * layers are stored in bfloat16 or float16. As in Keras, the loss of a model of mixed_float16 is
 * scaled (LossScaleOptimizer). The policy is saved with the model. A model converted to float64 has
 * no policy.
 *
 * Returns  KEEL_OK; KEEL_EUNSUP: another policy, which the text names
 * Owns     nothing changes hands
 * Threads  one at a time on one model
 * Source   Keras: layer.dtype_policy, keras.config.set_dtype_policy */
keel_status keel_model_set_dtype_policy(keel_model *m, const char *policy);

/* The policy of all layers, or all of them if they differ: "float32 and mixed_bfloat16".
 *
 * Returns  the name, static
 * Owns     nothing changes hands
 * Threads  any, not while it is changed */
const char *keel_model_dtype_policy(const keel_model *m);

#ifdef __cplusplus
}
#endif
#endif
