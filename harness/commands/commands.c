/* The subcommands. A new one: its file with a constant struct command, and its name here. */
#include "harness/commands/command.h"

/* In the order that --help shows. */
/* clang-format off */
#define COMMANDS(X) \
    X(run) X(classify) X(layers) X(norms) X(sweep) X(eval) X(predict) X(embed) X(query) X(compare) X(report) X(watch) X(export) X(convert) X(merge_db) \
    X(verify) X(rerun) X(runs) X(data) X(init) X(list) X(doctor) X(completion)
/* clang-format on */

#define DECLARE(name) extern const struct command command_##name;
COMMANDS(DECLARE)
#undef DECLARE

#define ENTRY(name) &command_##name,
const struct command *const commands[] = {COMMANDS(ENTRY) NULL};
