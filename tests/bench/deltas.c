/* Times what low-rank deltas add to a step of the image tower of ViT-B/16, as ratios within a round:
 *
 *     build/tests/deltas [f32|bf16] [rank] [images] [rounds]
 *
 * frozen: forward alone, as with a head on a frozen tower; through: forward, and the gradients of all activations through frozen
 * weights, which anything trained in the first block needs; deltas: the same with deltas of the given rank on query, key,
 * value and output of every block, and their gradients. Seconds are the processor's, of one thread: on a machine that others use,
 * too, they swing less than those of a clock. On a GPU they say nothing. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "adapters/deltas.h"
#include "models/clip.h"
#include "tests/bench/bench.h"
#include "tests/bench/models.h"
#include "tests/models/initialize.h"

/* A hook that is trained, and does nothing. */
static status nothing_forward(void *state, const struct block_context *context, const struct tensor *x,
                              const struct tensor *ln2_x, struct tensor *y, struct error *failure)
{
    return OK;
}

static double step(struct clip *clip, struct encoding *encoding, const struct tensor *images, bool backward)
{
    struct tower_pass pass;
    struct tensor features;
    clock_t start = clock();
    arena_reset(encoding->arena);
    encoding->training = backward;
    must(clip_encode_images(clip, encoding, images, &pass, &features, &error));
    if (backward)
        must(clip_encode_backward(clip, encoding, &pass, &features, &error));
    float last;
    must(clip->backend->ops->download(clip->backend, &last, features.data, sizeof last, &error));
    return (double)(clock() - start) / CLOCKS_PER_SEC;
}

int main(int count, char **words)
{
    static const struct clip_dimensions dimensions = VIT_B_16;
    enum { FROZEN, THROUGH, DELTAS, KINDS };
    static const char *const names[KINDS] = {"frozen", "through", "deltas"};
    bool bf16 = count > 1 && strcmp(words[1], "bf16") == 0;
    size_t rank = count > 2 ? strtoul(words[2], NULL, 10) : 16, n = count > 3 ? strtoul(words[3], NULL, 10) : 16,
           rounds = count > 4 ? strtoul(words[4], NULL, 10) : 5;
    struct delta_settings settings = {
        .rank = rank, .tasks = 1, .scale = 1, .matrices = 0xF, .place.towers = ADAPT_IMAGE};
    struct bench b;
    struct arena arena;
    struct clip *clip;
    struct deltas *deltas;
    struct block_hook hooks[CLIP_BLOCKS_MOST] = {{.forward = nothing_forward, .trained = true, .stream_alone = true}};
    double times[KINDS][MOST_FIGURES], ratios[KINDS][MOST_FIGURES];
    rounds = rounds < MOST_FIGURES ? rounds : MOST_FIGURES;
    must(bench_open(&b, &(struct backend_settings){
                            .name = "cpu", .precision = bf16 ? PRECISION_BF16 : PRECISION_F32, .threads = 1}));
    must(b.ops->arena_create(b.backend, &arena, 0, "step", &error));
    must(clip_create(&clip, b.backend, &b.arena, &dimensions, PARAMETERS_FROZEN, ACTIVATION_QUICK_GELU, &error));
    must(clip_initialize(clip, 1, &error));
    must(deltas_create(&deltas, clip, &b.arena, &settings, PARAMETERS_TRAINED, &error));
    must(deltas_initialize(deltas, 1, &error));
    struct tensor images = drawn_images(&b, n, dimensions.resolution);
    int32_t *routers = memory(&b, n * sizeof *routers);
    for (size_t round = 0; round <= rounds; round++) /* the first is not counted */
        for (int kind = 0; kind < KINDS; kind++) {
            struct encoding encoding = {.arena = &arena};
            if (kind == THROUGH) {
                encoding.hooks = hooks;
                encoding.router = routers;
            }
            if (kind == DELTAS)
                must(deltas_begin_task(deltas, 0, 0, DELTA_A | DELTA_B, &error));
            double seconds = step(clip, &encoding, &images, kind != FROZEN);
            for (size_t i = 0; i < deltas->count; i++)
                deltas->each[i].rows = 0;
            if (round > 0) {
                times[kind][round - 1] = seconds;
                ratios[kind][round - 1] = seconds / times[kind == DELTAS ? THROUGH : FROZEN][round - 1];
            }
        }
    printf("%s, rank %zu, %zu images, %s\n", b.backend->description, rank, n, bf16 ? "bf16" : "f32");
    for (int kind = 0; kind < KINDS; kind++) {
        struct figures seconds = figures_of(times[kind], rounds), ratio = figures_of(ratios[kind], rounds);
        printf("  %-8s %.4f s (%.4f to %.4f), %.3f (%.3f to %.3f) of %s\n", names[kind], seconds.middle, seconds.lowest,
               seconds.highest, ratio.middle, ratio.lowest, ratio.highest, names[kind == DELTAS ? THROUGH : FROZEN]);
    }
    deltas_destroy(deltas);
    clip_destroy(clip);
    b.ops->arena_destroy(b.backend, &arena);
    bench_close(&b);
    return 0;
}
