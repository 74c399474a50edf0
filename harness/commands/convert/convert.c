/* mtil convert. A new subcommand: its file NAME.c, and its name twice here. */
#include "harness/commands/command.h"

extern const struct command command_convert_rmoe, command_convert_weights;

static const struct command *const subcommands[] = {&command_convert_rmoe, &command_convert_weights, NULL};

const struct command command_convert = {
    .name = "convert",
    .arguments = "SUBCOMMAND",
    .summary = "convert weights from one form into another",
    .example = "  mtil convert weights ViT-B-16.pt ViT-B-16.safetensors\n"
               "  mtil convert rmoe vit.safetensors rmoe.safetensors --experts 8 --noise 0.01\n",
    .subcommands = subcommands,
};
