/* Labels as they stand in a file, numbers or names of classes, into the target that label_mode asks
 * for. */
#ifndef KEEL_DATA_LABELS_H
#define KEEL_DATA_LABELS_H
#include "data/source.h"
#include <locale.h>

/* Names of classes in the order of their numbers; owned. */
typedef struct keel_classes {
    char **name;
    int64_t n;
} keel_classes;

void keel_classes_free(keel_classes *c);

/* KEEL_EDATA: `label` is none of the n classes, of which the first few are named. */
keel_status keel_classes_stranger(const char *const *name, int64_t n, const char *label,
                                  const char *what);

/* A number as CSV has it: no locale, no inf, spaces around it. */
bool keel_read_number(const char *text, locale_t c_locale, double *number);

/* n labels as texts. Where all are numbers: int32 if all are whole, else float32. Else they are
 * names: the index in o->class_names, or in their own sorted order, and *classes gets the names.
 * One-hot rows and (1) as `mode` says. KEEL_EDATA: a label that is no class; `what` names file and
 * column. */
keel_status keel_labels_from_texts(keel_tensor *y, keel_classes *classes, const char *const *label,
                                   int64_t n, const keel_dataset_options *o, keel_label_mode mode,
                                   const char *what);

/* Labels from a file of arrays, [n] or [n, 1], in place: texts become numbers as above; whole
 * numbers become one-hot rows where o->label_mode is categorical, and must be classes where o says
 * how many there are. All else stays. */
keel_status keel_labels_from_array(keel_tensor *y, keel_classes *classes,
                                   const keel_dataset_options *o, const char *what);

#endif
