/* What --profile prints. */
#ifndef KEEL_CLI_PROFILE_H
#define KEEL_CLI_PROFILE_H
#include "command.h"

/* A line for each layer: time a step, forward and backward, its share, rates against the machine's
 * peak; then each worker's time in kernels, reducing, updating and waiting. */
void keel_profile_print(FILE *f, const keel_profile *p);

#endif
