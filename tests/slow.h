/* Whether this is built with a sanitizer that makes it much slower. */
#ifndef KEEL_TESTS_SLOW_H
#define KEEL_TESTS_SLOW_H

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
enum { SLOW = 1 };
#else
enum { SLOW = 0 };
#endif

#endif
