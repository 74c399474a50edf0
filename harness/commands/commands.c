/* The subcommands, in the order that --help shows. A new one: its file with a constant struct command, and its name
 * twice here. */
#include "harness/commands/command.h"

extern const struct command command_compare, command_data, command_doctor, command_embed, command_eval, command_export,
    command_list, command_merge_db, command_predict, command_pretrain, command_query, command_report, command_run,
    command_sweep, command_watch;

const struct command *const commands[] = {
    &command_run,      &command_sweep,  &command_eval,     &command_predict,
    &command_embed,    &command_query,  &command_compare,  &command_report,
    &command_watch,    &command_export, &command_merge_db, &command_data,
    &command_pretrain, &command_list,   &command_doctor,   NULL,
};
