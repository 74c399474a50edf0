#include "harness/sweep/tally.h"

#include <math.h>
#include <stdlib.h>

#include "core/alloc.h"

struct tally_run {
    double amount, first, share; /* first: done before the first report; share: of the rest */
    bool heard;
};

void tally_open(struct tally *tally, size_t runs)
{
    *tally = (struct tally){.runs = xcalloc(runs, sizeof *tally->runs)};
}

void tally_close(struct tally *tally)
{
    free(tally->runs);
}

void tally_expect(struct tally *tally, size_t run, double amount, bool begun)
{
    tally->runs[run] = (struct tally_run){.amount = amount, .heard = !begun};
    tally->work.total[0] += amount;
}

static void advance(struct tally *tally, struct tally_run *run, double share)
{
    double gained = fmin(fmax(share - run->share, 0), 1);
    run->share += gained;
    tally->work.done[0] += gained * run->amount;
}

void tally_hear(struct tally *tally, size_t index, double done)
{
    struct tally_run *run = &tally->runs[index];
    if (!run->heard)
        run->first = done;
    run->heard = true;
    if (run->first < 1)
        advance(tally, run, (done - run->first) / (1 - run->first));
}

void tally_end(struct tally *tally, size_t run)
{
    advance(tally, &tally->runs[run], 1);
}
