/* Write a list of weights as an HDF5 image, by libhdf5 with its in-memory driver and the settings
 * of h5py: the oldest format, contiguous arrays, no times, names as variable UTF-8 strings.
 * Links keep the default encoding: for UTF-8 links libhdf5 writes the newer group format, which
 * h5py does only for names that are not ASCII. Keras's paths are ASCII.
 *
 * While this runs, libhdf5 prints no messages on stderr for this thread; the text of its innermost
 * error becomes part of ours. */
#include "io/weights_h5_impl.h"
#include "base/memory.h"
#include <pthread.h>
#include <hdf5.h>
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

static keel_status open_writer(writer *w)
{
    enum { GROW_BY = 1 << 20 };
    *w = (writer){ -1, -1, -1, -1, -1, -1, -1 };
    if ((w->access = H5Pcreate(H5P_FILE_ACCESS)) < 0 ||
        H5Pset_fapl_core(w->access, GROW_BY, 0) < 0 ||
        H5Pset_libver_bounds(w->access, H5F_LIBVER_EARLIEST, H5F_LIBVER_LATEST) < 0 ||
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

static keel_status take_image(const writer *w, void **image, size_t *n_bytes)
{
    if (H5Fflush(w->file, H5F_SCOPE_GLOBAL) < 0) return refused("cannot end", "");
    const ssize_t size = H5Fget_file_image(w->file, NULL, 0);
    if (size < 0) return refused("cannot end", "");
    void *bytes = keel_calloc((size_t)size, 1);
    if (!bytes) return KEEL_ENOMEM;
    if (H5Fget_file_image(w->file, bytes, (size_t)size) != size) {
        keel_free(bytes);
        return refused("cannot end", "");
    }
    *image = bytes;
    *n_bytes = (size_t)size;
    return KEEL_OK;
}

/* libhdf5 may have been built without threads, and a checkpoint is written by a thread of its own.
 */
static pthread_mutex_t one_at_a_time = PTHREAD_MUTEX_INITIALIZER;

keel_status keel_weights_encode(const keel_weights *list, void **image, size_t *n_bytes)
{
    H5E_auto2_t print = NULL;
    void *print_data = NULL;
    writer w;
    pthread_mutex_lock(&one_at_a_time);
    H5Eget_auto2(H5E_DEFAULT, &print, &print_data);
    H5Eset_auto2(H5E_DEFAULT, NULL, NULL);
    keel_status s = open_writer(&w);
    /* In sorted order a group comes before its members, so each group is created once, here. */
    for (size_t i = 0; s >= 0 && i < list->n_groups; i++) s = write_group(&w, &list->groups[i]);
    for (size_t i = 0; s >= 0 && i < list->n_arrays; i++) s = write_array(&w, &list->arrays[i]);
    if (s >= 0) s = take_image(&w, image, n_bytes);
    close_writer(&w);
    H5Eset_auto2(H5E_DEFAULT, print, print_data);
    pthread_mutex_unlock(&one_at_a_time);
    return s;
}
