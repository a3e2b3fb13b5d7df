/* Kernels with a fault each, and what the emulator must say of it. */
#ifndef EMULATOR_BUGS_H
#define EMULATOR_BUGS_H
#include <stdbool.h>
#ifdef __cplusplus
extern "C" {
#endif

typedef struct emu_bug {
    const char *what;
    const char *(*run)(void); /* launches; why that failed, or NULL */
    const char *says;         /* part of the report; NULL: there is none */
    const char *more;         /* another part; NULL: nothing else */
    const char *code;         /* on the line of bugs.cu that the report names; NULL: any */
    bool launch;              /* the launch itself fails, and says so */
} emu_bug;
extern const emu_bug emu_bugs[]; /* ends with what NULL */

/* The sums of 1000 blocks of floats, by the shuffles and barriers of gpu.h: for their bits. */
void emu_block_sums(float *out, const float *x, int n);
#ifdef __cplusplus
}
#endif
#endif
