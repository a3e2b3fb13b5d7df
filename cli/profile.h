/* What --profile prints. */
#ifndef KEEL_CLI_PROFILE_H
#define KEEL_CLI_PROFILE_H
#include "command.h"

enum { KEEL_PEAKS_MAX = 96 };

/* A line for each layer: time a step, forward and backward, its share, rates against the machine's
 * peak; then each worker's time in kernels, reducing, updating and waiting. */
void keel_profile_print(FILE *f, const keel_profile *p);

/* Why a rate may be above the peak, and one core's peaks as text. */
extern const char keel_profile_above[];
char *keel_profile_peaks(char out[KEEL_PEAKS_MAX], const keel_profile *p);

#endif
