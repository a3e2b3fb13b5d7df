/* Tar archives: ustar, pax, GNU's long names and the old format. Opening one reads the headers and
 * checks their checksums, so a truncated archive is found; members are then read by their place.
 * Links, sparse files, devices and parts of multi-volume archives are refused by name: they have no
 * data of their own. Gzipped archives are held in memory; see input.h. Source: POSIX.1-2017, pax,
 * "ustar Interchange Format"; GNU tar manual, "Basic Tar Format". */
#ifndef KEEL_IO_TAR_H
#define KEEL_IO_TAR_H
#include "io/input.h"

typedef struct keel_tar_member {
    size_t name; /* where it begins in keel_tar.names */
    uint64_t offset, n_bytes;
} keel_tar_member;

typedef struct keel_tar { /* plain files only; folders are left out */
    keel_input in;
    keel_tar_member *member;
    int64_t count, room;
    char *names; /* zero-terminated, one after another */
    size_t n_names, names_room;
} keel_tar;

/* Open an archive and find its members. keep_open, room: as in input.h. KEEL_EFORMAT: not an
 * archive, truncated or damaged; KEEL_EUNSUP: a member of a refused kind; the text names file,
 * member and byte. The caller closes it, on failure too. */
keel_status keel_tar_open(keel_tar *out, const char *path, bool keep_open, int64_t *room);
void keel_tar_close(keel_tar *t); /* an empty one is allowed */

static inline const char *keel_tar_name(const keel_tar *t, int64_t i)
{
    return t->names + t->member[i].name;
}

#endif
