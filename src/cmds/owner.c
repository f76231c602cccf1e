/* owner.c: whose job it is, as text. Apart from cli.c so that tests of fields need no command. */
#include <stdio.h>

#include "cmds/cli.h"

const char *cw_cli_user(const Cw__Owner *o)
{
    static char number[16];
    if (o->name != NULL && o->name[0] != '\0')
        return o->name;
    snprintf(number, sizeof(number), "%u", o->uid);
    return number;
}
