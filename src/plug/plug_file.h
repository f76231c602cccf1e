#pragma once
/* From FAMILY and NAME to a checked descriptor in our address space. Loop thread only (libltdl).
 * Test: plug_test.c. */
#include <crunwlm/plugin.h>

#include "base/error.h"

/* FAMILY-NAME.so in the first directory of path (colon-separated) that has it; DIR/.libs is tried
 * after DIR, so that a build tree works. -ENOENT names the path. ret_file: heap. */
int cw_plug_file_find(const char *path, const char *family, const char *name, char **ret_file,
                      struct cw_error *err);
/* Trust, pre-flight, load, descriptor. The object stays in the process for ever, also after an
 * error. */
int cw_plug_file_open(const char *file, const struct cw_plugin **ret, struct cw_error *err);
/* Magic, ABI, sizes, option table, required members of the family; family and name as wanted. */
int cw_plug_file_check(const struct cw_plugin *d, const char *family, const char *name,
                       struct cw_error *err);
/* How many leading members of the family's ops table a plugin must fill; 0: no such family. */
unsigned cw_plug_file_required(const char *family);
