/* A protobuf-c message as JSON, along its descriptor (rules: walk.h). Never prints a field that the
 * message does not have. Test: walk_test.c. */
#include "proto/walk.h"

#include <ctype.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

static bool ends_with(const char *s, const char *tail)
{
    size_t n = strlen(s), m = strlen(tail);
    return n >= m && strcmp(s + n - m, tail) == 0;
}

/* "CAUSE_" for Cause, "NODE_VERB_" for NodeVerb; value names that do not begin so stay whole. */
static size_t prefix_len(const ProtobufCEnumDescriptor *d, const char *value)
{
    const char *e = d->short_name, *v = value;
    for (; *e != '\0'; e++) {
        if (isupper((unsigned char)*e) && e != d->short_name) {
            if (*v++ != '_')
                return 0;
        }
        if (*v++ != toupper((unsigned char)*e))
            return 0;
    }
    return *v == '_' ? (size_t)(v + 1 - value) : 0;
}

static json_t *enum_json(const ProtobufCEnumDescriptor *d, int value)
{
    char name[64];
    size_t i = 0;
    const ProtobufCEnumValue *v = protobuf_c_enum_descriptor_get_value(d, value);
    if (v == NULL)
        return json_integer(value);
    for (const char *p = v->name + prefix_len(d, v->name); *p != '\0' && i + 1 < sizeof name; p++)
        name[i++] = (char)tolower((unsigned char)*p);
    name[i] = '\0';
    return json_string(name);
}

static json_t *time_json(int64_t ns)
{
    char text[80];
    struct tm tm;
    int64_t ms = ns / 1000000 - (ns % 1000000 < 0);
    int64_t rest = ms % 1000 < 0 ? ms % 1000 + 1000 : ms % 1000;
    time_t s = (time_t)((ms - rest) / 1000);
    gmtime_r(&s, &tm);
    snprintf(text, sizeof text, "%04d-%02d-%02dT%02d:%02d:%02d.%03dZ", tm.tm_year + 1900,
             tm.tm_mon + 1, tm.tm_mday, tm.tm_hour, tm.tm_min, tm.tm_sec, (int)rest);
    return json_string(text);
}

static json_t *u64_json(uint64_t v)
{
    char text[24];
    if (v <= INT64_MAX)
        return json_integer((json_int_t)v);
    if (v == UINT64_MAX)
        return json_string("unlimited");
    snprintf(text, sizeof text, "%" PRIu64, v);
    return json_string(text);
}

/* How many bytes a sequence has that begins so; 0: none begins so. */
static size_t utf8_want(unsigned char first)
{
    if (first < 0x80)
        return 1;
    if (first >= 0xc2 && first < 0xe0)
        return 2;
    if (first >= 0xe0 && first < 0xf0)
        return 3;
    return first >= 0xf0 && first < 0xf5 ? 4 : 0;
}

/* Length of the UTF-8 sequence at p (RFC 3629), 0 when there is none. */
static size_t utf8_len(const unsigned char *p)
{
    size_t n = utf8_want(*p);
    for (size_t i = 1; i < n; i++)
        if ((p[i] & 0xc0) != 0x80)
            return 0;
    if ((*p == 0xe0 && p[1] < 0xa0) || (*p == 0xed && p[1] >= 0xa0) ||
        (*p == 0xf0 && p[1] < 0x90) || (*p == 0xf4 && p[1] >= 0x90))
        return 0;
    return n;
}

static json_t *string_json(const char *s)
{
    cw_autobuf struct cw_buf clean = {0};
    json_t *j = json_string(s);
    if (j != NULL)
        return j;
    for (const unsigned char *p = (const unsigned char *)s; *p != '\0';) {
        size_t n = utf8_len(p);
        if (n == 0)
            cw_buf_add_str(&clean, "\xef\xbf\xbd");
        else
            cw_buf_add(&clean, p, n);
        p += n == 0 ? 1 : n;
    }
    return json_string(cw_buf_str(&clean));
}

static json_t *base64_json(const ProtobufCBinaryData *b)
{
    static const char abc[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    cw_autobuf struct cw_buf out = {0};
    for (size_t i = 0; i < b->len; i += 3) {
        size_t left = b->len - i;
        uint32_t v = (uint32_t)b->data[i] << 16;
        v |= left > 1 ? (uint32_t)b->data[i + 1] << 8 : 0;
        v |= left > 2 ? b->data[i + 2] : 0;
        char four[4] = {abc[v >> 18], abc[v >> 12 & 63], left > 1 ? abc[v >> 6 & 63] : '=',
                        left > 2 ? abc[v & 63] : '='};
        cw_buf_add(&out, four, sizeof four);
    }
    return json_string(cw_buf_str(&out));
}

/* One value of field f stored at p. */
static json_t *value_json(const ProtobufCFieldDescriptor *f, const void *p)
{
    switch (f->type) {
    case PROTOBUF_C_TYPE_INT32:
    case PROTOBUF_C_TYPE_SINT32:
    case PROTOBUF_C_TYPE_SFIXED32:
        return json_integer(*(const int32_t *)p);
    case PROTOBUF_C_TYPE_UINT32:
    case PROTOBUF_C_TYPE_FIXED32:
        return json_integer(*(const uint32_t *)p);
    case PROTOBUF_C_TYPE_INT64:
    case PROTOBUF_C_TYPE_SINT64:
    case PROTOBUF_C_TYPE_SFIXED64:
        if (ends_with(f->name, "_ns"))
            return time_json(*(const int64_t *)p);
        return json_integer(*(const int64_t *)p);
    case PROTOBUF_C_TYPE_UINT64:
    case PROTOBUF_C_TYPE_FIXED64:
        return u64_json(*(const uint64_t *)p);
    case PROTOBUF_C_TYPE_FLOAT:
        return json_real((double)*(const float *)p);
    case PROTOBUF_C_TYPE_DOUBLE:
        return json_real(*(const double *)p);
    case PROTOBUF_C_TYPE_BOOL:
        return json_boolean(*(const protobuf_c_boolean *)p);
    case PROTOBUF_C_TYPE_ENUM:
        return enum_json(f->descriptor, *(const int *)p);
    case PROTOBUF_C_TYPE_STRING:
        return string_json(*(char *const *)p);
    case PROTOBUF_C_TYPE_BYTES:
        return base64_json(p);
    case PROTOBUF_C_TYPE_MESSAGE:
        return cw_walk_json(*(ProtobufCMessage *const *)p);
    }
    return json_null();
}

static size_t value_size(ProtobufCType t)
{
    switch (t) {
    case PROTOBUF_C_TYPE_INT64:
    case PROTOBUF_C_TYPE_SINT64:
    case PROTOBUF_C_TYPE_SFIXED64:
    case PROTOBUF_C_TYPE_UINT64:
    case PROTOBUF_C_TYPE_FIXED64:
    case PROTOBUF_C_TYPE_DOUBLE:
        return 8;
    case PROTOBUF_C_TYPE_STRING:
    case PROTOBUF_C_TYPE_MESSAGE:
        return sizeof(void *);
    case PROTOBUF_C_TYPE_BYTES:
        return sizeof(ProtobufCBinaryData);
    case PROTOBUF_C_TYPE_BOOL:
        return sizeof(protobuf_c_boolean);
    default:
        return 4;
    }
}

static bool is_present(const ProtobufCFieldDescriptor *f, const char *base)
{
    if (f->type == PROTOBUF_C_TYPE_STRING || f->type == PROTOBUF_C_TYPE_MESSAGE)
        return *(void *const *)(base + f->offset) != NULL;
    return f->label == PROTOBUF_C_LABEL_REQUIRED ||
           *(const protobuf_c_boolean *)(base + f->quantifier_offset) != 0;
}

static json_t *list_json(const ProtobufCFieldDescriptor *f, const char *base, size_t n)
{
    const char *items = *(char *const *)(base + f->offset);
    json_t *list = json_array();
    for (size_t i = 0; i < n; i++)
        json_array_append_new(list, value_json(f, items + i * value_size(f->type)));
    return list;
}

json_t *cw_walk_json(const ProtobufCMessage *m)
{
    json_t *o = json_object();
    const char *base = (const char *)m;
    for (unsigned i = 0; i < m->descriptor->n_fields; i++) {
        const ProtobufCFieldDescriptor *f = &m->descriptor->fields[i];
        if (f->label == PROTOBUF_C_LABEL_REPEATED) {
            size_t n = *(const size_t *)(base + f->quantifier_offset);
            if (n > 0)
                json_object_set_new(o, f->name, list_json(f, base, n));
        } else if (is_present(f, base)) {
            json_object_set_new(o, f->name, value_json(f, base + f->offset));
        }
    }
    return o;
}
