/* The state of an optimizer in model.weights.h5. */
#ifndef KEEL_MODEL_STATE_H
#define KEEL_MODEL_STATE_H
#include "io/weights_h5.h"
#include "model/model.h"

/* Reads the variables of the file's optimizer into m->compiled, whose state
 * keel_compiled_state_create has made. KEEL_EFORMAT: they belong to another optimizer. */
keel_status keel_compiled_state_read(keel_model *m, const keel_weights *file);

/* Reads them into an optimizer that has its state, if they are as many and of the same shapes, and
 * notes in m->compiled.state_loaded what became of them. */
keel_status keel_compiled_state_replace(keel_model *m, const keel_weights *file);

/* The name of each variable of a slot of the last optimizer, in the order of the file: *out [*n],
 * to free by keel_free.
 */
keel_status keel_compiled_state_names(const keel_model *m, const char ***out, int *n);

/* Puts a tensor of real numbers into the file, as float32. */
typedef keel_status (*keel_state_adder)(void *context, const char *path, const keel_tensor *t);

/* Writes the variables of m->compiled into the file. */
keel_status keel_compiled_state_add(const keel_model *m, keel_weights *file, keel_state_adder add,
                                    void *context);

#endif
