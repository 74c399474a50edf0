/* mtil convert rmoe: what is in the file; the rest is in scripts/convert.txt. */
#include <math.h>
#include <string.h>

#include "tests/end_to_end/workshop.h"

#define CONVERT "convert rmoe --quiet --threads 2 "

static const struct safetensor *tensor(const struct safetensors *file, const char *name)
{
    const struct safetensor *found = safetensors_find(file, name);
    if (found == NULL)
        fail_msg("there is no %s", name);
    return found;
}

/* Standard deviations of the tensor and of what the expert's differs from it by. */
static void deviations(const struct safetensor *from, const struct safetensor *to, double *own, double *added)
{
    size_t n = safetensor_elements(from);
    double sum = 0, squares = 0, differences = 0;
    assert_int_equal(safetensor_elements(to), n);
    for (size_t i = 0; i < n; i++) {
        double value = (double)((const float *)from->data)[i],
               difference = (double)((const float *)to->data)[i] - value;
        sum += value;
        squares += value * value;
        differences += difference * difference;
    }
    *own = sqrt(squares / (double)n - sum / (double)n * (sum / (double)n));
    *added = sqrt(differences / (double)n);
}

static void check_metadata(const struct safetensors *out)
{
    static const char *const expected[][2] = {
        {"expert_kind", "ffn"}, {"router", "softmax_topk"}, {"aligned_output", "shared"},
        {"blocks", "last_1"},   {"routing", "per_token"},   {"towers", "image"},
        {"top_k", "1"},         {"image_heads", "1"},       {"activation", "quick_gelu"}};
    for (size_t i = 0; i < sizeof expected / sizeof *expected; i++) {
        const char *found = safetensors_metadata_value(out, expected[i][0]);
        if (found == NULL || strcmp(found, expected[i][1]) != 0)
            fail_msg("%s is %s, expected %s", expected[i][0], found != NULL ? found : "not there", expected[i][1]);
    }
}

/* The image tower under timm's names, experts in the place of one MLP, each with noise of its own. */
TEST(the_file_is_a_classifiers)
{
    static const char *const parts[] = {"c_fc.weight", "c_proj.weight"};
    program_succeeds(CONVERT "clip.safetensors out.safetensors --experts 3 --noise 0.05 --blocks last_1");
    struct safetensors *clip = workshop_tensors("clip.safetensors"), *out = workshop_tensors("out.safetensors");
    check_metadata(out);
    const struct safetensor *mlp = tensor(clip, "visual.transformer.resblocks.0.mlp.c_fc.weight"),
                            *same = tensor(out, "blocks.0.mlp.fc1.weight");
    assert_memory_equal(mlp->data, same->data, safetensor_elements(mlp) * sizeof(float));
    assert_null(safetensors_find(out, "blocks.1.mlp.fc1.weight"));
    assert_null(safetensors_find(out, "head.weight"));
    assert_int_equal(tensor(out, "visual.transformer.resblocks.1.router_list.0")->shape[1], 3);
    for (int expert = 0; expert < 3; expert++)
        for (size_t p = 0; p < 2; p++) {
            char from[96], to[96];
            double own, added;
            snprintf(from, sizeof from, "visual.transformer.resblocks.1.mlp.%s", parts[p]);
            snprintf(to, sizeof to, "visual.transformer.resblocks.1.adaptmlp_list.%d.%s", expert, parts[p]);
            deviations(tensor(clip, from), tensor(out, to), &own, &added);
            assert_true(fabs(added / own - 0.05) < 0.002);
        }
    const struct safetensor *first = tensor(out, "visual.transformer.resblocks.1.adaptmlp_list.0.c_fc.weight"),
                            *second = tensor(out, "visual.transformer.resblocks.1.adaptmlp_list.1.c_fc.weight");
    assert_memory_not_equal(first->data, second->data, safetensor_elements(first) * sizeof(float));
    safetensors_close(clip);
    safetensors_close(out);
}

/* A classifier that was trained here: its head goes along. */
TEST(a_classifier_keeps_its_head)
{
    program_succeeds("classify tiny.yaml --quiet data.order=mnist model.weights=scratch model.resolution=16 "
                     "model.patch=8 model.width=64 model.blocks=2");
    assert_int_equal(workshop_shell("mv runs/*/seed*/weights.safetensors trained.safetensors"), 0);
    program_succeeds(CONVERT "trained.safetensors out.safetensors --blocks 0,1 --noise 0");
    struct safetensors *trained = workshop_tensors("trained.safetensors"), *out = workshop_tensors("out.safetensors");
    const struct safetensor *head = tensor(trained, "head.weight"), *same = tensor(out, "head.weight");
    assert_memory_equal(head->data, same->data, safetensor_elements(head) * sizeof(float));
    safetensors_close(trained);
    safetensors_close(out);
}

TEST_GROUP(workshop_set_up, workshop_tear_down)
