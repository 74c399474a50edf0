/* How runs share a machine. */
#include "harness/sweep/placement.h"
#include "tests/test.h"

#define GB 1e9

TEST(runs_share_a_machine)
{
    static const struct {
        struct machine machine;
        struct placement_request request;
        size_t jobs, first, last; /* threads of the first job and the last */
        size_t last_gpu;
    } cases[] = {
        {{.cores = 8}, {.runs = 40}, 8, 1, 1, 0},
        {{.cores = 8}, {.runs = 3}, 3, 3, 2, 0},
        {{.cores = 8}, {.runs = 1}, 1, 8, 8, 0},
        {{.cores = 1}, {.runs = 4}, 1, 1, 1, 0},
        {{.cores = 8}, {.runs = 0}, 1, 8, 8, 0},
        /* a request is granted */
        {{.cores = 8}, {.runs = 40, .jobs = 2}, 2, 4, 4, 0},
        {{.cores = 2}, {.runs = 40, .jobs = 5}, 5, 1, 1, 0},
        {{.cores = 8}, {.runs = 40, .threads = 3}, 2, 3, 3, 0},
        {{.cores = 2}, {.runs = 40, .threads = 3}, 1, 3, 3, 0},
        /* memory is a limit where it is known */
        {{.cores = 16, .memory = 10 * GB}, {.runs = 40, .memory = 2 * GB}, 4, 4, 4, 0},
        {{.cores = 16, .memory = 10 * GB}, {.runs = 40, .memory = 20 * GB}, 1, 16, 16, 0},
        {{.cores = 16, .memory = 10 * GB}, {.runs = 40, .memory = 20 * GB, .jobs = 3}, 3, 6, 5, 0},
        {{.cores = 16}, {.runs = 40, .memory = 20 * GB}, 16, 1, 1, 0},
        /* one run on each GPU, and more in turn where more are asked for */
        {{.cores = 16, .memory = 100 * GB, .gpus = 2}, {.runs = 40, .memory = 1 * GB}, 2, 8, 8, 1},
        {{.cores = 16, .memory = 100 * GB, .gpus = 2}, {.runs = 40, .memory = 1 * GB, .jobs = 5}, 5, 4, 3, 0},
        {{.cores = 16, .memory = 100 * GB, .gpus = 2}, {.runs = 1}, 1, 16, 16, 0},
        {{.cores = 16, .memory = 100 * GB}, {.runs = 40, .memory = 1 * GB, .jobs = 5}, 5, 4, 3, 0},
        /* a run takes two next to each other; the fifth stays free */
        {{.cores = 16, .memory = 100 * GB, .gpus = 5}, {.runs = 40, .memory = 1 * GB, .gpus = 2}, 2, 8, 8, 2},
        /* more than there are: the run itself refuses */
        {{.cores = 16, .memory = 100 * GB, .gpus = 5}, {.runs = 40, .memory = 1 * GB, .gpus = 8}, 1, 16, 16, 0},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct placement placement = placement_choose(&cases[i].machine, &cases[i].request);
        assert_int_equal(placement.jobs, cases[i].jobs);
        assert_int_equal(placement_threads(&placement, 0), cases[i].first);
        assert_int_equal(placement_threads(&placement, cases[i].jobs - 1), cases[i].last);
        assert_int_equal(placement_gpu(&placement, 0), 0);
        assert_int_equal(placement_gpu(&placement, cases[i].jobs - 1), cases[i].last_gpu);
        assert_true(placement_speed(&placement) == (cases[i].machine.gpus > 0 ? 1 : (double)cases[i].first));
    }
}

TEST(this_machine_has_cores_and_memory)
{
    struct machine machine = machine_look();
    assert_true(machine.cores >= 1);
    assert_true(machine.memory > 1e6);
}
