/* Hashes of bytes whose values are fixed by somebody else: what Keras puts words into buckets by.
 */
#ifndef KEEL_BASE_HASH_H
#define KEEL_BASE_HASH_H
#include <stddef.h>
#include <stdint.h>

/* FarmHash's Fingerprint64: TensorFlow's tf.strings.to_hash_bucket_fast takes it modulo the
 * buckets. */
uint64_t keel_fingerprint(const void *data, size_t n_bytes);

/* SipHash-2-4 (Aumasson, Bernstein 2012) under a key: who does not know the key cannot choose words
 * that collide. TensorFlow's tf.strings.to_hash_bucket_strong. */
uint64_t keel_siphash(const uint64_t key[2], const void *data, size_t n_bytes);

#endif
