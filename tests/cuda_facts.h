/* The facts of a step in the memory of the emulator's device, or of a GPU, as the engine gives them
 * to kernels. */
#ifndef TESTS_CUDA_FACTS_H
#define TESTS_CUDA_FACTS_H
#include "emulator.h"
#include "ops/op.h"

static inline const keel_step_facts *cuda_facts(const keel_step_facts *step)
{
    keel_step_facts there = *step;
    if (step->loss_seed) {
        const int64_t bytes = step->loss_seeds * (int64_t)sizeof(double);
        double *seeds = emu_allocate(bytes, "seeds");
        emu_copy_in(seeds, step->loss_seed, bytes);
        there.loss_seed = seeds;
    }
    keel_step_facts *at = emu_allocate(sizeof there, "facts");
    emu_copy_in(at, &there, sizeof there);
    return at;
}

#endif
