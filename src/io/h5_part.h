/* An HDF5 file as a part of a file that is being written, by a driver for libhdf5's virtual file
 * layer. Arrays go from where they are into the file, and no image of it needs memory. */
#ifndef KEEL_IO_H5_PART_H
#define KEEL_IO_H5_PART_H
#include "io/file.h"
#include <hdf5.h>

typedef struct keel_h5_part {
    keel_new_file *file;
    int64_t at;           /* the part's first byte */
    uint64_t n_bytes;     /* out, when libhdf5 has closed it */
    keel_failure failure; /* out: the first one; nothing is written after it */
} keel_h5_part;

/* What is created with `access`, a list of class H5P_FILE_ACCESS, becomes *p, which must outlive
 * the list and the file. One thread at a time. KEEL_EIO: libhdf5 failed. */
keel_status keel_h5_part_use(hid_t access, keel_h5_part *p);

#endif
