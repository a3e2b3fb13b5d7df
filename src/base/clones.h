/* Compiles a function once per instruction set; the version is chosen when the library is loaded.
 */
#ifndef KEEL_BASE_CLONES_H
#define KEEL_BASE_CLONES_H

/* Put KEEL_CLONES before a function whose loops the compiler can vectorise. With sanitizers there
 * is only the plain version: they instrument the function that chooses, which runs before they are
 * initialized. */
#if defined(__GNUC__) && !defined(__clang__) && defined(__x86_64__) &&                             \
    !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
#define KEEL_CLONES __attribute__((target_clones("arch=x86-64-v4", "avx2", "default")))
#else
#define KEEL_CLONES
#endif

#endif
