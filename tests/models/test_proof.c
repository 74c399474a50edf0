/* A device that computes what the CPU does passes its proof; one with a kernel that does not is named. */
#include "models/proof.h"
#include "tests/models/device.h"

#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum { KERNELS = 160 };

/* Of the emulated device (cuda_on_host/README.md). */
void emulation_spoil(const char *kernel) __attribute__((weak));
void emulation_watch(void (*launched)(const char *kernel)) __attribute__((weak));

static const char *kernels[KERNELS];
static size_t count;

static void launched(const char *kernel)
{
    for (size_t i = 0; i < count; i++)
        if (strcmp(kernels[i], kernel) == 0)
            return;
    assert_true(count < KERNELS);
    kernels[count++] = kernel;
}

static status prove(void)
{
    struct backend *cpu;
    struct device d;
    device_open(&d, 2);
    must(backend_open(&cpu, &(struct backend_settings){.name = "cpu", .threads = 2}, &error));
    status proven = proof_of_operations(cpu, d.backend, &error);
    backend_close(cpu);
    device_close(&d);
    return proven;
}

TEST(a_device_computes_what_the_cpu_does)
{
    if (emulation_watch != NULL)
        emulation_watch(launched);
    must(prove());
}

/* The operation that a kernel of each family belongs to. */
static const char *const families[][2] = {{"attend<", "attention:"},
                                          {"(attend_at_once", "attention:"},
                                          {"attend_by_pieces", "attention:"},
                                          {"gradients<", "attention_backward:"},
                                          {"sort_together", "route:"},
                                          {"gather_slots", "dispatch_gather:"},
                                          {"weight_gradients", "experts_backward:"},
                                          {"(kernel<pass", "experts:"},
                                          {"cublasLtMatmul", "gemm:"},
                                          {"(group_rows<T, true>)", "grouped_gemm:"},
                                          {"normalise_pieces", "layer_norm:"},
                                          {"normalise_any", "layer_norm:"},
                                          {"cross_entropy_rows", "cross_entropy:"},
                                          {"step_adamw", "adamw:"},
                                          {"attend_to_prefix", "prefix_attention:"},
                                          {"route_samples", "route:"},
                                          {"gather_values", "gather_rows:"},
                                          {"choose_rows", "route_softmax:"}};

/* In a process of its own, which what a spoilt kernel leaves may end: as on a device that reports a fault. */
static void expect_named(const char *kernel)
{
    static const int faults[] = {SIGABRT, SIGBUS, SIGFPE, SIGILL, SIGSEGV};
    size_t n = sizeof families / sizeof *families, f = 0;
    while (f < n && strncmp(kernel, families[f][0], strlen(families[f][0])) != 0)
        f++;
    pid_t child = fork();
    if (child == 0) {
        for (size_t i = 0; i < sizeof faults / sizeof *faults; i++)
            signal(faults[i], SIG_DFL); /* cmocka goes on with the next test */
        emulation_spoil(kernel);
        status proven = prove();
        printf("%s: %s\n", kernel, proven == OK ? "nothing is named" : error.message);
        fflush(stdout);
        _exit(proven != ERROR_DEVICE || (f < n && strncmp(error.message, families[f][1], strlen(families[f][1])) != 0));
    }
    int how;
    assert_int_equal(waitpid(child, &how, 0), child);
    if (WIFEXITED(how) ? WEXITSTATUS(how) != 0 : f < n)
        fail_msg("%s: expected that %s is named", kernel, f < n ? families[f][1] : "an operation");
}

/* Of all that the proof launches; where only some are tried, these families and every so many others. */
TEST(a_kernel_that_leaves_something_out_is_named)
{
    for (size_t i = 0; i < count && emulation_spoil != NULL; i++) {
        bool family = false;
        for (size_t f = 0; f < sizeof families / sizeof *families; f++)
            family = family || strncmp(kernels[i], families[f][0], strlen(families[f][0])) == 0;
        if (family || i % test_every() == 0)
            expect_named(kernels[i]);
    }
}

TEST(what_differs_is_told_with_both_numbers)
{
    const float cpu[] = {1, -4, NAN}, device[] = {1, -3.9f, NAN}, missing[] = {1, NAN, NAN};
    must(proof_compare("gemm", cpu, device, 3, 0.03, &error));
    must_refuse(proof_compare("gemm", cpu, device, 3, 0.02, &error), ERROR_DEVICE, "gemm: value 1 of 3", "-3.9", "-4",
                "0.08");
    must_refuse(proof_compare("gemm", cpu, missing, 3, 0.02, &error), ERROR_DEVICE, "nan");
    must_refuse(proof_compare("gemm", missing, cpu, 3, 0.02, &error), ERROR_DEVICE, "nan");
}
