/* Copies fields by the descriptors of the messages, so that a row of the table is all that a new
 * field needs. See specfield.h. */
#include "spec/specfield.h"

#include <ctype.h>
#include <string.h>
#include <strings.h>

static const struct cw_specfield fields[] = {
    {"name", true},
    {"comment", true},
    {"nice", true},
    {"priority", true},
    {"time_limit_s", true},
    {"time_est_s", true},
    {"deadline_ns", true},
    {"array.throttle", true},
    {"no_requeue", true},
    {"retries", true},
    {"retry_on", true},
    {"retry_delay_s", true},
    {"partition", false},
    {"account", false},
    {"ntasks", false},
    {"nodes_min", false},
    {"nodes_max", false},
    {"ntasks_per_node", false},
    {"exclusive", false},
    {"nodelist", false},
    {"exclude", false},
    {"constraint", false},
    {"prefer", false},
    {"begin_ns", false},
    {"dependencies", false},
    {"dependency_rule", false},
    {"keep_on_invalid_dep", false},
    {"settings.cpus_per_task", false},
    {"settings.mem_bytes", false},
    {"settings.mem_per_cpu_bytes", false},
    {"settings.mem_per_gpu_bytes", false},
    {"settings.gpus", false},
    {"settings.gpus_per_node", false},
    {"settings.gpus_per_task", false},
    {"settings.gpu_type", false},
};

const struct cw_specfield *cw_specfield_find(const char *name)
{
    for (size_t i = 0; i < CW_ARRAY_LEN(fields); i++)
        if (strcmp(fields[i].name, name) == 0)
            return &fields[i];
    return NULL;
}

/* The member and its quantifier (has_x, n_x) in one message into another of the same kind. */
static void copy_member(const ProtobufCMessage *from, ProtobufCMessage *to, const char *name)
{
    const ProtobufCFieldDescriptor *f =
        protobuf_c_message_descriptor_get_field_by_name(from->descriptor, name);
    bool pointer = f->label == PROTOBUF_C_LABEL_REPEATED || f->type == PROTOBUF_C_TYPE_STRING;
    size_t n = pointer ? sizeof(void *) : f->type == PROTOBUF_C_TYPE_UINT64 ||
                                                  f->type == PROTOBUF_C_TYPE_INT64
                                              ? sizeof(uint64_t)
                                          : f->type == PROTOBUF_C_TYPE_BOOL ? sizeof(protobuf_c_boolean)
                                                                            : sizeof(uint32_t);
    memcpy((char *)to + f->offset, (const char *)from + f->offset, n);
    if (f->label == PROTOBUF_C_LABEL_REPEATED)
        memcpy((char *)to + f->quantifier_offset, (const char *)from + f->quantifier_offset,
               sizeof(size_t));
    else if (f->type != PROTOBUF_C_TYPE_STRING)
        memcpy((char *)to + f->quantifier_offset, (const char *)from + f->quantifier_offset,
               sizeof(protobuf_c_boolean));
}

int cw_specfield_copy(const char *name, const Cw__JobSpec *from, Cw__JobSpec *to, struct cw_arena *a,
                      struct cw_error *err)
{
    static const Cw__Settings no_settings = CW__SETTINGS__INIT;
    static const Cw__ArraySpec no_array = CW__ARRAY_SPEC__INIT;
    if (strncmp(name, "settings.", 9) == 0) {
        if (to->settings == NULL) {
            to->settings = cw_arena_alloc(a, sizeof *to->settings);
            cw__settings__init(to->settings);
        }
        copy_member(from->settings != NULL ? &from->settings->base : &no_settings.base,
                    &to->settings->base, name + 9);
    } else if (strncmp(name, "array.", 6) == 0) {
        if (to->array == NULL)
            return cw_fail(err, -EINVAL, "%s: it is not an array", name + 6);
        copy_member(from->array != NULL ? &from->array->base : &no_array.base, &to->array->base,
                    name + 6);
    } else {
        copy_member(&from->base, &to->base, name);
    }
    return 0;
}

/* ---- what people write ----------------------------------------------------------------------- */

#define FIELDS(...) (const char *const[]) { __VA_ARGS__, NULL }
#define MEM FIELDS("settings.mem_bytes", "settings.mem_per_cpu_bytes", "settings.mem_per_gpu_bytes")
#define GPUS \
    FIELDS("settings.gpus", "settings.gpus_per_node", "settings.gpus_per_task", "settings.gpu_type")

static const struct key {
    const char *option, *slurm; /* slurm NULL: the same word */
    const char *const *fields;
} keys[] = {
    {"job-name", "JobName", FIELDS("name")},
    {"job-name", "Name", FIELDS("name")},
    {"comment", NULL, FIELDS("comment")},
    {"nice", NULL, FIELDS("nice")},
    {"priority", NULL, FIELDS("priority")},
    {"time", "TimeLimit", FIELDS("time_limit_s")},
    {"time-est", NULL, FIELDS("time_est_s")},
    {"deadline", NULL, FIELDS("deadline_ns")},
    {"begin", "StartTime", FIELDS("begin_ns")},
    {"throttle", "ArrayTaskThrottle", FIELDS("array.throttle")},
    {"retries", NULL, FIELDS("retries")},
    {"retry-on", NULL, FIELDS("retry_on")},
    {"retry-delay", NULL, FIELDS("retry_delay_s")},
    {"partition", NULL, FIELDS("partition")},
    {"account", NULL, FIELDS("account")},
    {"ntasks", "NumTasks", FIELDS("ntasks")},
    {"nodes", "NumNodes", FIELDS("nodes_min", "nodes_max")},
    {"ntasks-per-node", "TasksPerNode", FIELDS("ntasks_per_node")},
    {"cpus-per-task", "CpusPerTask", FIELDS("settings.cpus_per_task")},
    {"nodelist", "ReqNodeList", FIELDS("nodelist")},
    {"exclude", "ExcNodeList", FIELDS("exclude")},
    {"constraint", "Features", FIELDS("constraint")},
    {"prefer", NULL, FIELDS("prefer")},
    {"dependency", NULL, FIELDS("dependencies", "dependency_rule")},
    {"kill-on-invalid-dep", NULL, FIELDS("keep_on_invalid_dep")},
    {"mem", "MinMemoryNode", MEM},
    {"mem-per-cpu", "MinMemoryCPU", MEM},
    {"mem-per-gpu", NULL, MEM},
    {"gpus", NULL, GPUS},
    {"gpus-per-node", NULL, GPUS},
    {"gpus-per-task", NULL, GPUS},
    {"gres", NULL, GPUS},
};

/* Case and - _ do not count. */
static bool same_word(const char *a, const char *b)
{
    for (; *a != '\0' && *b != '\0'; a++, b++) {
        int x = *a == '_' ? '-' : tolower((unsigned char)*a);
        int y = *b == '_' ? '-' : tolower((unsigned char)*b);
        if (x != y)
            return false;
    }
    return *a == *b;
}

bool cw_specfield_key(const char *key, const char **ret_option, const char *const **ret_fields)
{
    for (size_t i = 0; i < CW_ARRAY_LEN(keys); i++) {
        if (!same_word(key, keys[i].option) &&
            (keys[i].slurm == NULL || !same_word(key, keys[i].slurm)))
            continue;
        *ret_option = strcmp(keys[i].option, "throttle") == 0 ? NULL : keys[i].option;
        *ret_fields = keys[i].fields;
        return true;
    }
    return false;
}
