/* mtil manual: pages for man(1), made from the tables that print --help. */
#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "core/file.h"
#include "harness/commands/command.h"
#include "harness/exit_status.h"
#include "harness/run/program.h"

enum { LINE = 78 };

/* --- Text as roff --- */

/* Escapes the characters that are special in roff: a backslash, and a dot or quote at the beginning of a line. */
static void add_escaped(struct text *page, const char *text, size_t size)
{
    for (const char *at = text; at < text + size; at++)
        if (*at == '\\')
            text_add(page, "\\e");
        else if (*at == '-')
            text_add(page, "\\-");
        else
            text_add(page, (*at == '.' || *at == '\'') && at == text ? "\\&%c" : "%c", *at);
}

/* A word in roff's input, with characters beyond ASCII as \[u2026]. */
static size_t input_width(const char *text, size_t size)
{
    size_t width = size > 0 && (text[0] == '.' || text[0] == '\'') ? 2 : 0;
    for (size_t i = 0; i < size; i++)
        width += (unsigned char)text[i] >= 0xc0   ? 8
                 : (text[i] & 0x80) != 0          ? 0
                 : strchr("\\-", text[i]) != NULL ? 2
                                                  : 1;
    return width;
}

/* Words in lines of roff's input, which man(1) fills. */
static void add_filled(struct text *page, const char *text, size_t size)
{
    size_t column = 0;
    for (const char *at = text, *end = text + size; at < end;) {
        size_t blanks = strspn(at, " \n"), word = 0;
        for (at += blanks; at + word < end && strchr(" \n", at[word]) == NULL;)
            word++;
        if (word == 0)
            break;
        size_t width = input_width(at, word);
        bool breaks = column > 0 && column + width >= LINE;
        text_add(page, "%s", column == 0 ? "" : breaks ? "\n" : " ");
        column = breaks ? width : column + width + 1;
        add_escaped(page, at, word);
        at += word;
    }
    text_add(page, "\n");
}

/* Lines as they are. */
static void add_lines(struct text *page, const char *text, size_t size)
{
    text_add(page, ".nf\n");
    for (const char *at = text; at < text + size;) {
        size_t length = strcspn(at, "\n");
        add_escaped(page, at, length);
        text_add(page, "\n");
        at += length + 1;
    }
    text_add(page, ".fi\n");
}

/* Whether lines of a paragraph are aligned by blanks. */
static bool is_aligned(const char *text, size_t size)
{
    for (size_t i = 0; i + 1 < size; i++)
        if (text[i] == ' ' && (i == 0 || text[i - 1] == '\n' || text[i + 1] == ' '))
            return true;
    return false;
}

/* A heading itself begins a paragraph. */
static bool end_of_heading(const struct text *page)
{
    static const char heading[] = ".SH DESCRIPTION\n";
    size_t size = sizeof heading - 1;
    return page->size >= size && strcmp(page->data + page->size - size, heading) == 0;
}

static void add_paragraphs(struct text *page, const char *text)
{
    while (text != NULL && *text != 0) {
        const char *end = strstr(text, "\n\n");
        size_t size = end != NULL ? (size_t)(end - text) : strlen(text);
        text_add(page, "%s", end_of_heading(page) ? "" : ".PP\n");
        (is_aligned(text, size) ? add_lines : add_filled)(page, text, size);
        text += size + strspn(text + size, "\n");
    }
}

/* --- Pages --- */

/* "mtil\-data\-check" */
static void add_page_name(struct text *page, const struct command *command)
{
    text_add(page, "mtil");
    for (const char *at = command->name; command->name != NULL && *at != 0; at++) {
        if (at == command->name)
            text_add(page, "\\-");
        text_add(page, *at == ' ' || *at == '-' ? "\\-" : "%c", *at);
    }
}

static void add_option(struct text *page, const struct option *option, bool has_letter)
{
    struct text help = {0};
    const char *value = command_value_name(option);
    text_add(page, ".TP\n\\fB");
    if (has_letter)
        text_add(page, "\\-%c\\fR, \\fB", option->name[0]);
    text_add(page, "\\-\\-");
    add_escaped(page, option->name, strlen(option->name));
    text_add(page, "\\fR");
    if (value != NULL && has_letter == false) {
        text_add(page, option->type == OPTION_BOOLEAN ? "[=\\fI" : "=\\fI");
        add_escaped(page, value, strlen(value));
        text_add(page, option->type == OPTION_BOOLEAN ? "\\fR]" : "\\fR");
    }
    text_add(page, "\n");
    command_add_help(&help, option);
    if (help.data != NULL)
        add_filled(page, help.data, help.size);
    page->failed |= help.failed;
    text_free(&help);
}

static void add_options(struct text *page, const struct command *command)
{
    text_add(page, ".SH OPTIONS\n");
    for (const struct option *option = command->options; option != NULL && option->name != NULL; option++)
        add_option(page, option, false);
    for (const struct option *option = command_common_options; option->name != NULL; option++)
        add_option(page, option, true);
}

static void add_commands(struct text *page, const struct command *const *list)
{
    text_add(page, ".SH COMMANDS\n");
    for (; *list != NULL; list++) {
        text_add(page, ".TP\n\\fB");
        add_page_name(page, *list);
        text_add(page, "\\fR(1)\n");
        add_filled(page, (*list)->summary, strlen((*list)->summary));
    }
}

static void add_head(struct text *page, const struct command *command, const char *summary)
{
    struct text title = {0};
    add_page_name(&title, command);
    text_add(page, ".TH ");
    for (size_t i = 0; i < title.size; i++)
        text_add(page, "%c", toupper((unsigned char)title.data[i]));
    text_add(page, " 1 \"%s\" \"mtil %s\" \"User Commands\"\n.SH NAME\n%s", program_date(), MTIL_VERSION,
             title.failed ? "" : title.data);
    text_free(&title);
    text_add(page, " \\-\n");
    add_filled(page, summary, strlen(summary));
    text_add(page, ".SH SYNOPSIS\n.B mtil");
}

static void add_exit_status(struct text *page)
{
    text_add(page,
             ".SH EXIT STATUS\n%d, or %d for a failure, %d for a mistake on the command line or in a suite,\n%d when "
             "a needed resource is in use by another process,\n%d plus the signal's number when stopped.\n",
             EXIT_OK, EXIT_FAILED, EXIT_USAGE, EXIT_BUSY, EXIT_SIGNAL);
}

static void add_command_page(struct text *page, const struct command *command)
{
    add_head(page, command, command->summary);
    text_add(page, " %s\n[\\fIOPTION\\fR...]\n", command->name);
    add_filled(page, command->arguments, strlen(command->arguments));
    if (command->details != NULL)
        text_add(page, ".SH DESCRIPTION\n");
    add_paragraphs(page, command->details);
    if (command->subcommands != NULL)
        add_commands(page, command->subcommands);
    add_options(page, command);
    text_add(page, ".SH EXAMPLES\n");
    add_lines(page, command->example, strlen(command->example));
    add_exit_status(page);
    text_add(page, ".SH SEE ALSO\n.BR mtil (1)\n");
}

/* Of the program itself. */
static void add_main_page(struct text *page)
{
    static const struct command program = {0};
    static const char summary[] = "continual learning of vision-language models with mixtures of experts";
    static const char about[] =
        "Streams a sequence of image datasets through CLIP and measures what it learns, keeps and forgets on the way. "
        "A suite states the datasets, the method and its settings; every number is stored in one SQLite database.";
    add_head(page, &program, summary);
    text_add(page, "\n\\fICOMMAND\\fR [\\fIOPTION\\fR...] [\\fIARGUMENT\\fR...]\n.SH DESCRIPTION\n");
    add_filled(page, about, strlen(about));
    add_commands(page, commands);
    add_exit_status(page);
}

/* --- The command --- */

static status write_page(const char *folder, const struct command *command, struct error *error)
{
    struct text page = {0};
    char *path = path_format("%s/mtil%s%s.1", folder, command != NULL ? "-" : "", command != NULL ? command->name : "");
    if (path == NULL)
        return error_set(error, ERROR_MEMORY, "manual: no memory for a path");
    for (char *at = path + strlen(folder); *at != 0; at++)
        *at = *at == ' ' ? '-' : *at;
    if (command != NULL)
        add_command_page(&page, command);
    else
        add_main_page(&page);
    status result = page.failed ? error_set(error, ERROR_MEMORY, "manual: no memory for %s", path)
                                : file_write(path, page.data, page.size, error);
    text_free(&page);
    free(path);
    return result;
}

static status write_pages(const char *folder, const struct command *const *list, struct error *error)
{
    for (; list != NULL && *list != NULL; list++) {
        TRY(write_page(folder, *list, error));
        TRY(write_pages(folder, (*list)->subcommands, error));
    }
    return OK;
}

static status run(const struct command_call *call, struct error *error)
{
    TRY(directory_create(call->arguments[0], error));
    TRY(write_page(call->arguments[0], NULL, error));
    return write_pages(call->arguments[0], commands, error);
}

const struct command command_manual = {
    .name = "manual",
    .arguments = "FOLDER",
    .summary = "write the pages for man(1)",
    .details = "Writes mtil.1 and one page for every command, as make install installs them.\n",
    .example = "  mtil manual man1\n  man man1/mtil-run.1\n",
    .least = 1,
    .most = 1,
    .run = run,
};
