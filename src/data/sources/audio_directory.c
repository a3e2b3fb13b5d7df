/* A directory with one folder of WAV files per class, or without labels all of them, as
 * keras.utils.audio_dataset_from_directory. Headers are read when the directory is opened, samples
 * with their row. */
#include "base/memory.h"
#include "data/codecs/wav.h"
#include "data/folders.h"
#include "io/file.h"
#include "tensor/dtype.h"
#include "tensor/shape.h"
#include <stdio.h>
#include <string.h>

#define FRAMES_MAX (INT64_C(1) << 31)

typedef struct sounds {
    keel_folder f;  /* first, for keel_dataset_note */
    keel_wav *wav;  /* [f.count]; without bytes in a frame: only reading the row fails */
    int64_t rate;   /* the one that is asked for; 0: any */
    int64_t frames; /* of a row; KEEL_DIM_OPEN: those of its file */
} sounds;

/* The header is mostly in the first bytes; otherwise chunks of texts or pictures precede it. */
static keel_status read_header(keel_wav *out, const char *path, keel_scratch *scratch)
{
    static const size_t heads[] = { 4 << 10, 256 << 10, 64 << 20 };
    keel_file f;
    keel_status s = KEEL_END;
    KEEL_TRY(keel_file_open(&f, path));
    for (size_t i = 0; s == KEEL_END && i < sizeof heads / sizeof *heads; i++) {
        const size_t n = f.n_bytes < heads[i] ? f.n_bytes : heads[i];
        void *head = keel_scratch_reserve(scratch, 0, n + 1);
        s = head ? keel_file_read_at(&f, 0, head, n) : KEEL_ENOMEM;
        if (s >= 0) s = keel_wav_header(out, head, n, f.n_bytes, path);
    }
    keel_file_close(&f);
    if (s == KEEL_END)
        s = keel_fail(KEEL_EUNSUP, "%s: the samples begin behind the first 64 MiB", path);
    return s;
}

/* `first`: a file that was right, NULL: there is none yet. */
static keel_status check_header(const sounds *p, const char *path, const keel_wav *w,
                                const keel_wav *first)
{
    if (first && w->channels != first->channels)
        return keel_fail(KEEL_EDATA, "%s: %d channels, but %s has %d; rows must be alike", path,
                         w->channels, p->f.at[first - p->wav].path, first->channels);
    if (p->rate && w->rate != p->rate)
        return keel_fail(
            KEEL_EUNSUP,
            "%s: a sampling rate of %d; Keel does not resample to %lld, so convert the "
            "file",
            path, w->rate, (long long)p->rate);
    if (w->frames > FRAMES_MAX)
        return keel_fail(KEEL_EFORMAT, "%s: %lld frames are more than is read", path,
                         (long long)w->frames);
    return KEEL_OK;
}

static keel_status check_file(const sounds *p, keel_wav *w, const char *path, const keel_wav *first,
                              keel_scratch *scratch)
{
    const keel_status s = read_header(w, path, scratch);
    if (s >= 0) return check_header(p, path, w, first);
    return s == KEEL_EFORMAT || s == KEEL_EUNSUP ? keel_fail_within(s, "a sound cannot be read")
                                                 : s;
}

static keel_status read_headers(sounds *p, const keel_dataset_options *o)
{
    keel_scratch scratch = { 0 };
    keel_status s = KEEL_OK;
    const keel_wav *first = NULL; /* that is right */
    bool alike = true;
    for (int64_t i = 0; s >= 0 && i < p->f.count; i++) {
        s = check_file(p, &p->wav[i], p->f.at[i].path, first, &scratch);
        if (s >= 0) {
            first = first ? first : &p->wav[i];
            alike = alike && p->wav[i].frames == first->frames;
        } else if (o->unchecked && s != KEEL_ENOMEM && (first || i + 1 < p->f.count)) {
            p->wav[i] = (keel_wav){ 0 };
            s = KEEL_OK;
        }
    }
    keel_scratch_free(&scratch);
    if (s < 0) return s;
    for (int64_t i = 0; i < p->f.count; i++)
        if (!p->wav[i].frame_bytes) p->wav[i].frames = first->frames;
    p->frames = o->audio_length          ? o->audio_length
                : alike && first->frames ? first->frames
                                         : KEEL_DIM_OPEN;
    p->f.x.dtype = KEEL_FLOAT32;
    p->f.x.shape = KEEL_SHAPE(p->frames, first->channels);
    return KEEL_OK;
}

/* The samples of a row as they are stored; and as float32, if that is not what is wanted. */
static int64_t sound_bytes(const sounds *p, int64_t index, const keel_dtype *want)
{
    const keel_wav *w = &p->wav[index];
    const bool cut = p->frames != KEEL_DIM_OPEN && p->frames < w->frames;
    const int64_t frames = cut ? p->frames : w->frames; /* of 2^31 at most */
    const int64_t n = frames * (int64_t)w->frame_bytes + 1;
    if (!want || want[0] == KEEL_FLOAT32) return n;
    return n + (frames * w->channels + 1) * (int64_t)sizeof(float);
}

/* By the headers. What cannot be read takes none. */
static int64_t most_bytes(const sounds *p, const keel_dtype *want, int64_t *row)
{
    int64_t most = 0;
    *row = -1;
    for (int64_t i = 0; i < p->f.count; i++) {
        const int64_t n = p->wav[i].frame_bytes ? sound_bytes(p, i, want) : 0;
        if (n <= most) continue;
        most = n;
        *row = i;
    }
    return most;
}

static int64_t needs(const void *state, const keel_dtype *want)
{
    int64_t row;
    return most_bytes(state, want, &row);
}

static void largest(const void *state, char *text, size_t size)
{
    const sounds *p = state;
    int64_t row;
    most_bytes(p, NULL, &row);
    snprintf(text, size, "%s", row < 0 ? "" : p->f.at[row].path);
}

static int64_t length(const void *state, int field, int64_t index)
{
    (void)field;
    return ((const sounds *)state)->wav[index].frames;
}

/* Read the first frames of a file into scratch buffer 0. */
static keel_status read_samples(const keel_wav *w, const char *path, int64_t frames,
                                keel_scratch *scratch)
{
    keel_file f;
    KEEL_TRY(keel_file_open(&f, path));
    const size_t n = (size_t)frames * w->frame_bytes;
    void *to = keel_scratch_reserve(scratch, 0, n + 1);
    const keel_status s = to ? keel_file_read_at(&f, w->at, to, n) : KEEL_ENOMEM;
    keel_file_close(&f);
    return s;
}

static keel_status say_why(const sounds *p, const char *path, keel_scratch *scratch)
{
    keel_wav w;
    const keel_wav *first = p->wav;
    while (!first->frame_bytes) first++;
    const keel_status s = check_file(p, &w, path, first, scratch);
    return s < 0 ? s : keel_fail(KEEL_EDATA, "%s: has changed since the data was opened", path);
}

static keel_status write_sound(const sounds *p, int64_t index, void *x, keel_dtype want,
                               int64_t count, keel_scratch *scratch)
{
    const keel_wav *w = &p->wav[index];
    const char *path = p->f.at[index].path;
    if (!w->frame_bytes) return say_why(p, path, scratch);
    const int64_t room = count / w->channels, frames = w->frames < room ? w->frames : room;
    const int64_t n = frames * w->channels;
    float *to =
        want == KEEL_FLOAT32 ? x : keel_scratch_reserve(scratch, 1, (size_t)(n + 1) * sizeof *to);
    const keel_status s = to ? read_samples(w, path, frames, scratch) : KEEL_ENOMEM;
    if (s == KEEL_ENOMEM)
        return keel_fail_within(s, "%s: reading it takes %lld bytes", path,
                                (long long)sound_bytes(p, index, &want));
    if (s < 0) return s;
    KEEL_TRY(keel_wav_convert(w, scratch->at[0], frames, to, path));
    if (to != x) KEEL_TRY(keel_field_write(x, want, to, &p->f.x, n));
    const size_t size = keel_dtype_size(want);
    memset((char *)x + (size_t)n * size, 0, (size_t)(count - n) * size);
    return KEEL_OK;
}

static keel_status read_row(const void *state, int64_t index, const keel_row *row,
                            keel_scratch *scratch)
{
    const sounds *p = state;
    KEEL_TRY(keel_folder_write_label(&p->f, index, row));
    if (!row->at[0]) return KEEL_OK;
    return write_sound(p, index, row->at[0], row->want[0], row->count[0], scratch);
}

static void close_sounds(void *state)
{
    sounds *p = state;
    keel_folder_free(&p->f);
    keel_free(p->wav);
    keel_free(p);
}

static bool claims(const char *spec)
{
    const char *path;
    return keel_folder_kind(spec, &path) == KEEL_FILE_AUDIO;
}

const keel_source keel_source_audio_directory = {
    .name = "audio_directory",
    .help = "a directory that has one folder of sounds (wav) for each class",
    .shuffled_split = true,
    .prefix = "audio",
    .claims = claims,
    .open = keel_folder_open_said,
    .read = read_row,
    .soon = keel_folder_soon,
    .row_name = keel_folder_row_name,
    .needs = needs,
    .largest = largest,
    .length = length,
    .close = close_sounds,
};

static keel_status begin(void *state, const char *path, const keel_dataset_options *o)
{
    sounds *p = state;
    (void)path;
    if (!(p->wav = keel_calloc((size_t)p->f.count, sizeof *p->wav))) return KEEL_ENOMEM;
    p->rate = o->sampling_rate;
    return read_headers(p, o);
}

const keel_folder_reader keel_sounds_reader = { &keel_source_audio_directory, sizeof(sounds),
                                                begin };

keel_status keel_dataset_from_audio_directory(keel_dataset **out, const char *path,
                                              const keel_dataset_options *options)
{
    return keel_folder_open(out, path, KEEL_FILE_AUDIO, options);
}
