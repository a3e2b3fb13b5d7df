/* Write a list of weights as an HDF5 file, by libhdf5 with the settings of h5py: the oldest format,
 * contiguous arrays, no times, names as variable UTF-8 strings. It may be a part of a file.
 * Links keep the default encoding: for UTF-8 links libhdf5 writes the newer group format, which
 * h5py does only for names that are not ASCII. Keras's paths are ASCII.
 *
 * While this runs, libhdf5 prints no messages on stderr for this thread; the text of its innermost
 * error becomes part of ours. */
#include "io/h5_part.h"
#include "io/weights_h5_impl.h"
#include <pthread.h>
#include <stdio.h>
#include <string.h>

typedef struct writer { /* HDF5 handles; < 0: not open */
    hid_t file, access, links, groups, arrays, text, scalar;
} writer;

static herr_t innermost(unsigned n, const H5E_error2_t *e, void *text)
{
    if (n == 0) snprintf(text, 200, "%s", e->desc ? e->desc : "no reason given");
    return 0;
}

static keel_status refused(const char *what, const char *path)
{
    char text[200] = "no reason given";
    H5Ewalk2(H5E_DEFAULT, H5E_WALK_UPWARD, innermost, text);
    return keel_fail(KEEL_EIO, "weights file: %s '%s': %s", what, path, text);
}

static keel_status open_writer(writer *w, keel_h5_part *part)
{
    *w = (writer){ -1, -1, -1, -1, -1, -1, -1 };
    if ((w->access = H5Pcreate(H5P_FILE_ACCESS)) < 0) return refused("cannot begin", "");
    KEEL_TRY(keel_h5_part_use(w->access, part));
    if (H5Pset_libver_bounds(w->access, H5F_LIBVER_EARLIEST, H5F_LIBVER_LATEST) < 0 ||
        (w->links = H5Pcreate(H5P_LINK_CREATE)) < 0 ||
        H5Pset_create_intermediate_group(w->links, 1) < 0 ||
        (w->groups = H5Pcreate(H5P_GROUP_CREATE)) < 0 || H5Pset_obj_track_times(w->groups, 0) < 0 ||
        (w->arrays = H5Pcreate(H5P_DATASET_CREATE)) < 0 ||
        H5Pset_obj_track_times(w->arrays, 0) < 0 || (w->text = H5Tcopy(H5T_C_S1)) < 0 ||
        H5Tset_size(w->text, H5T_VARIABLE) < 0 || H5Tset_cset(w->text, H5T_CSET_UTF8) < 0 ||
        (w->scalar = H5Screate(H5S_SCALAR)) < 0 ||
        (w->file = H5Fcreate("weights", H5F_ACC_TRUNC, H5P_DEFAULT, w->access)) < 0)
        return refused("cannot begin", "");
    return KEEL_OK;
}

static void close_writer(writer *w)
{
    if (w->file >= 0) H5Fclose(w->file);
    if (w->scalar >= 0) H5Sclose(w->scalar);
    if (w->text >= 0) H5Tclose(w->text);
    if (w->arrays >= 0) H5Pclose(w->arrays);
    if (w->groups >= 0) H5Pclose(w->groups);
    if (w->links >= 0) H5Pclose(w->links);
    if (w->access >= 0) H5Pclose(w->access);
}

static keel_status write_group(const writer *w, const keel_weights_group *g)
{
    keel_status s = KEEL_OK;
    hid_t attribute = -1;
    const hid_t group = H5Gcreate2(w->file, g->path, w->links, w->groups, H5P_DEFAULT);
    if (group < 0) return refused("group", g->path);
    if (g->name) {
        attribute = H5Acreate2(group, "name", w->text, w->scalar, H5P_DEFAULT, H5P_DEFAULT);
        if (attribute < 0 || H5Awrite(attribute, w->text, &(const char *){ g->name }) < 0)
            s = refused("name of", g->path);
    }
    if (attribute >= 0) H5Aclose(attribute);
    H5Gclose(group);
    return s;
}

static hid_t type_of(keel_h5_type t)
{
    switch (t) {
    case KEEL_H5_FLOAT32:
        return H5T_IEEE_F32LE;
    case KEEL_H5_FLOAT64:
        return H5T_IEEE_F64LE;
    case KEEL_H5_UINT8:
        return H5T_STD_U8LE;
    case KEEL_H5_INT32:
        return H5T_STD_I32LE;
    case KEEL_H5_UINT32:
        return H5T_STD_U32LE;
    default:
        return H5T_STD_I64LE;
    }
}

static keel_status write_array(const writer *w, const keel_weight *a)
{
    keel_status s = KEEL_OK;
    hsize_t dims[KEEL_RANK_MAX];
    bool empty = false;
    for (int i = 0; i < a->shape.rank; i++) {
        dims[i] = (hsize_t)a->shape.dim[i];
        empty |= dims[i] == 0;
    }
    const hid_t type = type_of(a->stored);
    const hid_t space =
        a->shape.rank ? H5Screate_simple(a->shape.rank, dims, NULL) : H5Screate(H5S_SCALAR);
    hid_t array = -1;
    if (space >= 0)
        array = H5Dcreate2(w->file, a->path, type, space, w->links, w->arrays, H5P_DEFAULT);
    if (array < 0 || (!empty && H5Dwrite(array, type, H5S_ALL, H5S_ALL, H5P_DEFAULT, a->data) < 0))
        s = refused("array", a->path);
    if (array >= 0) H5Dclose(array);
    if (space >= 0) H5Sclose(space);
    return s;
}

/* libhdf5 may have been built without threads, and a checkpoint is written by a thread of its own.
 */
static pthread_mutex_t one_at_a_time = PTHREAD_MUTEX_INITIALIZER;

static keel_status write_all(const keel_weights *list, keel_h5_part *part)
{
    writer w;
    keel_status s = open_writer(&w, part);
    /* In sorted order a group comes before its members, so each group is created once, here. */
    for (size_t i = 0; s >= 0 && i < list->n_groups; i++) s = write_group(&w, &list->groups[i]);
    for (size_t i = 0; s >= 0 && i < list->n_arrays && part->failure.status >= 0; i++)
        s = write_array(&w, &list->arrays[i]);
    if (s >= 0 && H5Fflush(w.file, H5F_SCOPE_GLOBAL) < 0) s = refused("cannot end", "");
    close_writer(&w);
    return part->failure.status < 0 ? keel_failure_raise(&part->failure) : s;
}

keel_status keel_weights_write(const keel_weights *list, keel_new_file *file, int64_t at,
                               uint64_t *n_bytes)
{
    H5E_auto2_t print = NULL;
    void *print_data = NULL;
    keel_h5_part part = { .file = file, .at = at };
    pthread_mutex_lock(&one_at_a_time);
    H5Eget_auto2(H5E_DEFAULT, &print, &print_data);
    H5Eset_auto2(H5E_DEFAULT, NULL, NULL);
    const keel_status s = write_all(list, &part);
    H5Eset_auto2(H5E_DEFAULT, print, print_data);
    pthread_mutex_unlock(&one_at_a_time);
    if (s >= 0) *n_bytes = part.n_bytes;
    return s;
}
