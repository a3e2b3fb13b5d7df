/* What a run is: its model, data and options, so far as they decide the results. A checkpoint has
 * the identity of its run, and a run of another identity does not go on from it. */
#ifndef KEEL_TRAIN_IDENTITY_H
#define KEEL_TRAIN_IDENTITY_H
#include "data/source.h"
#include "keel/train.h"
#include "model/model.h"
#include <jansson.h>

/* A JSON object of texts and numbers, to free with json_decref. The model is as before step 1.
 * Reads up to 64 rows of the data. */
keel_status keel_identity_make(json_t **out, const keel_model *m, const keel_strategy *s,
                               const keel_dataset *data, const keel_fit_options *o);

/* KEEL_EARG: the text names the first thing that differs. *note (at least 160 bytes) becomes a line
 * about what may change the rounding, "": nothing. */
keel_status keel_identity_check(const json_t *was, const json_t *is, char *note, size_t size);

/* Of a process that shares the run of process 0. KEEL_EARG: the text names the first thing that
 * differs, with both values. */
keel_status keel_identity_same(const json_t *first, const json_t *own);

#endif
