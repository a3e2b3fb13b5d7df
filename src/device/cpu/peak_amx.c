/* The rate of AMX's bfloat16 tile products; see peak.h. In assembler, since the compiler's
 * intrinsics do not express which tiles a product changes. */
#include "device/cpu/peak.h"
#include "base/clock.h"
#include <stdint.h>

enum { ROUNDS = 4000, TURNS = 8, PRODUCTS = 4, PRODUCT_FLOPS = 2 * 16 * 16 * 32 };

/* Four sums of 16 x 16 from two by two operands, as in a kernel. */
static void products(void)
{
    for (int r = 0; r < ROUNDS; r++)
        __asm__ volatile("tdpbf16ps %tmm6, %tmm4, %tmm0\n\t"
                         "tdpbf16ps %tmm7, %tmm4, %tmm1\n\t"
                         "tdpbf16ps %tmm6, %tmm5, %tmm2\n\t"
                         "tdpbf16ps %tmm7, %tmm5, %tmm3");
}

double keel_peak_bf16_flops_of_tiles(void)
{
    struct {
        uint8_t palette, start_row, zero[14];
        uint16_t row_bytes[16];
        uint8_t rows[16];
    } all __attribute__((aligned(64))) = { .palette = 1 };
    for (int t = 0; t < 8; t++) {
        all.row_bytes[t] = 64;
        all.rows[t] = 16;
    }
    __asm__ volatile("ldtilecfg %0" ::"m"(all)); /* all tiles are zeros */
    double best = 0;
    for (int k = 0; k < TURNS; k++) {
        const double begin = keel_seconds();
        products();
        const double rate = (double)PRODUCT_FLOPS * PRODUCTS * ROUNDS / (keel_seconds() - begin);
        if (rate > best) best = rate;
    }
    __asm__ volatile("tilerelease");
    return best;
}
