/* The subcommands. A new one: its file with a constant struct command, and its name here. */
#include "harness/commands/command.h"

#define DECLARE(name) extern const struct command command_##name;
#define ENTRY(name) &command_##name,

/* In the order that --help shows. */
/* clang-format off */
#define COMMANDS(X) \
    X(run) X(classify) X(layers) X(norms) X(sweep) X(eval) X(predict) X(embed) X(query) X(compare) X(report) X(watch) X(export) X(import) X(convert) X(merge_db) \
    X(verify) X(rerun) X(runs) X(data) X(init) X(list) X(doctor) X(completion)
/* clang-format on */

COMMANDS(DECLARE)
const struct command *const commands[] = {COMMANDS(ENTRY) NULL};

/* --- Commands with subcommands, which have a file each, too --- */

#define OF_DATA(X) X(data_cache) X(data_check) X(data_get) X(data_list) X(data_mini) X(data_show)
OF_DATA(DECLARE)
static const struct command *const of_data[] = {OF_DATA(ENTRY) NULL};

const struct command command_data = {
    .name = "data",
    .arguments = "SUBCOMMAND",
    .summary = "fetch, write, check, list and show datasets, clear the cache",
    .example = "  mtil data mini data/mini\n"
               "  mtil data check data/mini\n",
    .subcommands = of_data,
};

#define OF_CONVERT(X) X(convert_peft) X(convert_rmoe) X(convert_weights)
OF_CONVERT(DECLARE)
static const struct command *const of_convert[] = {OF_CONVERT(ENTRY) NULL};

const struct command command_convert = {
    .name = "convert",
    .arguments = "SUBCOMMAND",
    .summary = "convert weights from one form into another",
    .example = "  mtil convert weights ViT-B-16.pt ViT-B-16.safetensors\n"
               "  mtil convert rmoe vit.safetensors rmoe.safetensors --experts 8 --noise 0.01\n",
    .subcommands = of_convert,
};
