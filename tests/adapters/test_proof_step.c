/* The recorded step of a device's proof, and a graph that leaves out its last kernel. */
#include "adapters/proof_step.h"
#include "tests/models/device.h"

/* Of the emulated device (tests/models/cuda_on_host/README.md). */
void emulation_spoil(const char *kernel) __attribute__((weak));

static status prove(void)
{
    struct backend *cpu;
    struct device d;
    device_open(&d, 2);
    must(backend_open(&cpu, &(struct backend_settings){.name = "cpu", .threads = 2}, &error));
    status proven = proof_of_step(cpu, d.backend, &error);
    backend_close(cpu);
    device_close(&d);
    return proven;
}

TEST(a_step_and_an_evaluation_are_those_of_the_cpu)
{
    must(prove());
}

TEST(a_graph_that_leaves_something_out_is_named)
{
    if (emulation_spoil == NULL)
        return;
    emulation_spoil("graph");
    must_refuse(prove(), ERROR_DEVICE, "a recorded step: value");
    emulation_spoil(NULL);
}
