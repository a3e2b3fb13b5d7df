/* The float32 forward of recolor.c on images of bytes: as many pixels as stay in the L1 cache are
 * widened and changed together, by the same functions, so the bits are those of a whole copy. */

enum { BYTES_SOME = 3 << 10 /* values widened at a time */ };

/* Means of channels of which LANES are whole pixels. Sums of bytes are exact in any order. */
KEEL_CLONES static void means_of_bytes(float mean[LANES], const uint8_t *x, int64_t n,
                                       int64_t channels)
{
    enum { MOST = LANES << 20 /* values: a lane stays below 2^32 */ };
    const int64_t count = n * channels;
    uint64_t sum[LANES] = { 0 };
    for (int64_t done = 0; done < count;) {
        uint32_t lane[LANES] = { 0 };
        const int64_t some = count - done < MOST ? count - done : MOST;
        const int64_t whole = some / LANES * LANES;
        for (int64_t i = 0; i < whole; i += LANES)
            for (int k = 0; k < LANES; k++) lane[k] += x[done + i + k];
        for (int64_t i = whole; i < some; i++) lane[i - whole] += x[done + i];
        for (int k = 0; k < LANES; k++) sum[k % channels] += lane[k];
        done += some;
    }
    for (int k = 0; k < LANES; k++) mean[k] = (float)((double)sum[k % channels] / (double)n);
}

KEEL_CLONES static void widen_bytes(float *restrict y, const uint8_t *restrict x, int64_t n)
{
    for (int64_t i = 0; i < n; i++) y[i] = (float)x[i];
}

/* A change of an image that needs all of it: its copy is changed in place. */
static bool change_whole(const change_of *c, float *y, const uint8_t *x, int64_t n)
{
    const bool contrast = c->kind == KEEL_RECOLOR_CONTRAST && LANES % c->channels;
    const bool wide = c->channels > BYTES_SOME; /* and simply more than the buffer holds */
    if (!contrast && !wide && c->kind != KEEL_RECOLOR_STRETCH) return false;
    widen_bytes(y, x, n * c->channels);
    change_f32(c, NULL, y, y, n);
    return true;
}

static void forward_bytes(const keel_call *call)
{
    const keel_shape *s = &call->node->in[0].shape;
    const int64_t n = s->dim[0] * s->dim[1], channels = s->dim[2];
    const uint8_t *x = call->in[0];
    float *y = call->out[0], mean[LANES], wide[BYTES_SOME];
    for (int64_t row = 0; row < call->rows; row++, x += n * channels, y += n * channels) {
        const change_of c = change_at(call, row);
        if (change_whole(&c, y, x, n)) continue;
        if (c.kind == KEEL_RECOLOR_CONTRAST) means_of_bytes(mean, x, n, channels);
        const int64_t some = BYTES_SOME / channels;
        for (int64_t i = 0; i < n; i += some) {
            const int64_t part = n - i < some ? n - i : some;
            widen_bytes(wide, x + i * channels, part * channels);
            change_f32(&c, mean, y + i * channels, wide, part);
        }
    }
}
