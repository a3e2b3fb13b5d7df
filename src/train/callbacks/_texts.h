/* Numbers and file names as Python writes them. */
#ifndef KEEL_TRAIN_CALLBACKS_TEXTS_H
#define KEEL_TRAIN_CALLBACKS_TEXTS_H
#include "base/text.h"
#include "keel/callback.h"

/* repr(x): the shortest digits that give x again, with a point or an exponent; "nan", "inf". */
const char *keel_python_number(char out[40], double x);

/* Python's pattern.format(epoch=epoch, batch=batch, **logs) for fields like {epoch:02d} and
 * {val_loss:.2f}. batch below 1: there is none. KEEL_EARG: a field that does not exist, or a format
 * for numbers other than [0][width][.precision][d, e, f, g]. Adds to *out. */
keel_status keel_python_format(keel_text *out, const char *pattern, int64_t epoch, int64_t batch,
                               const keel_logs *logs);

#endif
