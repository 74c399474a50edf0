#include "results/report/section.h"

/* --- Names --- */

const char *section_name(const struct section_call *call, const char *what)
{
    return report_format(call->report, "%s%s", call->prefix, what);
}

const char *section_files(const struct section_call *call, const char *name)
{
    return call->report->request->figures ? name : NULL;
}

/* --- Choices --- */

void section_choices(const struct section_call *call, const char *name)
{
    text_add(call->page, "<div class=\"choices\" data-name=\"");
    html_escape(call->page, name);
    text_add(call->page, "\">\n");
}

void section_choice(const struct section_call *call, const char *label)
{
    text_add(call->page, "<div class=\"choice\"><h4>");
    html_escape(call->page, label);
    text_add(call->page, "</h4>\n");
}
