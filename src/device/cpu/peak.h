/* The measured peak rates of one core, the reference for profiles. */
#ifndef KEEL_DEVICE_CPU_PEAK_H
#define KEEL_DEVICE_CPU_PEAK_H

/* Each takes some 10 ms on the calling thread. */
double keel_peak_flops(void); /* float32 operations per second (a multiply-add counts as two) */
double
keel_peak_bf16_flops(void); /* of bfloat16, by the faster of the two below; 0: no such unit */
double keel_peak_bf16_flops_of_vectors(void); /* by AVX512_BF16, which the processor must have */
double keel_peak_bf16_flops_of_tiles(void);   /* by AMX, which the processor must have */
double keel_peak_bytes(void); /* bytes read and written per second in main memory; 0: no memory */

#endif
