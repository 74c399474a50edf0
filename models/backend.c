#include "models/backend_options.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "models/cpu/cpu.h"

/* The only code that depends on whether the program is built with CUDA. */
#ifndef MTIL_CUDA
#include "models/no_cuda.h"

status cuda_gpus(struct gpus *gpus, struct error *error)
{
    return error_set(error, ERROR_DEVICE,
                     "cuda: this program was built without CUDA: " NO_CUDA "; use the CPU (run.backend=cpu)");
}

status cuda_backend_open(struct backend **backend, const struct backend_settings *settings, struct error *error)
{
    struct gpus none;
    return cuda_gpus(&none, error);
}
#endif

status backend_gpus(struct gpus *gpus, struct error *error)
{
    *gpus = (struct gpus){0};
    return cuda_gpus(gpus, error);
}

status backend_open(struct backend **backend, const struct backend_settings *settings, struct error *error)
{
    if (strcmp(settings->name, "cpu") == 0)
        return cpu_backend_open(backend, settings->threads, settings->precision, error);
    /* Before the driver is loaded: a kernel that is loaded while another GPU sums may wait for it. */
    if (settings->gpus > 1)
        setenv("CUDA_MODULE_LOADING", "EAGER", 0);
    if (strcmp(settings->name, "cuda") == 0)
        return cuda_backend_open(backend, settings, error);
    return error_set(error, ERROR_ARGUMENT, "backend: expected cpu or cuda, found \"%s\"", settings->name);
}

struct backend_settings backend_settings_of(const struct options *options)
{
    bool bf16 = strcmp(options_text(options, "precision"), precision_name(PRECISION_BF16)) == 0;
    return (struct backend_settings){.name = options_text(options, "backend"),
                                     .precision = bf16 ? PRECISION_BF16 : PRECISION_F32,
                                     .device = (size_t)options_integer(options, "device")};
}

const char *precision_name(enum precision precision)
{
    return precision == PRECISION_BF16 ? "bf16" : "f32";
}

enum tensor_type backend_operand_type(const struct backend *backend)
{
    return backend->precision == PRECISION_BF16 ? TENSOR_BF16 : TENSOR_F32;
}

static status add_term(struct backend *backend, const struct gemm_term *term, bool sets, struct matrix out,
                       struct error *error)
{
    out = matrix_columns(out, term->first, term->b.columns);
    return backend->ops->gemm(
        backend,
        &(struct gemm){
            .a = term->a, .b = term->b, .scale = term->scale, .addend = sets ? (struct matrix){0} : out, .out = out},
        error);
}

/* Ahead of an activation, the only term comes first, and is added to like an addend. */
status backend_gemm_with_terms(struct backend *backend, const struct gemm *g, struct error *error)
{
    struct gemm product = *g;
    bool ahead = g->activation != ACTIVATION_NONE && !g->backward;
    assert(!ahead || (g->terms_count == 1 && g->terms->b.columns == g->out.columns && g->addend.data == NULL));
    product.terms_count = 0;
    if (ahead) {
        TRY(add_term(backend, g->terms, true, g->out, error));
        product.addend = g->out;
    } else if (g->backward) {
        product.backward = false;
        product.activation = ACTIVATION_NONE;
        product.before = (struct matrix){0};
    }
    TRY(backend->ops->gemm(backend, &product, error));
    for (size_t i = 0; !ahead && i < g->terms_count; i++)
        TRY(add_term(backend, &g->terms[i], false, g->out, error));
    return g->backward ? backend->ops->activate_backward(
                             backend,
                             &(struct activate_backward){
                                 .activation = g->activation, .x = g->before, .dy = g->out, .dx = g->out},
                             error)
                       : OK;
}

void backend_close(struct backend *backend)
{
    if (backend != NULL)
        backend->ops->close(backend);
}
