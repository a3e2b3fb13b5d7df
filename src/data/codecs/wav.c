/* See wav.h. libsndfile would bring the libraries of six other formats to read this header. */
#include "data/codecs/wav.h"
#include <math.h>
#include <string.h>

enum {
    PCM = 1,
    FLOATS = 3,
    EXTENSIBLE = 0xFFFE,
    RIFF_HEAD = 12,
    CHUNK_HEAD = 8,
    FORMAT_LEAST = 16
};

static uint32_t u16(const unsigned char *b)
{
    return b[0] | (uint32_t)b[1] << 8;
}

static uint32_t u32(const unsigned char *b)
{
    return u16(b) | u16(b + 2) << 16;
}

static const char *encoding_name(uint32_t code)
{
    static const struct {
        uint32_t code;
        const char *name;
    } known[] = { { 2, "ADPCM" }, { 6, "A-law" }, { 7, "mu-law" }, { 17, "IMA ADPCM" },
                  { 49, "GSM" },  { 80, "MPEG" }, { 85, "MP3" } };
    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        if (known[i].code == code) return known[i].name;
    return "an unknown encoding";
}

static keel_status read_format(keel_wav *w, const unsigned char *b, uint32_t n, const char *what)
{
    enum { SUBFORMAT = 24, EXTENDED = 40 };
    if (n < FORMAT_LEAST)
        return keel_fail(KEEL_EFORMAT, "%s: decode WAV: its format has only %u bytes", what, n);
    uint32_t code = u16(b);
    if (code == EXTENSIBLE && n >= EXTENDED) code = u16(b + SUBFORMAT);
    const uint32_t channels = u16(b + 2), rate = u32(b + 4), block = u16(b + 12),
                   bits = u16(b + 14);
    if (code != PCM && code != FLOATS)
        return keel_fail(KEEL_EUNSUP, "%s: a WAV in %s (%u); PCM and floats are read", what,
                         encoding_name(code), code);
    if (channels < 1 || channels > KEEL_WAV_CHANNELS_MAX || rate < 1 || rate > INT32_MAX)
        return keel_fail(KEEL_EFORMAT, "%s: decode WAV: %u channels at %u frames a second", what,
                         channels, rate);
    const bool known = code == FLOATS ? bits == 32 || bits == 64
                                      : bits == 8 || bits == 16 || bits == 24 || bits == 32;
    if (!known)
        return keel_fail(KEEL_EUNSUP,
                         "%s: a WAV of %u bits %s; 8, 16, 24 and 32 are read, of "
                         "floats 32 and 64",
                         what, bits, code == FLOATS ? "a float" : "a sample");
    if (block != channels * (bits / 8))
        return keel_fail(KEEL_EFORMAT,
                         "%s: decode WAV: a frame of %u bytes for %u samples of %u bits", what,
                         block, channels, bits);
    w->channels = (int)channels;
    w->rate = (int)rate;
    w->bits = (int)bits;
    w->floats = code == FLOATS;
    w->frame_bytes = block;
    return KEEL_OK;
}

static keel_status fail_cut(const char *what)
{
    return keel_fail(
        KEEL_EFORMAT,
        "%s: decode WAV: cut short, or written without its length; replace the file or "
        "remove it",
        what);
}

keel_status keel_wav_header(keel_wav *out, const void *head, size_t n_head, size_t n_bytes,
                            const char *what)
{
    const unsigned char *b = head;
    keel_wav w = { 0 };
    if (!n_bytes) return keel_fail(KEEL_EFORMAT, "%s: the file is empty", what);
    if (n_head >= RIFF_HEAD ? memcmp(b, "RIFF", 4) || memcmp(b + 8, "WAVE", 4) : n_head == n_bytes)
        return keel_fail(KEEL_EFORMAT, "%s: no WAV file; remove the file or replace it", what);
    size_t at = RIFF_HEAD;
    while (at <= n_bytes && n_bytes - at >= CHUNK_HEAD) {
        if (at > n_head || n_head - at < CHUNK_HEAD) return KEEL_END;
        const uint32_t n = u32(b + at + 4);
        const unsigned char *name = b + at;
        at += CHUNK_HEAD;
        if (n > n_bytes - at) return fail_cut(what);
        if (!memcmp(name, "fmt ", 4)) {
            if (n_head - at < n) return KEEL_END;
            KEEL_TRY(read_format(&w, b + at, n, what));
        } else if (!memcmp(name, "data", 4)) {
            if (!w.channels)
                return keel_fail(KEEL_EFORMAT, "%s: decode WAV: samples before their format", what);
            w.at = at;
            w.frames = (int64_t)(n / w.frame_bytes);
            *out = w;
            return KEEL_OK;
        }
        at += n + (n & 1); /* chunks begin at even offsets */
    }
    return fail_cut(what);
}

static float integer_at(const unsigned char *b, int bits)
{
    switch (bits) {
    case 8:
        return (float)(b[0] - 128) * (1.0f / 128);
    case 16:
        return (float)(int16_t)u16(b) * (1.0f / 32768);
    case 24:
        return (float)((int32_t)(u16(b) << 8 | (uint32_t)b[2] << 24) >> 8) * (1.0f / 8388608);
    default:
        return (float)(int32_t)u32(b) * (1.0f / 2147483648.0f);
    }
}

static float float_at(const unsigned char *b, int bits)
{
    float f;
    double d;
    if (bits == 32) {
        memcpy(&f, b, sizeof f);
        return f;
    }
    memcpy(&d, b, sizeof d);
    return (float)d;
}

keel_status keel_wav_convert(const keel_wav *w, const void *samples, int64_t frames, float *out,
                             const char *what)
{
    const unsigned char *b = samples;
    const int64_t n = frames * w->channels;
    const size_t step = (size_t)w->bits / 8;
    if (!w->floats) {
        for (int64_t i = 0; i < n; i++, b += step) out[i] = integer_at(b, w->bits);
        return KEEL_OK;
    }
    for (int64_t i = 0; i < n; i++, b += step) {
        out[i] = float_at(b, w->bits);
        if (!isfinite(out[i]))
            return keel_fail(KEEL_EDATA, "%s: frame %lld is not finite", what,
                             (long long)(i / w->channels));
    }
    return KEEL_OK;
}
