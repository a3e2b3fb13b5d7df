/* What one core of this machine can do, measured: the yardstick of profiles. */
#ifndef KEEL_DEVICE_CPU_PEAK_H
#define KEEL_DEVICE_CPU_PEAK_H

/* Each takes some 10 ms on the calling thread. */
double keel_peak_flops(void); /* float32 operations a second (a multiply-add counts two) */
double
keel_peak_bf16_flops(void); /* of bfloat16 pairs, by the fastest below; 0: has none that pays */
double keel_peak_bf16_flops_of_vectors(void); /* by AVX512_BF16, which the processor must have */
double keel_peak_bf16_flops_of_tiles(void);   /* by AMX, which the processor must have */
double keel_peak_bytes(void); /* bytes read and written a second, beyond the caches; 0: no memory */

#endif
