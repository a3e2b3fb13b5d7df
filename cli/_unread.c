/* Options that the data does not read: see setup.h. */
#include "setup.h"
#include "tables.h"
#include <string.h>
#include <strings.h>
#include <sys/stat.h>

/* ARRAYS are files of arrays; PAIRS those with a file for each array; TABLES have a row a line. The
 * last three are directories of such files. */
enum { ARRAYS = 1, PAIRS = 2, TABLES = 4, IMAGES = 8, SOUNDS = 16, TEXTS = 32 };

static bool ends(const char *spec, const char *ending)
{
    const size_t n = strlen(spec), e = strlen(ending);
    return n >= e && !strcasecmp(spec + n - e, ending);
}

/* Of a directory, by its first file; 0: it is none, or has files of another kind. */
static unsigned kind_of_rows(const char *spec, const keel_dataset *d)
{
    struct stat st;
    const char *name = keel_dataset_row_name(d, 0);
    if (!name || stat(keel_setup_folder(spec), &st) || !S_ISDIR(st.st_mode)) return 0;
    return ends(name, ".txt") ? TEXTS : ends(name, ".wav") ? SOUNDS : IMAGES;
}

/* What is known by its name; 0: nothing, as of a folder or of a pipeline. */
static unsigned kind_of(const char *spec)
{
    static const struct {
        const char *ending;
        unsigned kind;
    } kinds[] = {
        { ".npz", ARRAYS }, { ".h5", ARRAYS },   { ".hdf5", ARRAYS },
        { ".npy", PAIRS },  { "-ubyte", PAIRS }, { "-ubyte.gz", PAIRS },
    };
    if (keel_tables_is(spec)) return TABLES;
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
        if (ends(spec, kinds[i].ending)) return kinds[i].kind;
    return 0;
}

int keel_setup_unread(const char *spec, const keel_dataset *d, const keel_data_options *o)
{
    const unsigned kind = d ? kind_of_rows(spec, d) : kind_of(spec);
    const unsigned arrays = ARRAYS | PAIRS, all = arrays | TABLES,
                   folders = IMAGES | SOUNDS | TEXTS;
    const unsigned others = arrays | SOUNDS | TEXTS; /* than images */
    const struct {
        bool given;
        unsigned by;
        const char *option, *use;
    } options[] = {
        { o->image_size, others, "image-size", "images that are decoded" },
        { o->interpolation != KEEL_BILINEAR, others, "interpolation", "images that are decoded" },
        { o->crop, others, "crop-to-aspect-ratio", "images that are decoded" },
        { o->pad, others, "pad-to-aspect-ratio", "images that are decoded" },
        { o->dct_scaling, others, "image-dct-scaling", "images that are decoded" },
        { o->labels, all, "labels", "the files of a directory" },
        { o->class_names, all, "class-names", "the folders of a directory" },
        { o->follow_links, all, "follow-links", "the folders of a directory" },
        { o->audio_length > 0, all | IMAGES | TEXTS, "audio-length", "sounds" },
        { o->sampling_rate > 0, all | IMAGES | TEXTS, "sampling-rate", "sounds" },
        { o->max_length > 0, all | IMAGES | SOUNDS, "max-length", "texts of a directory" },
        { o->features, all, "features", "TFRecord files" },
        { o->no_header, arrays | folders, "no-header", "CSV files" },
        { o->missing, arrays | folders, "missing", "tables" },
        { o->vocabulary, arrays | folders, "vocabulary", "tables" },
        { o->sample_weight, PAIRS | folders, "sample-weight", "data whose parts have names" },
        { o->label, PAIRS, "label", "data whose parts have names, and here a file is the target" },
    };
    for (size_t i = 0; i < sizeof options / sizeof *options; i++)
        if (options[i].given && options[i].by & kind)
            return keel_complain(EXIT_USAGE, "%s: --%s is for %s; leave it out", spec,
                                 options[i].option, options[i].use);
    return -1;
}
