#include <math.h>

#include "models/optimizers/optimizer.h"
#include "tests/test.h"

/* Worked out by hand: lr·(i+1)/warmup, then lr·½(1 + cos(π (i − warmup) / (end − warmup))). */
static const struct {
    struct schedule schedule;
    size_t iteration;
    double rate;
} expected[] = {
    {{1.0, 100, 1000}, 0, 0.01},
    {{1.0, 100, 1000}, 49, 0.5},
    {{1.0, 100, 1000}, 99, 1.0},
    {{1.0, 100, 1000}, 100, 1.0},             /* cos 0 */
    {{1.0, 100, 1000}, 400, 0.75},            /* a third of the way: cos π/3 = ½ */
    {{1.0, 100, 1000}, 550, 0.5},             /* half way */
    {{1.0, 100, 1000}, 700, 0.25},            /* two thirds */
    {{5e-3, 100, 1000}, 325, 4.267766953e-3}, /* a quarter: ½(1 + √½) */
    {{1.0, 100, 1000}, 1000, 0.0},            /* the step that the reference runs beyond */
    {{1.0, 100, 1000}, 5000, 0.0},
    {{2.0, 0, 4}, 0, 2.0}, /* no warm-up */
    {{2.0, 0, 4}, 2, 1.0},
    {{1.0, 8, 4}, 3, 0.5}, /* the training ends before the warm-up does */
    {{1.0, 4, 4}, 3, 1.0},
    {{1.0, 4, 4}, 4, 0.0},
    {{0.0, 2, 4}, 1, 0.0},
    {{1.0, 0, 1}, 0, 1.0},
};

TEST(equals_the_table)
{
    for (size_t i = 0; i < sizeof expected / sizeof *expected; i++) {
        double rate = schedule_rate(&expected[i].schedule, expected[i].iteration);
        if (!(fabs(rate - expected[i].rate) < 1e-12 + 1e-9 * expected[i].rate))
            fail_msg("row %zu, iteration %zu: expected %.12g, found %.12g", i, expected[i].iteration, expected[i].rate,
                     rate);
    }
}
