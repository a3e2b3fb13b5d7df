/* Keel: train one Keras model on every device of a machine exactly as one device would.
 *
 * Pointers must not be NULL, except where a comment says what NULL means: to a destroy or free it
 * is always allowed. A failed call leaves *out as it was: do not pass it on. */
#ifndef KEEL_H
#define KEEL_H
#include <keel/args.h>
#include <keel/checkpoint.h>
#include <keel/custom.h>
#include <keel/dataset.h>
#include <keel/described.h>
#include <keel/function.h>
#include <keel/launcher.h>
#include <keel/model.h>
#include <keel/pipeline.h>
#include <keel/pipeline_calls.h>
#include <keel/share.h>
#include <keel/simulate.h>
#include <keel/status.h>
#include <keel/tensor.h>
#include <keel/train.h>
#include <keel/whole_loss.h>

#define KEEL_VERSION "0.1.0"

#endif
