/* Replays recorded numbers with the code that the program runs, and compares every one.
 *
 *     build/tests/replay_fixtures [--backend cpu|cuda] [--precision f32|bf16] [--members N] [--stops] [--method NAME] FOLDER…
 *
 * What a folder holds follows from the keys of its config.json; one without it is a folder of such folders, and a file is one of
 * fixtures/stats. Trajectories of methods are trained by N replicas that share every batch; with --stops every iteration ends
 * with a resume file from which another experiment goes on. Prints a line per quantity with the largest deviation and its
 * tolerance; exits with 0 only when all hold, with 77 when a folder is absent. */
#include "tests/replay/replay.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/file.h"
#include "core/text.h"

static const struct kind {
    const char *key;  /* of config.json, which only this kind has */
    const char *data; /* the file that is opened for it */
    bool device;      /* as is this */
    void (*replay)(struct replay *r);
} kinds[] = {{"average_every", "common.safetensors", false, replay_finetune},
             {"dual_ridge", "data.safetensors", false, replay_rail},
             {"ewa_beta", NULL, true, replay_mixtures},
             {"picks", "features.safetensors", false, replay_icarl},
             {"ridges", "classes.safetensors", false, replay_classes},
             {"routers", "forward.safetensors", true, replay_model},
             {"sources", "bank.safetensors", false, replay_merge_policies},
             {"tensors", "data.safetensors", false, replay_condu},
             {"threshold", "data.safetensors", true, replay_moram},
             {"weight_share", "data.safetensors", false, replay_keeplora}};
enum { KINDS = sizeof kinds / sizeof *kinds };

struct tally {
    size_t replayed, failed, absent;
};

static void replay_fixture(struct replay *r)
{
    const struct kind *kind = kinds;
    r->config = recorded_json(r, "config.json");
    while (kind < kinds + KINDS && json_object_get(r->config, kind->key) == NULL)
        kind++;
    if (kind == kinds + KINDS)
        must(error_set(&error, ERROR_FORMAT, "%s/config.json: no kind of fixture has these keys", r->folder));
    if (kind->data != NULL)
        r->data = recorded_open(r, "%s", kind->data);
    if (kind->device)
        replay_device_open(r);
    kind->replay(r);
    if (kind->device)
        replay_device_close(r);
    safetensors_close(r->data);
    json_decref(r->config);
}

static void replay_path(const struct replay *options, const char *path, struct tally *tally)
{
    struct replay r = *options;
    r.folder = r.report.folder = path;
    if (file_is_directory(path))
        replay_fixture(&r);
    else
        replay_stats(&r);
    replay_give_back(&r);
    tally->replayed++;
    tally->failed += !report_finish(&r.report);
}

static bool has_config(const char *folder)
{
    char *config = path_format("%s/config.json", folder);
    bool has = file_exists(config);
    free(config);
    return has;
}

static void replay_folders(const struct replay *options, const char *folder, struct tally *tally)
{
    struct directory directory;
    size_t before = tally->replayed;
    must(directory_list(&directory, folder, &error));
    for (size_t i = 0; i < directory.count; i++) {
        char *inner = path_format("%s/%s", folder, directory.names[i]);
        if (has_config(inner))
            replay_path(options, inner, tally);
        free(inner);
    }
    directory_free(&directory);
    if (tally->replayed == before)
        must(error_set(&error, ERROR_FORMAT, "%s: expected a config.json, or folders with one", folder));
}

static bool read_option(struct replay *options, const char *name, const char *value)
{
    int64_t members;
    bool bf16 = strcmp(value, "bf16") == 0;
    if (strcmp(name, "--backend") == 0)
        options->settings.name = value;
    else if (strcmp(name, "--method") == 0)
        options->method = value;
    else if (strcmp(name, "--precision") == 0 && (bf16 || strcmp(value, "f32") == 0))
        options->settings.precision = bf16 ? PRECISION_BF16 : PRECISION_F32;
    else if (strcmp(name, "--members") == 0 && parse_integer(value, &members) && members > 0)
        options->members = (size_t)members;
    else
        return false;
    return true;
}

int main(int argc, char **argv)
{
    struct replay options = {.settings.name = "cpu", .members = 1};
    struct tally tally = {0};
    int i = 1;
    for (; i < argc && strncmp(argv[i], "--", 2) == 0; i++)
        if (strcmp(argv[i], "--stops") == 0)
            options.stops = true;
        else if (i + 1 == argc || !read_option(&options, argv[i], argv[i + 1]))
            break;
        else
            i++;
    if (i >= argc || strncmp(argv[i], "--", 2) == 0) {
        fprintf(stderr, "usage: replay_fixtures [--backend cpu|cuda] [--precision f32|bf16] [--members N] [--stops] "
                        "[--method NAME] FOLDER...\n");
        return 2;
    }
    for (; i < argc; i++)
        if (!file_exists(argv[i])) {
            printf("%s: skipped, it is absent\n", argv[i]);
            tally.absent++;
        } else if (file_is_directory(argv[i]) && !has_config(argv[i])) {
            replay_folders(&options, argv[i], &tally);
        } else {
            replay_path(&options, argv[i], &tally);
        }
    return tally.failed > 0 ? 1 : tally.absent > 0 ? 77 : 0;
}
