/* A plan of a fit: the split of its steps among devices and its memory, without running it. */
#ifndef KEEL_PLAN_H
#define KEEL_PLAN_H
#include <keel/train.h>

#ifdef __cplusplus
extern "C" {
#endif

/* A part of what a fit takes of a device's own memory: activations, weights, what libraries have.
 * The last of each device is what was taken when it was opened, by CUDA's context and by other
 * programs; it is none of the memory that the device has for this process. */
typedef struct keel_memory_part {
    int worker;
    const char *what; /* "gradients"; constant */
    int64_t bytes;
} keel_memory_part;

/* The split of an epoch among devices, and the memory that fit needs. */
typedef struct keel_plan {
    int64_t rows, batch_size, steps; /* steps of an epoch */
    int64_t last_rows;               /* of the short last step; 0: none */
    int64_t unused_rows;             /* left out or carried */
    int devices, workers;
    int64_t *full, *last; /* [devices] rows of each device in a full and in the last step */
    int64_t weight_bytes, moment_bytes, packed_bytes;           /* once per process */
    int64_t *activation_bytes, *gradient_bytes, *scratch_bytes; /* [workers] */
    int64_t *worker_of;                                         /* [devices] its (first) worker */
    int64_t activation_bound; /* lower bound of any memory plan, per worker */
    int64_t model_bytes;      /* of the model itself: weights, optimizer state. Steps have them
                                 instead, and give them back at the end */
    int64_t total_bytes;      /* of the host. Checkpoints need model_bytes more, and so do callbacks
                                 that save or read the model while it trains */
    double reproducible_seconds, plain_seconds; /* of a step; 0: not measured */
    int n_kernel;
    keel_kernel_row *kernel; /* [n_kernel] for each op of a layer, in the order of the model */
    /* If processes share the steps, each with these devices: all that is above is of the first. */
    int processes;                           /* 1: it is alone */
    int64_t *process_full, *process_last;    /* [processes] rows in a full and in the last step */
    int64_t sent_gradients, sent_statistics; /* bytes that it sends in a full step, to all others */
    int64_t sent_others;                     /* sums of losses and metrics, agreements */
    int64_t exchange_bytes;                  /* memory for what comes; in total_bytes */
    int exchanges;                           /* of a full step, at most */
    int64_t *device_bytes, *device_memory;   /* [workers] needed, and there; NULL: cores compute */
    int n_part;
    keel_memory_part *part; /* [n_part] what device_bytes consist of, one worker after another */
    char *staged;           /* "resize, sort": ops that run on the host, on copies; NULL: none */
} keel_plan;

/* Plan a fit of `rows` rows on s (NULL: one device per core), without running it. inputs
 * [keel_model_input_count]: the shapes of inputs with open dims; NULL: there are none. Of others,
 * rank 0 or less, or their shape.
 *
 * Returns  KEEL_OK; KEEL_EARG, KEEL_EUNSUP, KEEL_ESHAPE, KEEL_ENOMEM as keel_fit
 * Owns     *out is freed with keel_plan_free
 * Threads  any, one at a time on a model
 * Cost     compiles the model; allocates weights but no activations */
keel_status keel_plan_make(keel_plan *out, const keel_model *m, const keel_strategy *s,
                           int64_t rows, int64_t batch_size, keel_end_of_data end,
                           const keel_shape *inputs);

/* The same for `processes` that share the steps, each with the devices of s.
 *
 * Returns  as keel_plan_make; KEEL_EARG also: not 1 to 1024 processes, or more devices than shards
 * Owns     as keel_plan_make
 * Threads  as keel_plan_make
 * Cost     as keel_plan_make; nothing is connected */
keel_status keel_plan_processes(keel_plan *out, const keel_model *m, const keel_strategy *s,
                                int processes, int64_t rows, int64_t batch_size,
                                keel_end_of_data end, const keel_shape *inputs);

/* Measure the cost of reproducible steps: the median time of full steps of made-up rows on s, which
 * must be reproducible, alternating with ordinary steps. Where the loss of made-up rows is not
 * finite, steps are without their last part, which moves the weights. inputs: as for
 * keel_plan_make.
 *
 * Returns  KEEL_OK; KEEL_EARG: s is not reproducible; as keel_fit, except KEEL_ENUMERIC
 * Owns     fills members of *p; the model's weights do not change
 * Threads  one at a time on a model and on a strategy
 * Cost     two seconds, or ten steps if those take longer; the memory of two fits */
keel_status keel_plan_measure(keel_plan *p, keel_model *m, keel_strategy *s,
                              const keel_shape *inputs);

/* Free the members of a plan; NULL and a zeroed plan are allowed.
 *
 * Returns  nothing
 * Owns     frees the members
 * Threads  any */
void keel_plan_free(keel_plan *p);

#ifdef __cplusplus
}
#endif
#endif
