/* CRC-32C (Castagnoli), the checksum of TFRecord files: polynomial 0x1EDC6F41, reflected. Source:
 * RFC 3720, appendix B.4. */
#ifndef KEEL_IO_CRC32C_H
#define KEEL_IO_CRC32C_H
#include <stddef.h>
#include <stdint.h>

/* The checksum of n bytes, by the processor's instruction if it has one. */
uint32_t keel_crc32c(const void *data, size_t n_bytes);
/* The same in plain C, for other processors and for tests. */
uint32_t keel_crc32c_plain(const void *data, size_t n_bytes);

/* The form in which TFRecord stores a checksum: a file of checksums then has no checksum of 0. */
static inline uint32_t keel_crc32c_masked(uint32_t crc)
{
    return (crc >> 15 | crc << 17) + 0xa282ead8u;
}

#endif
