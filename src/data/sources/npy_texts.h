/* Texts of NumPy files as a field. */
#ifndef KEEL_DATA_SOURCES_NPY_TEXTS_H
#define KEEL_DATA_SOURCES_NPY_TEXTS_H
#include "data/source.h"
#include "io/npy.h"

/* A new tensor of KEEL_STRING with copies of the texts. */
keel_status keel_strings_from_npy(keel_tensor *out, const keel_npy_texts *t);

#endif
