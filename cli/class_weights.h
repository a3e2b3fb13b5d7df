/* --class-weight: a number for each class, or auto. */
#ifndef KEEL_CLI_CLASS_WEIGHTS_H
#define KEEL_CLI_CLASS_WEIGHTS_H
#include "command.h"

typedef struct keel_class_weights {
    double *weight; /* [n] by class */
    int64_t n;      /* 0: none were given, or auto has not seen the data */
    bool is_auto;
} keel_class_weights;

/* Read the option; NULL: none. Like the two below it returns -1 to continue, or an exit code after
 * an error was printed; the caller frees in any case. */
int keel_class_weights_read(keel_class_weights *out, const char *text);

/* Require a weight for each class of the model: a missing one would silently be 1. */
int keel_class_weights_check(const keel_class_weights *c, const keel_model *m);

/* Of a compiled model: require one target. auto: weights that give each class the same sum over
 * `data`, which are printed. */
int keel_class_weights_balance(keel_class_weights *c, const keel_model *m,
                               const keel_dataset *data);

void keel_class_weights_free(keel_class_weights *c);

#endif
