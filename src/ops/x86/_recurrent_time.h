/* The steps of recurrent ops, forward and backward, for inputs and outputs in float32 and in
 * bfloat16: a part of _recurrent.h. */

static bool VALUE_(counts)(const over *o, int64_t row, int64_t at)
{
    float one;
    if (o->s.mask < 0) return true;
    const int64_t time = keel_step_time(o->call->node, at, o->s.steps);
    const VALUE *mask = (const VALUE *)o->call->in[o->s.mask] + row * o->s.steps + time;
    return *vx_floats(mask, &one, 1) > 0.5f;
}

/* The factors of the state, in `room` if they are narrow; NULL: there are none. */
static const float *VALUE_(factors)(const over *o, float *room)
{
    if (o->s.drop < 0) return NULL;
    return vx_floats((const VALUE *)o->call->in[o->s.drop], room, o->call->rows * o->width);
}

/* Forward -------------------------------------------------------------------------------------- */

static void VALUE_(multiply_state)(const over *o, const forward_room *f, const float *start)
{
    if (!o->drop) {
        multiply_gates(o, f->h, o->u, 0, o->head, start, f->sums);
        return;
    }
    for (int g = 0; g < o->head; g++) {
        for (int64_t row = 0; row < o->call->rows; row++)
            product_of(f->dropped + row * o->u, f->h + row * o->u, drop_of(o, row, g), o->u);
        multiply_gates(o, f->dropped, o->u, g, g + 1, start, f->sums);
    }
}

static void VALUE_(begin_states)(const over *o, const keel_cell *cell, const forward_room *f)
{
    const int64_t n = o->call->rows * o->u;
    memset(f->h, 0, (size_t)n * sizeof(float));
    memset(f->carry, 0, (size_t)n * sizeof(float));
    memset(f->shown, 0, (size_t)o->call->rows * sizeof(float));
    for (int k = 0; o->s.state >= 0 && k < cell->states; k++)
        VECTOR_MOVE((k ? f->carry : f->h), (const VALUE *)o->call->in[o->s.state + k], n, false);
}

static step VALUE_(forward_step)(const over *o, const forward_room *f, int64_t row, int64_t at)
{
    const int64_t time = keel_step_time(o->call->node, at, o->s.steps), u = o->u;
    const VALUE *z = (const VALUE *)o->call->in[0] + (row * o->s.steps + time) * o->width;
    return (step){ .call = o->call,
                   .activation = o->activation,
                   .recurrent = o->recurrent,
                   .units = u,
                   .z = vx_floats(z, f->z, o->width),
                   .product = f->sums + row * o->width,
                   .before = f->h + row * u,
                   .carry = f->carry + row * u,
                   .drop = drop_of(o, row, o->gates - 1),
                   .of = o->call->node->backward ? saved_at(o, KEEL_SAVED_GATES, row, at, o->all)
                                                 : f->gates + row * o->all,
                   .h = f->h_new + row * u,
                   .cell = f->carry_new + row * u };
}

/* The reset gate of each row, and the product of the state that it has reset. */
static void VALUE_(reset_states)(const over *o, const forward_room *f, int64_t at, reset_run reset)
{
    const bool saves = o->call->node->backward;
    for (int64_t row = 0; row < o->call->rows; row++) {
        const step s = VALUE_(forward_step)(o, f, row, at);
        reset(&s);
    }
    const float *of = saves ? saved_at(o, KEEL_SAVED_GATES, 0, at, o->all) : f->gates;
    multiply_gates(o, of + o->width, saves ? o->s.steps * o->all : o->all, o->head, o->gates, NULL,
                   f->sums);
}

static void VALUE_(run_forward)(const keel_call *c, const keel_cell *cell, reset_run reset)
{
    const forward_room f = forward_room_in(&(floats){ .next = c->scratch }, c->node, cell, c->rows);
    over o = over_of(c, cell);
    o.room = f.room;
    o.drop = VALUE_(factors)(&o, f.drop);
    const int64_t u = o.u;
    const size_t bytes = (size_t)u * sizeof(float);
    const float *start = c->node->n_weight > 1 ? (const float *)c->weight[1] + o.width : NULL;
    VALUE_(begin_states)(&o, cell, &f);
    for (int64_t at = 0; at < o.s.steps; at++) {
        VALUE_(multiply_state)(&o, &f, start);
        if (o.head < o.gates) VALUE_(reset_states)(&o, &f, at, reset);
        for (int64_t row = 0; row < c->rows; row++) {
            const bool counting = VALUE_(counts)(&o, row, at);
            const step s = VALUE_(forward_step)(&o, &f, row, at);
            float *h = f.h + row * u, *carry = f.carry + row * u;
            if (c->node->backward)
                memcpy(saved_at(&o, KEEL_SAVED_BEFORE, row, at, u), s.before, bytes);
            step_forward(&s);
            if (counting) {
                memcpy(h, s.h, bytes);
                if (cell->states > 1) memcpy(carry, s.cell, bytes);
                f.shown[row] = 1;
            }
            if (c->node->backward && cell->states > 1)
                memcpy(saved_at(&o, KEEL_SAVED_CELL, row, at, u), carry, bytes);
            if (!c->out[0] || (!o.args->sequences && at < o.s.steps - 1)) continue;
            VALUE *y = (VALUE *)c->out[0] + (o.args->sequences ? row * o.s.steps + at : row) * u;
            if (o.args->zeros ? counting : f.shown[row] > 0)
                VECTOR_MOVE(y, h, u, false);
            else
                memset(y, 0, (size_t)u * sizeof *y);
        }
    }
    for (int k = 0; o.args->states && k < cell->states; k++)
        if (c->out[1 + k])
            VECTOR_MOVE((VALUE *)c->out[1 + k], (k ? f.carry : f.h), c->rows * u, false);
}

/* Backward ------------------------------------------------------------------------------------- */

/* The gradient of the factors of the state for a gate; NULL: nobody asks. */
static float *VALUE_(ddrop_of)(const over *o, const backward_room *b, int64_t row, int gate)
{
    const bool asked = o->drop && o->call->in_grad[o->s.drop];
    return asked ? b->ddrop + (row * o->gates + gate) * o->u : NULL;
}

/* dh += what comes by the products of the state. */
static void VALUE_(add_products)(const over *o, const backward_room *b, int64_t at)
{
    if (!o->drop) {
        multiply_back(o, at, 0, o->head, true, b->dh);
        return;
    }
    for (int g = 0; g < o->head; g++) {
        multiply_back(o, at, g, g + 1, false, b->product);
        for (int64_t row = 0; row < o->call->rows; row++) {
            const float *one = b->product + row * o->u;
            float *ddrop = VALUE_(ddrop_of)(o, b, row, g);
            add_product(b->dh + row * o->u, one, drop_of(o, row, g), o->u);
            if (ddrop) add_product(ddrop, one, saved_at(o, KEEL_SAVED_BEFORE, row, at, o->u), o->u);
        }
    }
}

/* dx of a step. With reset_after the gradient of its last part lies behind those of the gates. */
static void VALUE_(give_inputs)(const over *o, int64_t row, int64_t at)
{
    const int64_t time = keel_step_time(o->call->node, at, o->s.steps), u = o->u;
    const float *of = saved_at(o, KEEL_SAVED_GATES, row, at, o->all);
    const int64_t head = o->all > o->width && o->head == o->gates ? o->width - u : o->width;
    VALUE *dx = (VALUE *)o->call->in_grad[0] + (row * o->s.steps + time) * o->width;
    VECTOR_MOVE(dx, of, head, o->call->in_adds[0]);
    if (head < o->width) VECTOR_MOVE(dx + head, of + o->width, u, o->call->in_adds[0]);
}

static step VALUE_(backward_step)(const over *o, const keel_cell *cell, const backward_room *b,
                                  int64_t row, int64_t at)
{
    const int64_t u = o->u;
    step s = { .call = o->call,
               .activation = o->activation,
               .recurrent = o->recurrent,
               .units = u,
               .before = saved_at(o, KEEL_SAVED_BEFORE, row, at, u),
               .drop = drop_of(o, row, o->gates - 1),
               .of = saved_at(o, KEEL_SAVED_GATES, row, at, o->all),
               .dh = b->dh + row * u,
               .dc = b->dc + row * u,
               .of_inner = b->product + row * u,
               .ddrop = VALUE_(ddrop_of)(o, b, row, o->gates - 1) };
    if (cell->states == 1) return s;
    s.cell = saved_at(o, KEEL_SAVED_CELL, row, at, u);
    if (at > 0)
        s.carry = saved_at(o, KEEL_SAVED_CELL, row, at - 1, u);
    else if (o->s.state >= 0)
        s.carry = vx_floats((const VALUE *)o->call->in[o->s.state + 1] + row * u, b->carry, u);
    return s;
}

static void VALUE_(begin_gradients)(const over *o, const keel_cell *cell, const backward_room *b)
{
    const keel_call *c = o->call;
    const int64_t n = c->rows * o->u;
    memset(b->dh, 0, (size_t)n * sizeof(float));
    memset(b->dc, 0, (size_t)n * sizeof(float));
    memset(b->shown, 0, (size_t)n * sizeof(float));
    if (o->drop) memset(b->ddrop, 0, (size_t)(c->rows * o->width) * sizeof(float));
    for (int k = 0; o->args->states && k < cell->states; k++)
        if (c->out_grad[1 + k])
            VECTOR_MOVE((k ? b->dc : b->dh), (const VALUE *)c->out_grad[1 + k], n, false);
}

/* The gradients of what all steps share. */
static void VALUE_(end_gradients)(const over *o, const keel_cell *cell, const backward_room *b)
{
    const keel_call *c = o->call;
    const int mask = o->s.mask, state = o->s.state, drop = o->s.drop;
    for (int k = 0; state >= 0 && k < cell->states; k++)
        if (c->in_grad[state + k])
            VECTOR_MOVE((VALUE *)c->in_grad[state + k], (k ? b->dc : b->dh), c->rows * o->u,
                        c->in_adds[state + k]);
    if (drop >= 0 && c->in_grad[drop])
        VECTOR_MOVE((VALUE *)c->in_grad[drop], b->ddrop, c->rows * o->width, c->in_adds[drop]);
    if (mask >= 0 && c->in_grad[mask] && !c->in_adds[mask])
        memset(c->in_grad[mask], 0, (size_t)(c->rows * o->s.steps) * sizeof(VALUE));
}

static void VALUE_(run_backward)(const keel_call *c, const keel_cell *cell, reset_run reset)
{
    const backward_room b =
        backward_room_in(&(floats){ .next = c->scratch }, c->node, cell, c->rows);
    over o = over_of(c, cell);
    const int64_t u = o.u;
    o.room = b.room;
    o.drop = VALUE_(factors)(&o, b.drop);
    VALUE_(begin_gradients)(&o, cell, &b);
    for (int64_t at = o.s.steps - 1; at >= 0; at--) {
        const bool gives = c->out_grad[0] && (o.args->sequences || at == o.s.steps - 1);
        for (int64_t row = 0; row < c->rows; row++) {
            const bool counting = VALUE_(counts)(&o, row, at);
            const step s = VALUE_(backward_step)(&o, cell, &b, row, at);
            float *shown = b.shown + row * u;
            if (gives) {
                const VALUE *dy = c->out_grad[0];
                dy += (o.args->sequences ? row * o.s.steps + at : row) * u;
                VECTOR_MOVE(shown, dy, u, true);
            }
            if (counting) {
                add_to(s.dh, shown, u);
                step_backward(&s);
            } else {
                memset(s.of, 0, (size_t)o.all * sizeof(float));
            }
            if (counting || o.args->zeros) memset(shown, 0, (size_t)u * sizeof(float));
        }
        if (o.head < o.gates) multiply_back(&o, at, o.head, o.gates, false, b.product);
        for (int64_t row = 0; row < c->rows; row++) {
            const step s = VALUE_(backward_step)(&o, cell, &b, row, at);
            if (o.head < o.gates && VALUE_(counts)(&o, row, at)) reset(&s);
            if (c->in_grad[0]) VALUE_(give_inputs)(&o, row, at);
        }
        VALUE_(add_products)(&o, &b, at);
    }
    VALUE_(end_gradients)(&o, cell, &b);
}

/* Weights -------------------------------------------------------------------------------------- */

static void VALUE_(run_weights)(const keel_call *c, const keel_cell *cell)
{
    const weights_room r =
        weights_room_in(&(floats){ .next = c->scratch }, c->node, cell, c->rows, c->weight_adds);
    over o = over_of(c, cell);
    if (!c->weight_grad[0]) return;
    o.room = r.room;
    o.drop = VALUE_(factors)(&o, r.drop);
    weigh(&o, c->weight_adds ? r.dw : c->weight_grad[0], r.left);
    if (c->weight_adds) add_to(c->weight_grad[0], r.dw, o.u * o.width);
}
