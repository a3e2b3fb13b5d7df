/* Any bytes as a WAV file, from its begin alone and whole, and its samples. */
#include "base/memory.h"
#include "data/codecs/wav.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    keel_wav w, part;
    if (keel_wav_header(&w, data, size, size, "fuzz") != KEEL_OK) return 0;
    for (size_t head = 0; head < size && head < 64; head++)
        if (keel_wav_header(&part, data, head, size, "fuzz") == KEEL_OK && part.at != w.at)
            __builtin_trap();
    if (w.at + (uint64_t)w.frames * w.frame_bytes > size) __builtin_trap();
    float *out = keel_calloc((size_t)(w.frames * w.channels) + 1, sizeof *out);
    if (out) keel_wav_convert(&w, data + w.at, w.frames, out, "fuzz");
    keel_free(out);
    return 0;
}
