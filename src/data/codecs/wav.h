/* WAV files as float32, as tf.audio.decode_wav reads them: 16-bit samples are divided by 32768.
 * Keel also reads what TensorFlow refuses: 8, 24 and 32 bits, floats, and chunks of any name. */
#ifndef KEEL_DATA_CODECS_WAV_H
#define KEEL_DATA_CODECS_WAV_H
#include "base/error.h"
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct keel_wav {
    int64_t frames;
    int channels, rate; /* rate: frames a second */
    int bits;           /* of a sample */
    bool floats;
    size_t at, frame_bytes; /* where the samples begin in the file */
} keel_wav;

enum { KEEL_WAV_CHANNELS_MAX = 1024 };

/* Read the header from the first n_head bytes of a file of n_bytes. KEEL_END: they do not reach to
 * the samples (never if n_head is n_bytes); KEEL_EFORMAT: damaged or truncated; KEEL_EUNSUP: an
 * encoding that is not read. `what` names the file. */
keel_status keel_wav_header(keel_wav *out, const void *head, size_t n_head, size_t n_bytes,
                            const char *what);

/* Convert `frames` frames to out [frames, channels]. KEEL_EDATA: a float that is not finite. */
keel_status keel_wav_convert(const keel_wav *w, const void *samples, int64_t frames, float *out,
                             const char *what);

#endif
