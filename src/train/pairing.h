/* Which field of a row goes where: the inputs of the model, the target and the weights of each
 * output. Paired once, before step 1, by name where names fit, else in order. */
#ifndef KEEL_TRAIN_PAIRING_H
#define KEEL_TRAIN_PAIRING_H
#include "data/feed.h"
#include "data/source.h"
#include "model/model.h"

typedef struct keel_pairing {
    int n_field;                /* of the dataset */
    int input[KEEL_FIELDS_MAX]; /* [n_input of the model] the field that feeds it */
    keel_spec input_spec[KEEL_FIELDS_MAX];
    bool scored;                  /* targets are paired, too */
    int target[KEEL_OUTPUTS_MAX]; /* by output; -1: it has no loss and no metric */
    keel_spec target_spec[KEEL_OUTPUTS_MAX];
    int weight[KEEL_OUTPUTS_MAX]; /* -1: that of the rows where the feed gives one, else 1 */
    keel_spec weight_spec[KEEL_OUTPUTS_MAX];
    int n_made; /* fields behind those: what layers of the model look up in others */
    keel_feed_made made[KEEL_FIELDS_MAX];
    keel_dtype want[KEEL_FIELDS_MAX]; /* the type of each field in a batch */
    uint64_t unwanted;                /* bit i: nothing reads field i */
    uint64_t open; /* bit i: field i is read, and its dims are open: batches decide on them */
} keel_pairing;

/* Pair the fields of `d` with the model; scored: with its losses and metrics, too.
 *
 * KEEL_ESHAPE: a field has another shape than the model's input, both are named; KEEL_EDATA: there
 * is no field for an input or a target; KEEL_EARG: the model has no inputs yet. */
keel_status keel_pairing_make(keel_pairing *out, const keel_model *m, const keel_dataset *d,
                              bool scored);

/* The same with the shapes that the fields have in a batch. */
keel_status keel_pairing_close(keel_pairing *out, const keel_pairing *p, const keel_model *m,
                               const keel_data_field *batch);

/* A pairing for a model without data: inputs as the model's, targets that suit the losses. inputs
 * [n_input of the model]: the shapes that its inputs have where their dims are open; NULL: none has
 * such dims. KEEL_ESHAPE: one is missing or does not fit, by name. */
keel_status keel_pairing_guess(keel_pairing *out, const keel_model *m, const keel_shape *inputs);

/* The metric that `mm` means for predictions and targets of these specs: its own, or what Keras
 * makes of "accuracy" and "crossentropy". NULL: the name means none. */
const keel_type *keel_pairing_metric(const keel_model *m, const keel_model_metric *mm,
                                     const keel_spec *prediction, const keel_spec *target);

#endif
