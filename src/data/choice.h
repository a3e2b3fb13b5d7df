/* Maps a field to the parts of a file that it is read from: "name", "name=array" or
 * "name=column,column", as in keel_dataset_options.inputs and targets. A part in quotes may have
 * commas: name="a, b",c; a quote in it is written twice. */
#ifndef KEEL_DATA_CHOICE_H
#define KEEL_DATA_CHOICE_H
#include "base/error.h"
#include "keel/dataset_options.h"
#include <stdbool.h>
#include <stddef.h>

typedef struct keel_choice {
    char *name;  /* of the field */
    char **part; /* [n_part] arrays or columns that it is read from; by default its own name */
    int n_part;
    bool plain;   /* a name without '=' */
    char *target; /* of weights: the target that they are of; else NULL */
} keel_choice;

/* Parse a whole list; the caller frees it with keel_choices_free, which takes NULL too. KEEL_EARG:
 * an entry without a name or with an empty part; `what` names the list in messages. */
keel_status keel_choices_read(keel_choice **out, const char *const *list, int n, const char *what);
void keel_choices_free(keel_choice *c, int n);

/* The same for the targets of `o`: its list, or without one "y=label" if a label is given, whose
 * name may have any letters. */
keel_status keel_choices_targets(keel_choice **out, int *n, const keel_dataset_options *o);

/* The same for the weights of `o` that are given for each target, with one part each; their fields
 * are called sample_weight_TARGET. KEEL_EARG also: an entry names no target. */
keel_status keel_choices_weights(keel_choice **out, const keel_dataset_options *o);
/* KEEL_EARG: weights are given for what is no target of the rows of `what`. */
keel_status keel_choice_no_target(const keel_choice *c, const char *what);

#endif
