/* Reads /proc/self/mountinfo and /proc/self/cgroup. Format: proc(5). */
#include "isolation/cgroup/groupmount.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const struct {
    const char *name;
    unsigned bit;
} controllers[GROUP_CONTROLLERS] = {
    {"freezer", GROUP_FREEZER}, {"cpuacct", GROUP_CPUACCT}, {"memory", GROUP_MEMORY},
    {"pids", GROUP_PIDS},       {"cpuset", GROUP_CPUSET},
};

unsigned group_controller_parse(const char *name, size_t len)
{
    for (size_t i = 0; i < GROUP_CONTROLLERS; i++)
        if (strlen(controllers[i].name) == len && strncmp(controllers[i].name, name, len) == 0)
            return controllers[i].bit;
    return 0;
}

unsigned group_controllers_parse(const char *list, const char *separators)
{
    unsigned set = 0;

    while (*list != '\0') {
        size_t len = strcspn(list, separators);
        set |= group_controller_parse(list, len);
        list += len;
        list += strspn(list, separators);
    }
    return set;
}

/* Space, tab, newline and backslash are written as \ooo. */
static void unescape(char *text)
{
    char *out = text;

    for (const char *in = text; *in != '\0'; out++) {
        if (in[0] == '\\' && in[1] >= '0' && in[1] <= '3' && in[2] != '\0' && in[3] != '\0') {
            *out = (char)((in[1] - '0') * 64 + (in[2] - '0') * 8 + (in[3] - '0'));
            in += 4;
        } else {
            *out = *in++;
        }
    }
    *out = '\0';
}

/* ID PARENT MAJ:MIN ROOT POINT OPTIONS [tags] - TYPE SOURCE SUPER-OPTIONS */
static int parse_line(const char *line, struct group_mount *m)
{
    char type[32], super[512];
    const char *dash = strstr(line, " - ");

    if (dash == NULL || sscanf(dash, " - %31s %*s %511s", type, super) != 2 ||
        sscanf(line, "%*s %*s %*s %255s %255s", m->root, m->point) != 2)
        return -1;
    if (strcmp(type, "cgroup") != 0 && strcmp(type, "cgroup2") != 0)
        return -1;
    m->version = strcmp(type, "cgroup2") == 0 ? 2 : 1;
    m->controllers = m->version == 2 ? 0 : group_controllers_parse(super, ",");
    unescape(m->root);
    unescape(m->point);
    return m->version == 2 || m->controllers != 0 ? 0 : -1;
}

size_t group_mounts_parse(const char *mountinfo, struct group_mount *ret, size_t cap)
{
    size_t n = 0;
    char line[2048];

    while (*mountinfo != '\0' && n < cap) {
        size_t len = strcspn(mountinfo, "\n");
        if (len < sizeof(line)) {
            memcpy(line, mountinfo, len);
            line[len] = '\0';
            n += parse_line(line, &ret[n]) == 0;
        }
        mountinfo += len + (mountinfo[len] == '\n');
    }
    return n;
}

/* ID:CONTROLLERS:PATH; the v2 line has no controllers. */
static const char *self_line(const char *text, const struct group_mount *m, size_t *ret_len)
{
    while (*text != '\0') {
        size_t len = strcspn(text, "\n");
        const char *list = memchr(text, ':', len);
        const char *path =
            list == NULL ? NULL : memchr(list + 1, ':', len - (size_t)(list + 1 - text));
        if (path != NULL) {
            char names[256];
            snprintf(names, sizeof(names), "%.*s", (int)(path - list - 1), list + 1);
            if (m->version == 2 ? names[0] == '\0'
                                : (group_controllers_parse(names, ",") & m->controllers) != 0) {
                *ret_len = len - (size_t)(path + 1 - text);
                return path + 1;
            }
        }
        text += len + (text[len] == '\n');
    }
    return NULL;
}

void group_self_path(const char *self_cgroup, const struct group_mount *m, char *buf, size_t cap)
{
    size_t len = 0, skip = strcmp(m->root, "/") == 0 ? 0 : strlen(m->root);
    const char *path = self_line(self_cgroup, m, &len);

    buf[0] = '\0';
    if (path == NULL || len < skip || strncmp(path, m->root, skip) != 0)
        return;
    path += skip;
    len -= skip;
    if (len > 1 && path[0] == '/')
        snprintf(buf, cap, "%.*s", (int)(len - 1), path + 1);
}
