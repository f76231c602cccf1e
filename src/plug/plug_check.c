/* `crun-plugin check FILE`: what a file claims, what it exports, whether the host would take it.
 * Reads the object's dynamic symbols itself: a plugin must show one name only, cw_plugin. */
#include <elf.h>
#include <link.h>
#include <string.h>

#include "base/file.h"
#include "base/mem.h"
#include "plug/plug.h"
#include "plug/plug_file.h"

#define OBJECT_MAX_BYTES (256u << 20)

struct object {
    const char *data;
    size_t len;
};

static const void *at(const struct object *o, uint64_t offset, uint64_t bytes)
{
    return offset <= o->len && bytes <= o->len - offset ? o->data + offset : NULL;
}

static const ElfW(Shdr) * section(const struct object *o, const ElfW(Ehdr) * head, uint64_t i)
{
    if (i >= head->e_shnum || head->e_shentsize != sizeof(ElfW(Shdr)))
        return NULL;
    return at(o, head->e_shoff + i * sizeof(ElfW(Shdr)), sizeof(ElfW(Shdr)));
}

static const char *symbol_name(const struct object *o, const ElfW(Shdr) * strings, uint64_t offset)
{
    const char *name;

    if (strings == NULL || offset >= strings->sh_size ||
        at(o, strings->sh_offset, strings->sh_size) == NULL)
        return NULL;
    name = o->data + strings->sh_offset + offset;
    return memchr(name, '\0', strings->sh_size - offset) != NULL ? name : NULL;
}

static bool is_exported(const ElfW(Sym) * s)
{
    unsigned bind = s->st_info >> 4, visibility = s->st_other & 3u;

    return s->st_shndx != SHN_UNDEF && (bind == STB_GLOBAL || bind == STB_WEAK) &&
           visibility == STV_DEFAULT;
}

static void list_symbols(const struct object *o, const ElfW(Shdr) * symbols,
                         const ElfW(Shdr) * strings, struct cw_strv *out)
{
    for (uint64_t i = 0; i < symbols->sh_size / sizeof(ElfW(Sym)); i++) {
        const ElfW(Sym) *s = at(o, symbols->sh_offset + i * sizeof(*s), sizeof(*s));
        const char *name = s != NULL && is_exported(s) ? symbol_name(o, strings, s->st_name) : NULL;
        if (name != NULL)
            cw_strv_add(out, name);
    }
}

static int exported_symbols(const char *file, struct cw_strv *out, struct cw_error *err)
{
    cw_autobuf struct cw_buf bytes = {0};
    struct object o;
    const ElfW(Ehdr) * head;
    int r = cw_file_read(file, OBJECT_MAX_BYTES, &bytes, err);

    if (r < 0)
        return r;
    o = (struct object){.data = bytes.data, .len = bytes.len};
    head = at(&o, 0, sizeof(*head));
    if (head == NULL || memcmp(head->e_ident, ELFMAG, SELFMAG) != 0)
        return cw_fail(err, -ENOEXEC, "%s: not an ELF object", file);
    for (uint64_t i = 0; i < head->e_shnum; i++) {
        const ElfW(Shdr) *s = section(&o, head, i);
        if (s != NULL && s->sh_type == SHT_DYNSYM)
            list_symbols(&o, s, section(&o, head, s->sh_link), out);
    }
    return 0;
}

/* Family and name as the file's name says them: DIR/FAMILY-NAME.so. */
static int split_file_name(const char *file, char **ret_family, char **ret_name,
                           struct cw_error *err)
{
    const char *slash = strrchr(file, '/'), *base = slash != NULL ? slash + 1 : file;
    const char *dash = strchr(base, '-'), *dot = strrchr(base, '.');

    if (dash == NULL || dash == base || dot == NULL || dot <= dash + 1 || strcmp(dot, ".so") != 0)
        return cw_fail(err, -EINVAL, "%s: a plugin's file is named FAMILY-NAME.so", file);
    *ret_family = cw_xstrndup(base, (size_t)(dash - base));
    *ret_name = cw_xstrndup(dash + 1, (size_t)(dot - dash - 1));
    return 0;
}

static void report(const struct cw_plugin *d, const char *file, const struct cw_strv *symbols,
                   struct cw_buf *out)
{
    cw_buf_addf(out, "file: %s\nplugin: %s/%s\nversion: %s\ninterface: %u.%u\n", file, d->family,
                d->name, d->version, d->abi_major, d->abi_minor);
    cw_buf_addf(out, "ops: %u bytes\ncaps: 0x%llx\n", (unsigned)d->ops_size,
                (unsigned long long)d->caps);
    for (const struct cw_option *row = d->options; row != NULL && row->name != NULL; row++)
        cw_buf_addf(out, "option: %s%s%s: %s\n", row->name, row->default_value != NULL ? " = " : "",
                    row->default_value != NULL ? row->default_value : "",
                    row->help != NULL ? row->help : "");
    for (size_t i = 0; i < symbols->n; i++)
        cw_buf_addf(out, "exports: %s\n", symbols->v[i]);
}

int cw_plug_check(const char *file, struct cw_buf *out, struct cw_error *err)
{
    cw_autofree char *family = NULL, *name = NULL;
    cw_autostrv struct cw_strv symbols = {0};
    const struct cw_plugin *d;
    int r = split_file_name(file, &family, &name, err);

    if (r == 0)
        r = cw_plug_file_open(file, &d, err);
    if (r < 0)
        return r;
    if (cw_plug_file_required(family) == 0)
        return cw_fail(err, -EINVAL, "%s: unknown family '%s'", file, family);
    if (cw_plug_file_check(d, family, name, err) < 0)
        return cw_wrap(err, -ENOEXEC, "%s", file);
    r = exported_symbols(file, &symbols, err);
    if (r < 0)
        return r;
    report(d, file, &symbols, out);
    if (symbols.n != 1)
        return cw_fail(err, -ENOEXEC, "%s: exports %zu symbols, a plugin exports cw_plugin only",
                       file, symbols.n);
    return 0;
}
