/* A copy of what training changes in a model: weights, the optimizer's state, its numbers. It is
 * taken between two steps and written by another thread while training goes on. The texts of the
 * file are made once, when the snapshot is created. */
#ifndef KEEL_MODEL_SNAPSHOT_H
#define KEEL_MODEL_SNAPSHOT_H
#include "io/zip.h"
#include "model/model.h"

/* The members of a .keras file besides metadata and weights. */
typedef struct keel_model_texts {
    char *config, *extra; /* extra NULL: there is no keel.json */
    keel_zip_member *assets;
    int64_t n_asset;
} keel_model_texts;

keel_status keel_model_texts_make(keel_model_texts *out, const keel_model *m);
void keel_model_texts_free(keel_model_texts *t);
/* Write a .keras file. more: a member for its end, which Keras does not read; NULL: none. */
keel_status keel_model_write(const keel_model *m, const keel_model_texts *t,
                             const keel_zip_member *more, const char *path);

/* `model` shares all but its weights, optimizers and state with the model that it copies, which
 * must outlive it. Whoever takes the snapshot fills weight[].data and compiled.state[].data. */
typedef struct keel_snapshot {
    keel_model model;
    keel_model_texts texts;
} keel_snapshot;

keel_status keel_snapshot_create(keel_snapshot **out, const keel_model *m);
void keel_snapshot_destroy(keel_snapshot *s); /* NULL is allowed */
keel_status keel_snapshot_write(const keel_snapshot *s, const keel_zip_member *more,
                                const char *path);

#endif
