/* Losses that compare the rows of a step with each other: contrastive losses, negatives of the same
 * batch, correlations of features. In training on several devices each has its own rows only; here
 * each row meets all others, on any number of devices and processes.
 *
 *     static keel_status contrast(void *context, keel_trace *t)
 *     {
 *         keel_traced a, b;                       // of all rows: [rows, d]
 *         keel_shape shape;
 *         keel_trace_input(t, "a", &a);
 *         keel_trace_input(t, "b", &b);
 *         keel_trace_input_shape(t, "a", &shape); // { 2, { rows, d } }
 *         ...                                     // a value of shape (), from operations
 *         keel_trace_mean(t, value, KEEL_UNWEIGHTED, &loss);
 *         return keel_trace_return_scalar(t, "loss", loss);
 *     }
 *
 * and in the step of the function, where each row has its own values
 *
 *     keel_trace_whole_loss(t, &(keel_whole_loss){ (const char *[]){ "a", "b" },
 *                                                  (keel_traced[]){ left, right }, 2, contrast },
 *                           &loss); */
#ifndef KEEL_WHOLE_LOSS_H
#define KEEL_WHOLE_LOSS_H
#include <keel/function.h>

#ifdef __cplusplus
extern "C" {
#endif

/* `step` is traced as a function of its own, in which the values are inputs. It has one row, and
 * that is all rows of the outer step: an input has the shape [rows, shape of the value], whose
 * number of rows keel_trace_input_shape tells. So matmul of [rows, d] with its transpose is
 * [rows, rows]. Axes of operations count the one row as in any step: axis 0 is that, axis 1 the
 * rows of the outer step. It returns its loss by keel_trace_return_scalar(t, "loss", ...), mostly
 * the keel_trace_mean of a value of shape (). */
typedef struct keel_whole_loss {
    const char *const *name;  /* [n] of the inputs of `step` */
    const keel_traced *value; /* [n] what they are: values of the outer step */
    int n;
    keel_step step; /* once for each number of rows, before the first step that has it */
    void *context;  /* of the step */
} keel_whole_loss;

/* Add such a loss to a step. The scalar is used as that of any loss, also in several gradients: of
 * two towers each may have an optimizer of its own. Gradients flow to values of real numbers. Whole
 * numbers and bools, such as labels, must be inputs of the function; they arrive as they are, and
 * pass none. Operations make real numbers of them, but for comparisons of two of them, in any
 * shape, which see every digit. A step in which another operation would round them fails:
 * KEEL_EDATA.
 *
 * Returns  KEEL_OK; KEEL_EARG: names or values, or no value is real; KEEL_ESHAPE: a value has so
 *          many dims that rows are one too many; KEEL_EUNSUP: whole numbers that are no input of
 *          the function, or t is itself the step of such a loss; KEEL_ENOMEM. When a step of so
 *          many rows is prepared, what `step` returns; KEEL_EARG: it returns no loss, takes
 *          gradients for weights or applies an optimizer; KEEL_EUNSUP: it asks for a fact of the
 *          step, calls a model with weights, or a layer in it adds a loss of its own
 * Owns     names are copied; context must outlive the function
 * Threads  that of the trace; for `step` that which runs the function
 * Cost     in each step the real values of all rows go to every worker and process, and the workers
 *          of each process share what `step` computes: its large operations, where they go along
 *          the first dim of the one row; others run on one worker while the rest wait
 * Source   Keras on TensorFlow: an all-gather with a gradient, in front of the loss */
keel_status keel_trace_whole_loss(keel_trace *t, const keel_whole_loss *loss, keel_scalar *out);

#ifdef __cplusplus
}
#endif
#endif
