/* See unknown.h. */
#include "data/unknown.h"
#include "base/text.h"
#include "data/source.h"
#include "io/tfrecord.h"
#include <errno.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>

static const struct {
    const char *ending, *format;
} foreign[] = {
    { ".parquet", "Parquet" },
    { ".arrow", "Arrow" },
    { ".feather", "Arrow" },
    { ".orc", "ORC" },
    { ".avro", "Avro" },
    { ".xlsx", "Excel's format" },
    { ".xls", "Excel's format" },
    { ".pkl", "Python pickles" },
    { ".pickle", "Python pickles" },
    { ".pt", "PyTorch's format" },
    { ".mat", "MATLAB's format" },
    { ".mdb", "LMDB" },
    { ".lmdb", "LMDB" },
    { ".rec", "RecordIO" },
    { ".zip", "zip archives" },
    { ".mp3", "MP3" },
    { ".flac", "FLAC" },
    { ".ogg", "Ogg" },
    { ".mp4", "videos" },
    { ".avi", "videos" },
    { ".tif", "TIFF" },
    { ".tiff", "TIFF" },
    { ".heic", "HEIC" },
};

/* Files that are rows of a folder, but no data by themselves. */
static const struct {
    const char *ending, *what;
} single[] = {
    { ".jpg", "image" }, { ".jpeg", "image" }, { ".png", "image" }, { ".bmp", "image" },
    { ".gif", "image" }, { ".webp", "image" }, { ".wav", "sound" },
};

static const char *const schemes[] = { "http://", "https://", "ftp://", "s3://",
                                       "gs://",   "hdfs://",  "file://" };

static bool ends_with(const char *spec, const char *ending)
{
    const size_t n = strlen(spec), end = strlen(ending);
    return n > end && !strcasecmp(spec + n - end, ending);
}

static keel_status say_what_is_read(const char *spec)
{
    keel_text known = { 0 };
    for (int i = 0; keel_sources[i]; i++)
        if (keel_sources[i]->claims)
            keel_text_add(&known, "%s%s", known.length ? "; " : "", keel_sources[i]->help);
    const keel_status s = keel_fail(KEEL_EARG, "%s: is not a kind of data that Keel reads: %s",
                                    spec, known.data ? known.data : "");
    keel_text_free(&known);
    return s;
}

static bool has_records(const char *path)
{
    keel_tfrecord t = { 0 };
    int64_t room = 0;
    const bool is = keel_tfrecord_open(&t, path, false, &room) >= 0 && t.count > 0;
    keel_tfrecord_close(&t);
    return is;
}

keel_status keel_data_no_url(const char *spec)
{
    for (size_t i = 0; i < sizeof schemes / sizeof *schemes; i++)
        if (!strncasecmp(spec, schemes[i], strlen(schemes[i])))
            return keel_fail(KEEL_EARG,
                             "%s: Keel reads no URLs; download the data, or let a program write "
                             "its rows as .npy, with exec:CMD as the data",
                             spec);
    return KEEL_OK;
}

keel_status keel_data_unknown(const char *spec)
{
    struct stat st;
    if (stat(spec, &st)) {
        if (strpbrk(spec, ":(,")) return say_what_is_read(spec);
        if (errno == ENOENT) return keel_fail(KEEL_EIO, "%s: does not exist", spec);
        return keel_fail(KEEL_EIO, "%s: %s", spec, strerror(errno));
    }
    if (ends_with(spec, ".keras"))
        return keel_fail(KEEL_EARG, "%s: is a model; give data to train it with", spec);
    for (size_t i = 0; i < sizeof single / sizeof *single; i++)
        if (ends_with(spec, single[i].ending))
            return keel_fail(KEEL_EARG, "%s: is one %s; give its folder", spec, single[i].what);
    for (size_t i = 0; i < sizeof foreign / sizeof *foreign; i++)
        if (ends_with(spec, foreign[i].ending))
            return keel_fail(KEEL_EARG,
                             "%s: Keel does not read %s; let a program write its rows as .npy, "
                             "with exec:CMD as the data (docs/pipelines.md has one for Parquet), "
                             "or convert it",
                             spec, foreign[i].format);
    if (S_ISREG(st.st_mode) && has_records(spec))
        return keel_fail(KEEL_EARG, "%s: has the records of a TFRecord file; name it tfrecord:%s",
                         spec, spec);
    return say_what_is_read(spec);
}
