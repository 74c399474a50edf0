/* How runs share a machine. */
#include "harness/sweep/placement.h"
#include "tests/test.h"

#define GB 1e9

static void expect(const struct machine *machine, const struct placement_request *request, size_t jobs, size_t first,
                   size_t last)
{
    struct placement placement = placement_choose(machine, request);
    assert_int_equal(placement.jobs, jobs);
    assert_int_equal(placement_threads(&placement, 0), first);
    assert_int_equal(placement_threads(&placement, jobs - 1), last);
}

TEST(cores_are_shared_out)
{
    expect(&(struct machine){.cores = 8}, &(struct placement_request){.runs = 40}, 8, 1, 1);
    expect(&(struct machine){.cores = 8}, &(struct placement_request){.runs = 3}, 3, 3, 2);
    expect(&(struct machine){.cores = 8}, &(struct placement_request){.runs = 1}, 1, 8, 8);
    expect(&(struct machine){.cores = 1}, &(struct placement_request){.runs = 4}, 1, 1, 1);
    expect(&(struct machine){.cores = 8}, &(struct placement_request){.runs = 0}, 1, 8, 8);
}

TEST(a_request_is_granted)
{
    expect(&(struct machine){.cores = 8}, &(struct placement_request){.runs = 40, .jobs = 2}, 2, 4, 4);
    expect(&(struct machine){.cores = 2}, &(struct placement_request){.runs = 40, .jobs = 5}, 5, 1, 1);
    expect(&(struct machine){.cores = 8}, &(struct placement_request){.runs = 40, .threads = 3}, 2, 3, 3);
    expect(&(struct machine){.cores = 2}, &(struct placement_request){.runs = 40, .threads = 3}, 1, 3, 3);
}

TEST(memory_is_a_limit)
{
    struct machine machine = {.cores = 16, .memory = 10 * GB};
    expect(&machine, &(struct placement_request){.runs = 40, .memory = 2 * GB}, 4, 4, 4);
    expect(&machine, &(struct placement_request){.runs = 40, .memory = 20 * GB}, 1, 16, 16);
    expect(&machine, &(struct placement_request){.runs = 40, .memory = 20 * GB, .jobs = 3}, 3, 6, 5);
    machine.memory = 0;
    expect(&machine, &(struct placement_request){.runs = 40, .memory = 20 * GB}, 16, 1, 1);
}

/* One run on each GPU, and more in turn where more are asked for. */
TEST(gpus_are_shared_out)
{
    struct machine machine = {.cores = 16, .memory = 100 * GB, .gpus = 2};
    struct placement_request request = {.runs = 40, .memory = 1 * GB};
    expect(&machine, &request, 2, 8, 8);
    struct placement placement = placement_choose(&machine, &request);
    assert_int_equal(placement_gpu(&placement, 0), 0);
    assert_int_equal(placement_gpu(&placement, 1), 1);
    assert_true(placement_speed(&placement) == 1);
    machine.gpus = 5;
    request.gpus = 2; /* a run takes two next to each other; the fifth stays free */
    placement = placement_choose(&machine, &request);
    assert_int_equal(placement.jobs, 2);
    assert_int_equal(placement_gpu(&placement, 1), 2);
    request.gpus = 8; /* more than there are: the run itself tells */
    placement = placement_choose(&machine, &request);
    assert_int_equal(placement.jobs, 1);
    assert_int_equal(placement_gpu(&placement, 0), 0);
    machine.gpus = 2;
    request.gpus = 0;
    request.jobs = 5;
    placement = placement_choose(&machine, &request);
    assert_int_equal(placement.jobs, 5);
    assert_int_equal(placement_gpu(&placement, 4), 0);
    expect(&machine, &(struct placement_request){.runs = 1}, 1, 16, 16);
    machine.gpus = 0;
    placement = placement_choose(&machine, &request);
    assert_int_equal(placement_gpu(&placement, 4), 0);
    assert_true(placement_speed(&placement) == 4); /* of 16 cores for 5 runs, the first has 4 */
}

TEST(this_machine_has_cores_and_memory)
{
    struct machine machine = machine_look();
    assert_true(machine.cores >= 1);
    assert_true(machine.memory > 1e6);
}
