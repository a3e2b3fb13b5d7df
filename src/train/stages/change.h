/* What stages share that put fields of rows through a model while they are read: the stage of a
 * layer is a model of this one layer. The model is compiled into keel_rows for the shapes of a row,
 * which any thread runs; for rows that differ in shape, those used last are kept.
 *
 * Random numbers are those of the model with a seed of the stage's own, which is a function of the
 * run's seed and the number of the stage. They depend on (seed, pass, element, row of a batch)
 * alone. */
#ifndef KEEL_TRAIN_STAGES_CHANGE_H
#define KEEL_TRAIN_STAGES_CHANGE_H
#include "data/stage.h"
#include "graph/rows.h"
#include "model/model.h"

typedef struct keel_change keel_change;

/* One call of the model: the fields of the parent that it reads. */
typedef struct keel_change_call {
    int in[KEEL_FIELDS_MAX]; /* [model's inputs] */
} keel_change_call;

/* A field of the result: of the parent, or an output of a call. */
typedef struct keel_change_field {
    int from;         /* field of the parent; -1: of a call */
    int call, output; /* which one */
} keel_change_field;

typedef struct keel_change_plan {
    const char *name; /* of the stage, in messages; borrowed */
    keel_model *model;
    bool owns;     /* the model is destroyed with it, also after a failure */
    bool training; /* Keras's training */
    int n_call;
    keel_change_call call[KEEL_FIELDS_MAX];
    int n_field;
    keel_change_field field[KEEL_FIELDS_MAX];
    keel_data_field as[KEEL_FIELDS_MAX]; /* path and role of the result's fields, borrowed */
} keel_change_plan;

/* For the infer of a stage: makes s->made and *spec, that of the result. KEEL_EUNSUP, KEEL_ESHAPE:
 * the model does not fit the rows. */
keel_status keel_change_infer(keel_applied *s, keel_data_spec *spec, const keel_change_plan *plan);

/* The other functions of such a stage. */
bool keel_change_is_random(const keel_applied *s);
keel_status keel_change_read(const keel_applied *s, keel_position at, const keel_row *row,
                             keel_scratch *scratch);
int64_t keel_change_length(const keel_applied *s, int field, keel_position at);
keel_status keel_change_make(const keel_applied *s, keel_account *a, keel_position at,
                             const keel_element *e, keel_element **out, keel_scratch *scratch);
int64_t keel_change_needs(const keel_applied *s);
void keel_change_release(keel_applied *s);

/* The seed of the random numbers of a stage at a place. */
uint64_t keel_change_seed(const keel_applied *s, const keel_position *at);

/* The index of a field of that name, of any role; -1: there is none. */
int keel_change_find(const keel_data_spec *spec, const char *path);
/* Fails with the names of all fields. */
keel_status keel_change_no_field(const keel_data_spec *spec, const char *path);

/* ---- between its files ----------------------------------------------------------------------- */

/* compiled.c: the model compiled for the input shapes of a call. It stays until it is given back.
 * KEEL_ESHAPE, KEEL_EUNSUP: the model does not take such rows. */
typedef struct keel_change_rows keel_change_rows;
struct keel_change_rows {
    keel_rows *rows;
    keel_spec in[KEEL_FIELDS_MAX];
    int users;
    uint64_t used; /* when last */
    keel_change_rows *next;
};
typedef struct keel_compiled_rows keel_compiled_rows;
keel_status keel_compiled_rows_create(keel_compiled_rows **out, const keel_model *m, bool training);
void keel_compiled_rows_destroy(keel_compiled_rows *c);
keel_status keel_compiled_rows_take(keel_compiled_rows *c, const keel_spec *in,
                                    keel_change_rows **out);
void keel_compiled_rows_give(keel_compiled_rows *c, keel_change_rows *r);

#endif
