/* mtil pretrain: makes the small CLIP that ships. */
#include "harness/train/pretrain.h"
#include "harness/commands/command.h"

static const struct option options[] = {BACKEND_OPTIONS("cpu", "auto", "0"),
                                        {.name = "seed",
                                         .type = OPTION_INTEGER,
                                         .minimum = 0,
                                         .maximum = 9007199254740992.0,
                                         .fallback = "1",
                                         .help = "decides weights, drawings and their order"},
                                        {.name = "plain-steps",
                                         .type = OPTION_INTEGER,
                                         .minimum = 0,
                                         .maximum = 1e6,
                                         .fallback = "2400",
                                         .help = "steps on plain drawings"},
                                        {.name = "harder-steps",
                                         .type = OPTION_INTEGER,
                                         .minimum = 0,
                                         .maximum = 1e6,
                                         .fallback = "1000",
                                         .help = "steps on harder drawings"},
                                        {.name = "threads",
                                         .type = OPTION_INTEGER,
                                         .minimum = 0,
                                         .maximum = 1024,
                                         .fallback = "0",
                                         .help = "threads, 0: one per core; the result does not depend on it"},
                                        {0}};

static status run(const struct command_call *call, struct error *error)
{
    struct pretrain_settings settings = pretrain_defaults();
    settings.seed = (uint64_t)options_integer(call->options, "seed");
    settings.plain_steps = (size_t)options_integer(call->options, "plain-steps");
    settings.harder_steps = (size_t)options_integer(call->options, "harder-steps");
    settings.backend = backend_settings_of(call->options);
    settings.backend.threads = (size_t)options_integer(call->options, "threads");
    return pretrain(&settings, call->arguments[0], call->log, call->progress, call->stop, error);
}

const struct command command_pretrain = {
    .name = "pretrain",
    .arguments = "FOLDER",
    .summary = "train the small CLIP of the built-in suite on captioned drawings",
    .details = "Writes mini-clip.safetensors and mini-vocabulary.txt into FOLDER. The weights that ship were made "
               "with the defaults.\n",
    .example = "  mtil pretrain my-weights\n",
    .options = options,
    .least = 1,
    .most = 1,
    .run = run,
};
