/* One version of a function an instruction set, chosen when the library is loaded. */
#ifndef KEEL_BASE_CLONES_H
#define KEEL_BASE_CLONES_H

/* Put KEEL_CLONES before a function whose loops the compiler can make vectors of. Sanitizers
 * instrument the choosing function, which runs before they are ready, so they get the plain
 * version. */
#if defined(__GNUC__) && !defined(__clang__) && defined(__x86_64__) &&                             \
    !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
#define KEEL_CLONES __attribute__((target_clones("arch=x86-64-v4", "avx2", "default")))
#else
#define KEEL_CLONES
#endif

#endif
