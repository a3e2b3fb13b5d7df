/* Maps the fields of a row to the model's inputs and to the target and weights of each output.
 * Fixed before step 1: by name if the names match, else in order. */
#ifndef KEEL_TRAIN_PAIRING_H
#define KEEL_TRAIN_PAIRING_H
#include "data/feed.h"
#include "data/source.h"
#include "model/model.h"

typedef struct keel_pairing {
    int n_field;                /* of the dataset */
    int input[KEEL_FIELDS_MAX]; /* [n_input of the model] the field of each input */
    keel_spec input_spec[KEEL_FIELDS_MAX];
    bool scored;                  /* targets are paired too */
    int target[KEEL_OUTPUTS_MAX]; /* field by output; -1: it has no loss and no metric */
    keel_spec target_spec[KEEL_OUTPUTS_MAX];
    int weight[KEEL_OUTPUTS_MAX]; /* field by output; -1: the feed's row weights, or 1 */
    keel_spec weight_spec[KEEL_OUTPUTS_MAX];
    int n_made; /* further fields, which layers of the model compute from others */
    keel_feed_made made[KEEL_FIELDS_MAX];
    keel_dtype want[KEEL_FIELDS_MAX]; /* the type of each field in a batch */
    uint64_t unwanted;                /* bit i: field i is not read */
    uint64_t open; /* bit i: field i is read and has open dims, which differ from batch to batch */
} keel_pairing;

/* Pair the fields of `d` with the model; scored: with its losses and metrics too.
 *
 * KEEL_ESHAPE: a field does not have the shape of its input; the text has both. KEEL_EDATA: an
 * input or a target has no field. KEEL_EARG: the model has no inputs yet. */
keel_status keel_pairing_make(keel_pairing *out, const keel_model *m, const keel_dataset *d,
                              bool scored);

/* The same pairing with the shapes of one batch instead of open dims. */
keel_status keel_pairing_close(keel_pairing *out, const keel_pairing *p, const keel_model *m,
                               const keel_data_field *batch);

/* A pairing for a model without data: fields as the model's inputs, and targets that its losses
 * accept. inputs [n_input of the model]: shapes for inputs with open dims; NULL: there are none.
 * KEEL_ESHAPE: a shape is missing or does not fit; the text names the input. */
keel_status keel_pairing_guess(keel_pairing *out, const keel_model *m, const keel_shape *inputs);

/* The metric of `mm` for predictions and targets of these specs; "accuracy" and "crossentropy" are
 * resolved as in Keras. NULL: there is no such metric for them. */
const keel_type *keel_pairing_metric(const keel_model *m, const keel_model_metric *mm,
                                     const keel_spec *prediction, const keel_spec *target);

#endif
