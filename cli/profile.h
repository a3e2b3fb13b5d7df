/* The output of --profile. */
#ifndef KEEL_CLI_PROFILE_H
#define KEEL_CLI_PROFILE_H
#include "command.h"

enum { KEEL_PEAKS_MAX = 96 };

/* Print a line for each layer: time per step, forward and backward, its share, and its rates
 * relative to the machine's peak; then for each worker the time in kernels, reducing, updating and
 * waiting. */
void keel_profile_print(FILE *f, const keel_profile *p);

/* A note on rates above the peak, and the peaks of one core as text. */
extern const char keel_profile_above[];
char *keel_profile_peaks(char out[KEEL_PEAKS_MAX], const keel_profile *p);

#endif
