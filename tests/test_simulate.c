/* Steps on many machines: what a step does gives exact times; a better network is never
 * slower; what a simulated process sends is what the plan says; each bad number is refused. */
#include "must.h"
#include "sweep.h"
#include <math.h>
#include <string.h>
#include "base/memory.h"
#include "simulate/absent.h"
#include "simulate/measure.h"
#include "simulate/timeline.h"
#include "tensor/shape.h"
#include "thread_processes.h"

static void near(double a, double b, const char *what)
{
    if (!(fabs(a - b) <= 1e-12 + 1e-9 * fabs(b))) fail_msg("%s: %.12g, not %.12g", what, a, b);
}

/* ---- the time of a step ---------------------------------------------------------------------- */

/* 1 GB/s, 1 ms, 10 us a message; copies 2 GB/s, 0.1 ms. */
static const keel_network plain = { KEEL_NETWORK,         .bytes_per_second = 1e9,
                                    .latency = 1e-3,      .message = 1e-5,
                                    .eager = 1000,        .local_bytes_per_second = 2e9,
                                    .local_latency = 1e-4 };

static void an_exchange_takes_what_its_bytes_and_messages_take(void **unused)
{
    static const struct {
        const char *what;
        keel_load load;
        int together;
        double want, copies;
    } cases[] = {
        { "nothing travels", { 0 }, 1, 0 },
        { "a short message to another machine", { .out = 1000 }, 1, 1e-3 + 1e-6 },
        { "both ways at once", { .out = 1e6, .in = 1e6 }, 1, 1e-3 + 1e-3 },
        { "more comes than goes", { .out = 1e6, .in = 3e6 }, 1, 1e-3 + 3e-3 },
        { "a long message asks first", { .out = 1e6, .asks = true }, 1, 3e-3 + 1e-3 },
        { "four processes share the link", { .out = 1e6, .in = 1e6 }, 4, 1e-3 + 4e-3 },
        { "inside a machine bytes are copied in and out",
          { .local_out = 1e6, .local_in = 1e6 },
          4,
          1e-4,
          1e-3 },
        { "the longer of two latencies counts", { .out = 1e6, .local_out = 1e6 }, 1, 2e-3, 5e-4 },
    };
    (void)unused;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        near(keel_load_seconds(&plain, &cases[i].load, cases[i].together), cases[i].want,
             cases[i].what);
        near(keel_load_copies(&plain, &cases[i].load), cases[i].copies, cases[i].what);
    }
}

typedef struct event { /* starts an exchange, or waits for it */
    double at;         /* seconds of compute since the step began */
    int number;
    bool starts;
    keel_load load;
} event;

/* The time of a step that is made of such events. */
static double step_of(const event *e, int n, double compute, const keel_network *network,
                      const keel_noticed *noticed, int together)
{
    keel_timeline t = { network, noticed, together };
    keel_timeline_begin(&t);
    for (int i = 0; i < n; i++)
        if (e[i].starts)
            keel_timeline_start(&t, e[i].at, e[i].number, &e[i].load);
        else
            keel_timeline_wait(&t, e[i].at, e[i].number);
    return keel_timeline_end(&t, compute);
}

static event starts(double at, int number, double out, int messages)
{
    return (event){
        .at = at, .number = number, .starts = true, .load = { .out = out, .messages = messages }
    };
}

static event comes(double at, int number, double in)
{
    return (event){ .at = at, .number = number, .starts = true, .load = { .in = in } };
}

static event waits(double at, int number)
{
    return (event){ .at = at, .number = number };
}

/* A step with 20 ms of compute. */
enum { EVENTS_MAX = 4 };
typedef struct step_case {
    const char *what;
    int n;
    event event[EVENTS_MAX];
    double step;
} step_case;

static void steps_take(const step_case *cases, size_t n, const keel_network *network)
{
    static const keel_noticed at_once = { 0 };
    for (size_t i = 0; i < n; i++)
        near(step_of(cases[i].event, cases[i].n, 0.02, network, &at_once, 1), cases[i].step,
             cases[i].what);
}

static void a_step_is_compute_and_what_is_not_hidden_behind_it(void **unused)
{
    const step_case cases[] = {
        { "no exchange", 0, { { 0 } }, 0.02 },
        { "one that is waited for at once", 2, { starts(0.01, 0, 1e6, 0), waits(0.01, 0) }, 0.022 },
        { "messages keep the process busy",
          2,
          { starts(0.01, 0, 1e6, 100), waits(0.01, 0) },
          0.023 },
        { "hidden behind compute", 2, { starts(0.01, 0, 1e6, 0), waits(0.015, 0) }, 0.02 },
        { "hidden in part", 2, { starts(0.01, 0, 1e6, 0), waits(0.011, 0) }, 0.021 },
        { "two after each other",
          4,
          { starts(0.01, 0, 1e6, 0), waits(0.01, 0), starts(0.02, 0, 1e6, 0), waits(0.02, 0) },
          0.024 },
        { "two at once share the link, and are on the way together",
          4,
          { starts(0.01, 0, 1e6, 0), starts(0.01, 1, 1e6, 0), waits(0.01, 0), waits(0.01, 1) },
          0.023 },
        { "one goes while the other comes",
          4,
          { starts(0.01, 0, 1e6, 0), comes(0.01, 1, 1e6), waits(0.01, 0), waits(0.01, 1) },
          0.022 },
        { "one asks while the other is under way",
          4,
          { starts(0.01, 0, 5e6, 0),
            { .at = 0.01, .number = 1, .starts = true, .load = { .out = 1e6, .asks = true } },
            waits(0.01, 0),
            waits(0.01, 1) },
          0.027 },
        { "copies inside a machine are hidden by nothing",
          2,
          { { .at = 0.01, .starts = true, .load = { .local_out = 1e6, .local_in = 1e6 } },
            waits(0.015, 0) },
          0.021 },
        { "nor do they wait for bytes of another exchange on the link",
          4,
          { starts(0.01, 0, 1e6, 0),
            { .at = 0.01, .number = 1, .starts = true, .load = { .local_out = 1e6 } },
            waits(0.01, 1),
            waits(0.02, 0) },
          0.0206 },
        { "they are made once",
          3,
          { { .at = 0.01, .starts = true, .load = { .local_out = 1e6, .local_in = 1e6 } },
            waits(0.015, 0),
            waits(0.016, 0) },
          0.021 },
    };
    (void)unused;
    steps_take(cases, sizeof cases / sizeof *cases, &plain);
}

/* 1 MB of the process's own machine and 1 MB from another, which come after 2 ms. */
static void who_passes_by_sees_what_has_come_and_takes_no_time(void **unused)
{
    static const keel_noticed late = { 1, { 1e-3 }, { 2e-3 } };
    const keel_load load = { .in = 1e6, .local_in = 1e6 };
    keel_timeline t = { &plain, &late, 1 };
    (void)unused;
    keel_timeline_begin(&t);
    keel_timeline_start(&t, 0.01, 5, &load);
    assert_false(keel_timeline_look(&t, 0.01, 5));
    assert_false(keel_timeline_look(&t, 0.0119, 5));
    near(t.now, 0.0119, "who looks in vain");
    assert_true(keel_timeline_look(&t, 0.0121, 5));
    near(t.now, 0.0121 + 5e-4, "who finds it copies");
    assert_true(keel_timeline_look(&t, 0.0121, 5));
    near(keel_timeline_end(&t, 0.02), 0.02 + 5e-4, "but once");
}

static void an_end_is_noticed_late_but_never_early(void **unused)
{
    const keel_noticed x = { 3, { 1e-3, 2e-3, 4e-3 }, { 1e-3, 3e-3, 4.5e-3 } };
    (void)unused;
    near(keel_noticed_after(&x, -1), 0, "the exchange is over before the wait begins");
    near(keel_noticed_after(&x, 0.5e-3), 0.5e-3, "while it polls");
    near(keel_noticed_after(&x, 1.5e-3), 2e-3, "between two points");
    near(keel_noticed_after(&x, 4e-3), 4.5e-3, "at the last");
    near(keel_noticed_after(&x, 1), 1.0005, "beyond the last");
    double before = 0;
    for (int i = 0; i < 1000; i++) {
        const double seen = keel_noticed_after(&x, 6e-6 * i);
        assert_true(seen >= 6e-6 * i && seen >= before);
        before = seen;
    }
}

/* By a process's own time bytes pass at half the rate of the link. */
static void bytes_take_time_of_a_process_that_does_not_wait_anyway(void **unused)
{
    const step_case cases[] = {
        { "sent, and not waited for", 1, { starts(0.01, 0, 1e6, 0) }, 0.022 },
        { "sent, and gone by then", 2, { starts(0.01, 0, 1e6, 0), waits(0.01, 0) }, 0.022 },
        { "come long ago", 2, { comes(0.01, 0, 1e6), waits(0.015, 0) }, 0.022 },
        { "come while it waits", 2, { comes(0.01, 0, 1e6), waits(0.01, 0) }, 0.022 },
        { "come after half of it", 2, { comes(0.01, 0, 1e6), waits(0.011, 0) }, 0.022 },
        { "come while it waits for another",
          4,
          { comes(0.01, 0, 1e6), comes(0.01, 1, 1e6), waits(0.01, 1), waits(0.01, 0) },
          0.024 },
        { "nothing", 0, { { 0 } }, 0.02 },
    };
    keel_network slow = plain;
    (void)unused;
    slow.own_bytes_per_second = 0.5e9;
    steps_take(cases, sizeof cases / sizeof *cases, &slow);
}

static void the_first_bytes_are_noticed_late_and_the_last_at_once(void **unused)
{
    static const keel_noticed late = { 1, { 1e-3 }, { 2e-3 } };
    const struct {
        const char *what;
        double bytes, step;
    } cases[] = {
        { "nothing to speak of", 1e-3, 0.012 },
        { "it is seen after the last byte has come", 5e5, 0.012 },
        { "it is seen while bytes come", 4e6, 0.015 },
    };
    (void)unused;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const event e[] = { starts(0.01, 0, cases[i].bytes, 0), waits(0.01, 0) };
        near(step_of(e, 2, 0.01, &plain, &late, 1), cases[i].step, cases[i].what);
    }
}

/* A step, drawn by chance: exchanges that are waited for at once or later. */
static double draw(uint32_t *state)
{
    *state = *state * 1664525u + 1013904223u;
    return (double)(*state >> 8) / 16777216.0;
}

static void a_better_network_is_never_slower(void **unused)
{
    enum { EXCHANGES = 12 };
    const keel_noticed noticed = { 3, { 1e-4, 2e-3, 1e-2 }, { 1.1e-4, 2.3e-3, 1.02e-2 } };
    uint32_t state = 3;
    (void)unused;
    for (int round = 0; round < 300; round++) {
        event e[2 * EXCHANGES];
        double at = 0;
        for (int i = 0; i < EXCHANGES; i++) {
            const double bytes = pow(10, 1 + 6 * draw(&state));
            const keel_load load = { .out = bytes,
                                     .in = bytes * draw(&state),
                                     .local_in = bytes * draw(&state),
                                     .messages = 7,
                                     .asks = bytes > 1000 };
            e[2 * i] = (event){ .at = at += 1e-3 * draw(&state), .starts = true, .load = load };
            e[2 * i + 1] = (event){ .at = at += (i % 3 ? 0 : 1e-3) * draw(&state) };
        }
        const double compute = at + 1e-3;
        const double all = step_of(e, 2 * EXCHANGES, compute, &plain, &noticed, 2);
        keel_network better[5];
        for (int k = 0; k < 5; k++) better[k] = plain;
        better[0].bytes_per_second *= 1 + draw(&state);
        better[1].latency *= draw(&state);
        better[2].message *= draw(&state);
        better[3].local_bytes_per_second *= 1 + draw(&state);
        better[4].local_latency *= draw(&state);
        for (int k = 0; k < 5; k++) {
            const double now = step_of(e, 2 * EXCHANGES, compute, &better[k], &noticed, 2);
            if (now > all + 1e-12) fail_msg("round %d, number %d: %g after %g", round, k, now, all);
        }
        assert_true(step_of(e, 2 * EXCHANGES, compute, &plain, &noticed, 1) <= all + 1e-12);
        assert_true(all >= compute);
    }
}

/* ---- processes that are not there ------------------------------------------------------------ */

/* So slow that no time of a real clock matters: 1000 s to another machine, 100 s to a process of
 * the same one. */
static const keel_network slow_network = { KEEL_NETWORK,         .bytes_per_second = 1e12,
                                           .latency = 1000,      .eager = 1000,
                                           .local_latency = 100, .local_bytes_per_second = 1e12 };
static const keel_noticed noticed_at_once = { 0 };

/* Process 1 of 6, of which two share a machine. */
static keel_absent absent_of(const bool *passing)
{
    keel_absent a = { .rank = 1, .count = 6, .per_machine = 2, .eager = 1000, .passing = passing };
    a.timeline.network = &slow_network;
    a.timeline.noticed = &noticed_at_once;
    a.timeline.together = 1;
    keel_absent_begin(&a);
    return a;
}

static void seconds_near(double got, double want, const char *what)
{
    if (!(got >= want && got < want + 50)) fail_msg("%s: %g s, not %g", what, got, want);
}

static void others_send_what_they_are_sent(void **unused)
{
    static const struct {
        const char *what;
        int with[4], n_with; /* 0: all */
        size_t send[6], receive[6];
        const char *got[6];
        int64_t sent_bytes, messages;
        double link_bytes, seconds; /* until the exchange is complete */
    } cases[] = {
        { "as much, more and less of it", .send = { 2, 9, 3, 4, 0, 0 },
          .receive = { 2, 0, 7, 2, 0, 0 }, .got = { "Aa", "", "CcCCcCC", "Dd", "", "" },
          .sent_bytes = 2 + 3 + 4, .messages = 3, .link_bytes = 3 + 4, .seconds = 1000 },
        { "nothing is sent, so zeros come", .receive = { 0, 0, 0, 0, 3, 0 },
          .got = { "", "", "", "", "000", "" }, .seconds = 1000 },
        { "only to the process of the same machine", .send = { 3, 0, 0, 0, 0, 0 },
          .receive = { 3, 0, 0, 0, 0, 0 }, .got = { "AaA", "", "", "", "", "" }, .sent_bytes = 3,
          .messages = 1, .seconds = 100 },
        { "with some: one who is sent nothing sends what another one is sent", .with = { 2, 5, 3 },
          .n_with = 3, .send = { 8, 0, 0, 0, 0, 2 }, .receive = { 8, 0, 3, 2, 0, 2 },
          .got = { "", "", "FfF", "Ff", "", "Ff" }, .sent_bytes = 2, .messages = 1, .link_bytes = 2,
          .seconds = 1000 },
        { "a long message asks first", .send = { 0, 0, 0, 0, 1001, 0 },
          .receive = { 0, 0, 0, 0, 1, 0 }, .got = { "", "", "", "", "E", "" }, .sent_bytes = 1001,
          .messages = 1, .link_bytes = 1001, .seconds = 3000 },
        { "a long message that comes asks, too", .send = { 0, 0, 0, 0, 1, 0 },
          .receive = { 0, 0, 0, 0, 1001, 0 }, .got = { "", "", "", "", "E", "" }, .sent_bytes = 1,
          .messages = 1, .link_bytes = 1, .seconds = 3000 },
        { "one of as many bytes as go without asking does not", .send = { 0, 0, 0, 0, 1000, 0 },
          .receive = { 0, 0, 0, 0, 1000, 0 }, .got = { "", "", "", "", "E", "" },
          .sent_bytes = 1000, .messages = 1, .link_bytes = 1000, .seconds = 1000 },
        { "nor one within a machine, however long", .send = { 1001, 0, 0, 0, 0, 0 },
          .receive = { 1001, 0, 0, 0, 0, 0 }, .got = { "A", "", "", "", "", "" },
          .sent_bytes = 1001, .messages = 1, .seconds = 100 },
    };
    (void)unused;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        static char out[6][1001], in[6][1001];
        const void *from[6];
        void *to[6];
        keel_absent a = absent_of(NULL);
        const keel_process_group g = keel_absent_group(&a);
        for (int q = 0; q < 6; q++) {
            for (int k = 0; k < 1001; k++) out[q][k] = (char)((k % 2 ? 'a' : 'A') + q);
            memset(in[q], '-', sizeof in[q]);
            from[q] = out[q];
            to[q] = in[q];
        }
        const keel_exchange e = { .send = from,
                                  .send_bytes = cases[i].send,
                                  .receive = to,
                                  .receive_bytes = cases[i].receive,
                                  .with = cases[i].n_with ? cases[i].with : NULL,
                                  .n_with = cases[i].n_with };
        assert_int_equal(g.rank, 1);
        assert_int_equal(g.count, 6);
        assert_int_equal(g.start(g.context, 4, &e, NULL, 0), 0);
        for (int q = 0; q < 6; q++) {
            const size_t n = strlen(cases[i].got[q]);
            for (size_t k = 0; k < n; k++)
                if (in[q][k] != (cases[i].got[q][k] == '0' ? 0 : cases[i].got[q][k]))
                    fail_msg("%s: from process %d comes %.8s", cases[i].what, q, in[q]);
            if (n != 1 && n < 1001 && in[q][n] != '-')
                fail_msg("%s: from process %d comes more", cases[i].what, q);
        }
        if (a.sent_bytes != cases[i].sent_bytes || a.messages != cases[i].messages ||
            a.link_bytes != cases[i].link_bytes || a.exchanges != 1)
            fail_msg("%s: %lld bytes, %lld messages, %g bytes of the link, %d exchanges",
                     cases[i].what, (long long)a.sent_bytes, (long long)a.messages, a.link_bytes,
                     a.exchanges);
        assert_int_equal(g.test(g.context, 4, NULL, 0), 0);
        assert_int_equal(g.test(g.context, 4, NULL, 0), 1); /* who asks again waits */
        keel_absent_end(&a);
        seconds_near(a.timeline.now, cases[i].seconds, cases[i].what);
        seconds_near(a.timeline.computed, 0, cases[i].what);
        keel_absent_begin(&a);
        assert_true(a.sent_bytes == 0 && a.messages == 0 && a.link_bytes == 0 && a.exchanges == 0);
        keel_absent_end(&a);
        seconds_near(a.timeline.now, 0, "a step after it");
    }
}

/* Of two that are asked for in turn, the one that ends first is waited for. */
static void who_asks_in_vain_waits_for_the_first_of_all(void **unused)
{
    const size_t far_bytes[6] = { [3] = 1 }, near_bytes[6] = { [0] = 1 };
    const void *from[6];
    void *to[6];
    char byte[6] = { 0 }, got[6];
    bool passing = false;
    (void)unused;
    for (int q = 0; q < 6; q++) from[q] = &byte[q], to[q] = &got[q];
    const keel_exchange far = { from, far_bytes, to, far_bytes };
    const keel_exchange close = { from, near_bytes, to, near_bytes };
    for (int order = 0; order < 2; order++) {
        keel_absent a = absent_of(&passing);
        const keel_process_group g = keel_absent_group(&a);
        const int first = order ? 3 : 7, last = order ? 7 : 3;
        g.start(g.context, last, &far, NULL, 0);
        g.start(g.context, first, &close, NULL, 0);
        passing = true; /* who passes by does not wait */
        for (int k = 0; k < 4; k++) assert_int_equal(g.test(g.context, last, NULL, 0), 0);
        keel_absent_end(&a);
        seconds_near(a.timeline.now, 0, "who passes by");
        passing = false;
        assert_int_equal(g.test(g.context, last, NULL, 0), 0);
        assert_int_equal(g.test(g.context, first, NULL, 0), 0);
        seconds_near(a.timeline.now, 0, "who asks for each once");
        assert_int_equal(g.test(g.context, last, NULL, 0), 0); /* again: it waits for the first */
        seconds_near(a.timeline.now, 100, "the first of all");
        assert_int_equal(g.test(g.context, first, NULL, 0), 1);
        assert_int_equal(g.test(g.context, last, NULL, 0), 0); /* something has happened since */
        seconds_near(a.timeline.now, 100, "the first of all is there");
        assert_int_equal(g.test(g.context, last, NULL, 0), 1);
        seconds_near(a.timeline.now, 1000, "the last");
    }
}

/* ---- the text of a network ------------------------------------------------------------------- */

static void a_network_is_read_from_a_text(void **unused)
{
    static const struct {
        const char *text;
        double bytes, latency, message, eager, local, local_latency;
    } cases[] = {
        { "25Gbit,50us", 3.125e9, 50e-6, 1e-6, 65536, 0, 2e-6 },
        { "1Mbit,0.5ms", 125e3, 5e-4, 1e-6, 65536, 0, 2e-6 },
        { "8bit,0s", 1, 0, 1e-6, 65536, 0, 2e-6 },
        { "1.6Tbit,800ns,message=0us,eager=0", 2e11, 8e-7, 0, 0, 0, 2e-6 },
        { "9Kbit,1s,local=8GB,local-latency=1ns,eager=64K", 1125, 1, 1e-6, 65536, 8e9, 1e-9 },
    };
    (void)unused;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        keel_network n;
        must(keel_network_parse(&n, cases[i].text));
        near(n.bytes_per_second, cases[i].bytes, cases[i].text);
        near(n.latency, cases[i].latency, cases[i].text);
        near(n.message, cases[i].message, cases[i].text);
        near(n.eager, cases[i].eager, cases[i].text);
        near(n.local_bytes_per_second, cases[i].local, cases[i].text);
        near(n.local_latency, cases[i].local_latency, cases[i].text);
    }
}

static void other_texts_are_refused_by_name(void **unused)
{
    static const char *const bad[][2] = {
        { "", "is not a rate" },
        { "25Gbit", "lacks a latency" },
        { "25Gbit,", "is not a latency" },
        { "25,50us", "'25' is not a rate" },
        { "25GB,50us", "is not a rate" },
        { "25gbit,50us", "is not a rate" },
        { "-1Gbit,50us", "rate of a link" },
        { "0Gbit,50us", "rate of a link" },
        { "1e999Gbit,50us", "rate of a link" },
        { "nanGbit,50us", "is not a rate" },
        { "25Gbit,50", "is not a latency" },
        { "25Gbit,-50us", "latency is" },
        { "25Gbit,2000000s", "latency is" },
        { "25Gbit,50us,", "is not known" },
        { "25Gbit,50us,speed=1", "'speed=1' is not known" },
        { "25Gbit,50us,message=1", "is not a time" },
        { "25Gbit,50us,message=1us,message=2us", "given twice" },
        { "25Gbit,50us,local=0GB", "is no rate" },
        { "25Gbit,50us,own=0GB", "is no rate" },
        { "25Gbit,50us,eager=64Q", "is not a size" },
        { "25Gbit,50us,local=11111111111111111111111111111111111111111111111111111111111111GB",
          "too long" },
        { "25Gbit\n,50us", "is not a rate" },
    };
    (void)unused;
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        keel_network n = { .size = 7 };
        if (keel_network_parse(&n, bad[i][0]) != KEEL_EARG)
            fail_msg("'%s' is not refused", bad[i][0]);
        if (!strstr(keel_error(), bad[i][1]))
            fail_msg("'%s': nothing like '%s' in: %s", bad[i][0], bad[i][1], keel_error());
        assert_int_equal(n.size, 7);
    }
    assert_int_equal(keel_network_parse(NULL, "1bit,1s"), KEEL_EARG);
}

/* ---- the connection of processes ------------------------------------------------------------- */

typedef struct measurer {
    keel_process_group group;
    keel_network found;
    keel_status status;
} measurer;

static void *measure(void *context)
{
    measurer *m = context;
    m->found = (keel_network){ KEEL_NETWORK };
    m->group.timeout = m->group.timeout > 0 ? m->group.timeout : PATIENT;
    m->status = keel_network_measure(&m->found, &m->group);
    return NULL;
}

static void all_measure_the_same_connection(void **unused)
{
    static const struct {
        const char *what;
        int n;
        const char *host[4];
        bool near, far;
    } cases[] = {
        { "two on one machine", 2, { "a", "a" }, true, false },
        { "two machines", 2, { "a", "b" }, false, true },
        { "machines of two and of one, in turn", 3, { "a", "b", "a" }, true, true },
        { "two machines of two", 4, { "a", "a", "b", "b" }, true, true },
    };
    const keel_network before = { KEEL_NETWORK };
    (void)unused;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        thread_group group;
        measurer m[4] = { 0 };
        const int n = cases[i].n;
        thread_group_begin(&group, n);
        for (int q = 0; q < n; q++) group.member[q].host = cases[i].host[q];
        for (int q = 0; q < n; q++) m[q].group = thread_group_of(&group, q);
        live_together(measure, m, sizeof *m, n);
        for (int q = 0; q < n; q++) {
            const keel_network *f = &m[q].found;
            must(m[q].status);
            assert_false(group.member[q].closed);
            assert_memory_equal(f, &m[0].found, sizeof *f);
            assert_true((f->bytes_per_second != before.bytes_per_second) == cases[i].far);
            assert_true((f->local_bytes_per_second > 0) == cases[i].near);
        }
        thread_group_end(&group);
    }
}

static void a_connection_that_cannot_be_measured_is_an_error_of_all(void **unused)
{
    enum { N = 3 };
    const keel_network before = { KEEL_NETWORK };
    keel_network n = before;
    (void)unused;
    assert_int_equal(keel_network_measure(&n, NULL), KEEL_EARG);
    assert_int_equal(keel_network_measure(&n, &(keel_process_group){ .count = 1 }), KEEL_EARG);
    const int64_t live = keel_memory_live();
    for (int k = 0; k < 60; k += SLOW ? 17 : 7) {
        thread_group group;
        measurer m[N] = { 0 };
        thread_group_begin(&group, N);
        for (int q = 0; q < N; q++) {
            m[q].group = thread_group_of(&group, q);
            m[q].group.timeout = 0.2;
        }
        if (k % 2) group.member[k % N].mute_at = k / 2;
        if (k % 2 == 0) keel_memory_fail_at(k / 2);
        live_together(measure, m, sizeof *m, N);
        keel_memory_fail_at(-1);
        for (int q = 0; q < N; q++) {
            if (m[q].status != KEEL_EREMOTE && m[q].status != KEEL_ENOMEM)
                fail_msg("case %d, process %d: %s", k, q, keel_status_name(m[q].status));
            assert_memory_equal(&m[q].found, &before, sizeof before);
        }
        assert_int_equal(keel_memory_live(), live);
        thread_group_end(&group);
    }
}

/* ---- whole simulations ----------------------------------------------------------------------- */

enum { CONVOLUTIONS, DENSE, GAPS };

static keel_model *model_of(int kind, const char *optimizer)
{
    keel_model *m;
    keel_symbol x;
    must(keel_model_create(&m, "tiny", KEEL_FLOAT32, 1));
    if (kind == CONVOLUTIONS) {
        must(keel_model_input(m, KEEL_DIMS(6, 6, 3), NULL, &x));
        x = must_call(m, "Conv2D",
                      KEEL_ARGS(KEEL_ARG_INT("filters", 4), KEEL_ARG_INT("kernel_size", 3)), x);
        x = must_call(m, "BatchNormalization", NULL, x);
        x = must_call(m, "Flatten", NULL, x);
    } else {
        const int units = kind == GAPS ? 8 : 33;
        must(keel_model_input(m, KEEL_DIMS(kind == GAPS ? 4 : 20), NULL, &x));
        x = must_call(m, "Dense",
                      KEEL_ARGS(KEEL_ARG_INT("units", units), KEEL_ARG_STR("activation", "relu")),
                      x);
    }
    const int classes = kind == GAPS ? 3 : 5;
    x = must_call(m, "Dense",
                  KEEL_ARGS(KEEL_ARG_INT("units", classes), KEEL_ARG_STR("activation", "softmax")),
                  x);
    must(keel_model_outputs(m, &x, 1));
    must(keel_model_compile(m,
                            &(keel_compile){ KEEL_COMPILE, .optimizer = { optimizer },
                                             .loss = { { "sparse_categorical_crossentropy" } } }));
    return m;
}

static const int some_machines[] = { 1, 2, 3, 8 };

static keel_simulate_options options_of(void)
{
    keel_simulate_options o = { KEEL_SIMULATE_OPTIONS };
    o.machines = some_machines;
    o.machine_count = 4;
    o.batch_size = 24;
    o.devices = "cpu:0";
    o.seconds = 1e-6; /* three steps */
    must(keel_network_parse(&o.network, "1Gbit,100us,local=4GB"));
    return o;
}

static void is_consistent(const keel_simulation *s, const keel_model *m, int shards,
                          keel_compress compress)
{
    const int per = s->processes_per_machine;
    for (int i = 0; i < s->count; i++) {
        const keel_simulated *p = &s->point[i];
        keel_plan plan = { 0 };
        keel_strategy *alone;
        must(keel_strategy_create(&alone, "cpu:0"));
        if (shards) must(keel_strategy_reproducible(alone, shards));
        if (p->processes > 1) must(keel_strategy_compress(alone, compress));
        must(keel_plan_processes(&plan, m, alone, p->processes, p->batch_size, p->batch_size,
                                 KEEL_KEEP, NULL));
        assert_int_equal(p->processes, p->machines * per);
        assert_int_equal(p->rows, plan.process_full[0]);
        assert_int_equal(p->exchanges, plan.exchanges);
        assert_int_equal(p->sent_bytes,
                         plan.sent_gradients + plan.sent_statistics + plan.sent_others);
        assert_int_equal(p->memory_bytes, plan.total_bytes);
        assert_true(p->measured_steps >= 3 && p->compute_seconds > 0);
        assert_true(p->step_seconds >= p->compute_seconds);
        assert_true((p->exchanges == 0) == (p->exchange_seconds < 1e-12));
        assert_true((p->link_bytes == 0) == (p->machines == 1));
        near(p->step_seconds, p->compute_seconds + p->exchange_seconds, "a step");
        near(p->rows_per_second, (double)p->batch_size / p->step_seconds, "rows a second");
        near(p->efficiency, p->rows_per_second / p->machines / s->one.rows_per_second,
             "efficiency");
        keel_plan_free(&plan);
        keel_strategy_destroy(alone);
    }
}

static void what_a_simulated_process_sends_is_what_is_planned(void **unused)
{
    static const struct {
        const char *what, *optimizer;
        int kind, per_machine, shards;
        int64_t each; /* rows of each process; 0: 24 of all */
        keel_compress compress;
    } cases[] = {
        { "dense layers", "sgd", DENSE, 1, 0, 0 },
        { "batch statistics, more rows with more machines", "adam", CONVOLUTIONS, 1, 0, 3 },
        { "whole weights are needed", "lamb", DENSE, 1, 0, 0 },
        { "a reproducible step", "sgd", CONVOLUTIONS, 1, 16, 0 },
        { "two processes on each machine", "sgd", DENSE, 2, 0, 0 },
        { "more processes than cores", "adam", DENSE, 100, 0, 1 },
        { "gradients as bfloat16", "adam", CONVOLUTIONS, 1, 0, 3, KEEL_COMPRESS_BF16 },
    };
    (void)unused;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        keel_model *m = model_of(cases[i].kind, cases[i].optimizer);
        keel_simulate_options o = options_of();
        keel_simulation s;
        o.processes_per_machine = cases[i].per_machine;
        o.shards = cases[i].shards;
        o.compress = cases[i].compress;
        if (cases[i].each) o.batch_size = 0, o.process_batch_size = cases[i].each;
        if (keel_simulate(&s, m, &o) < 0) fail_msg("%s: %s", cases[i].what, keel_error());
        assert_int_equal(s.count, 4);
        is_consistent(&s, m, cases[i].shards, cases[i].compress);
        assert_true((*s.note != 0) == (s.at_once < cases[i].per_machine));
        keel_simulation_free(&s);
        keel_model_destroy(m);
    }
}

/* What is made up for the others stays like what this process has, also after many steps: here all
 * four parts of the flat range end in gaps, of which the second process has weights in its place.
 */
static void many_steps_stay_finite(void **unused)
{
    static const keel_noticed at_once = { 0 };
    static const keel_cores cores[2] = { { .n = 1 }, { .n = 1 } };
    (void)unused;
    for (int compressed = 0; compressed < 2; compressed++) {
        keel_model *m = model_of(GAPS, "adam");
        keel_simulate_options o = options_of();
        keel_simulated one = { 0 };
        o.seconds = SLOW ? 3 : 0.3;
        o.compress = compressed ? KEEL_COMPRESS_BF16 : KEEL_COMPRESS_NONE;
        const keel_measuring x = { .model = m,
                                   .options = &o,
                                   .network = &o.network,
                                   .noticed = &at_once,
                                   .processes = 4,
                                   .per_machine = 2,
                                   .batch_size = 24,
                                   .at_once = 2,
                                   .cores = cores };
        must(keel_measure_steps(&x, &one));
        keel_model_destroy(m);
    }
}

static void the_model_stays_as_it_is(void **unused)
{
    enum { MOST = 16 };
    keel_tensor before[MOST], after;
    (void)unused;
    keel_model *m = model_of(CONVOLUTIONS, "adam");
    keel_simulate_options o = options_of();
    keel_simulation s;
    const int n = keel_model_weight_count(m);
    assert_true(n <= MOST);
    for (int i = 0; i < n; i++)
        must(keel_model_get_weight(m, keel_model_weight_name(m, i), &before[i]));
    must(keel_simulate(&s, m, &o));
    for (int i = 0; i < n; i++) {
        must(keel_model_get_weight(m, keel_model_weight_name(m, i), &after));
        assert_memory_equal(before[i].data, after.data,
                            (size_t)keel_shape_count(&after.shape) * sizeof(float));
        keel_tensor_free(&after);
        keel_tensor_free(&before[i]);
    }
    keel_simulation_free(&s);
    keel_model_destroy(m);
}

static keel_status stop(void *context, int machines)
{
    *(int *)context = machines;
    return machines == 3 ? KEEL_END : KEEL_OK;
}

static void options_that_make_no_sense_are_refused(void **unused)
{
    static const int none[] = { 0 }, many[] = { 1025 };
    (void)unused;
    keel_model *m = model_of(DENSE, "sgd");
    keel_simulation s = { .count = 77 };
    for (int i = 0; i < 19; i++) {
        keel_simulate_options o = options_of();
        if (i == 0) o.size = 8;
        if (i == 1) o.machine_count = 0;
        if (i == 2) o.machines = none, o.machine_count = 1;
        if (i == 3) o.machines = many, o.machine_count = 1;
        if (i == 4) o.processes_per_machine = -1;
        if (i == 5) o.processes_per_machine = 129; /* 8 machines */
        if (i == 6) o.process_batch_size = 5;
        if (i == 7) o.batch_size = 0;
        if (i == 8) o.batch_size = -5;
        if (i == 9) o.batch_size = (int64_t)INT32_MAX + 1;
        if (i == 10) o.batch_size = 0, o.process_batch_size = INT64_MAX;
        if (i == 11) o.seconds = NAN;
        if (i == 12) o.network.latency = NAN;
        if (i == 13) o.network.bytes_per_second = 0;
        if (i == 14) o.shards = 4; /* of 8 processes */
        if (i == 15) o.devices = "cpu:x";
        if (i == 16) o.compress = (keel_compress)2;
        if (i == 17) o.compress = KEEL_COMPRESS_BF16, o.shards = 16;
        if (i == 18) o.compress = KEEL_COMPRESS_BF16, o.machine_count = 1; /* of one process */
        if (keel_simulate(&s, m, &o) != KEEL_EARG) fail_msg("case %d is not refused", i);
        assert_int_equal(s.count, 77);
    }
    int last = 0;
    keel_simulate_options o = options_of();
    o.progress = stop;
    o.context = &last;
    assert_int_equal(keel_simulate(&s, m, &o), KEEL_END);
    assert_int_equal(last, 3);
    assert_int_equal(s.count, 77);
    keel_model_destroy(m);
}

/* Of a whole simulation each 13th allocation fails, since it also measures pauses; of its
 * measurement each. */
static void an_allocation_that_fails_leaves_nothing(void **unused)
{
    static const keel_noticed at_once = { 0 };
    static const keel_cores first = { .n = 1 };
    (void)unused;
    keel_model *m = model_of(DENSE, "sgd");
    keel_simulate_options o = options_of();
    o.machines = &some_machines[1];
    o.machine_count = 1;
    o.compress = KEEL_COMPRESS_BF16; /* which takes more memory */
    const keel_measuring measuring = { .model = m,
                                       .options = &o,
                                       .network = &o.network,
                                       .noticed = &at_once,
                                       .processes = 2,
                                       .per_machine = 1,
                                       .batch_size = 24,
                                       .at_once = 1,
                                       .cores = &first };
    for (int whole = 0; whole < 2; whole++) {
        keel_simulation s = { 0 };
        keel_simulated one = { 0 };
        int64_t live = 0, calls = 0;
        for (int64_t k = -2; k < calls; k += k < 0 ? 1 : whole ? 13 : SLOW ? 5 : 1) {
            live = k < 0 ? keel_memory_live() : live; /* the first run makes what stays */
            const int64_t before = keel_memory_calls();
            keel_memory_fail_at(k < 0 ? -1 : k);
            const keel_status status =
                whole ? keel_simulate(&s, m, &o) : keel_measure_steps(&measuring, &one);
            keel_memory_fail_at(-1);
            calls = k < 0 ? keel_memory_calls() - before : calls;
            if (k < 0) must(status);
            if (status >= 0 && whole) keel_simulation_free(&s);
            if (k >= 0 && keel_memory_live() != live)
                fail_msg("allocation %lld of %lld: %lld blocks are left", (long long)k,
                         (long long)calls, (long long)(keel_memory_live() - live));
        }
        assert_true(calls > 100);
    }
    keel_model_destroy(m);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_exchange_takes_what_its_bytes_and_messages_take),
        cmocka_unit_test(a_step_is_compute_and_what_is_not_hidden_behind_it),
        cmocka_unit_test(who_passes_by_sees_what_has_come_and_takes_no_time),
        cmocka_unit_test(an_end_is_noticed_late_but_never_early),
        cmocka_unit_test(bytes_take_time_of_a_process_that_does_not_wait_anyway),
        cmocka_unit_test(the_first_bytes_are_noticed_late_and_the_last_at_once),
        cmocka_unit_test(a_better_network_is_never_slower),
        cmocka_unit_test(others_send_what_they_are_sent),
        cmocka_unit_test(who_asks_in_vain_waits_for_the_first_of_all),
        cmocka_unit_test(a_network_is_read_from_a_text),
        cmocka_unit_test(other_texts_are_refused_by_name),
        cmocka_unit_test(all_measure_the_same_connection),
        cmocka_unit_test(a_connection_that_cannot_be_measured_is_an_error_of_all),
        cmocka_unit_test(what_a_simulated_process_sends_is_what_is_planned),
        cmocka_unit_test(many_steps_stay_finite),
        cmocka_unit_test(the_model_stays_as_it_is),
        cmocka_unit_test(options_that_make_no_sense_are_refused),
        cmocka_unit_test(an_allocation_that_fails_leaves_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
