/* Converts labels of a file, numbers or class names, to the target that label_mode requests. */
#ifndef KEEL_DATA_LABELS_H
#define KEEL_DATA_LABELS_H
#include "data/source.h"

/* Class names in the order of their numbers; owned. */
typedef struct keel_classes {
    char **name;
    int64_t n;
} keel_classes;

void keel_classes_free(keel_classes *c);

/* The options with the label mode and number of classes of one of o->targets, or where there are
 * none, of y_0, y_1 and so on; -1: of none of them. */
keel_dataset_options keel_labels_options(const keel_dataset_options *o, int target);

/* Fail with KEEL_EDATA: `label` is not one of the n classes. The text lists the first few. */
keel_status keel_classes_fail_unknown(const char *const *name, int64_t n, const char *label,
                                      const char *what);

/* Parse a number of a CSV file, without locale; spaces around it are allowed, inf is not. */
bool keel_read_number(const char *text, double *number);

/* Convert n labels given as texts. If all are numbers they become int32 (all whole) or float32.
 * Else they are names and become their index in o->class_names, or in their own sorted order;
 * *classes gets the names. `mode` decides between numbers of shape (1) and one-hot rows.
 * KEEL_EDATA: a label is not a class; `what` names file and column. */
keel_status keel_labels_from_texts(keel_tensor *y, keel_classes *classes, const char *const *label,
                                   int64_t n, const keel_dataset_options *o, keel_label_mode mode,
                                   const char *what);

/* Convert labels [n] or [n, 1] of an array file in place. Texts become numbers as above. Whole
 * numbers become one-hot rows if o->label_mode is categorical, and must be classes if o gives their
 * number. Other labels stay. */
keel_status keel_labels_from_array(keel_tensor *y, keel_classes *classes,
                                   const keel_dataset_options *o, const char *what);

#endif
