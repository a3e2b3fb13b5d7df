/* Hashes whose values must equal TensorFlow's, since Keras assigns words to buckets by them. */
#ifndef KEEL_BASE_HASH_H
#define KEEL_BASE_HASH_H
#include <stddef.h>
#include <stdint.h>

/* FarmHash's Fingerprint64. Modulo the number of buckets it is TensorFlow's
 * tf.strings.to_hash_bucket_fast. */
uint64_t keel_fingerprint(const void *data, size_t n_bytes);

/* Take more into a fingerprint of several things, which has begun as 0. */
void keel_fingerprint_add(uint64_t *sum, const void *data, size_t n_bytes);

/* SipHash-2-4 (Aumasson, Bernstein 2012) with a key: without the key, nobody can choose words that
 * collide. TensorFlow's tf.strings.to_hash_bucket_strong. */
uint64_t keel_siphash(const uint64_t key[2], const void *data, size_t n_bytes);

#endif
