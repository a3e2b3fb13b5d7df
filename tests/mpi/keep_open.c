/* Preloaded into programs with AddressSanitizer that use MPI, for tools/check.sh: libraries stay
 * where they are until the process ends, so that a leak of theirs has their name and
 * tests/mpi/lsan.supp can tell it from one of Keel. */
int dlclose(void *library);
int dlclose(void *library)
{
    (void)library;
    return 0;
}
