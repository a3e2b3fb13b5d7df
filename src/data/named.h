/* Which of the named arrays of a source are the fields of a row, by the rules of .npz files: those
 * that the options' inputs and targets name, else x, or x_0 and so on, x_train (x_test for
 * validation), the same for y, and sample_weight. */
#ifndef KEEL_DATA_NAMED_H
#define KEEL_DATA_NAMED_H
#include "data/source.h"

typedef struct keel_named_field {
    int64_t array; /* its index in the list of names */
    char *path;    /* the field's name; owned */
    keel_data_role role;
    const char *target; /* of a weight: the path of another field; NULL: all targets */
    int choice; /* its index in the options' inputs or targets, or the number of its name; -1:
                   neither */
} keel_named_field;

typedef struct keel_named {
    keel_named_field field[KEEL_FIELDS_MAX];
    int n;
    bool held_out; /* x_test was chosen */
} keel_named;

/* `what` names the source in messages. KEEL_EFORMAT: a name is missing (the text lists those that
 * there are); KEEL_EARG: options. On failure nothing is left to free. */
keel_status keel_named_choose(keel_named *out, const char *const *names, int64_t n,
                              const keel_dataset_options *o, const char *what);
void keel_named_free(keel_named *c);

#endif
