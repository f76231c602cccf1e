/* Fuzzes job files: parse, complete, check. What is accepted must pass the controller's own check
 * and survive packing. Also the splitter alone: its columns lie inside the line. */
#include "spec/jobfile.h"

#include <stdlib.h>
#include <string.h>

#include "proto/walk.h"
#include "spec/check.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void parse(const void *text, size_t n, bool shell)
{
    static char *const envp[] = {(char *)"PATH=/bin", (char *)"SLURM_JOB_ID=1", NULL};
    struct cw_arena *a = cw_arena_create();
    struct cw_request r;
    struct cw_error err;
    ProtobufCMessage *again;
    cw_autobuf struct cw_buf packed = {0};
    cw_request_init(&r, a);
    r.shell = shell ? "/bin/sh" : NULL;
    if (cw_jobfile_parse(&r, "f", text, n, NULL, &err) == 0 &&
        cw_request_finish(&r, envp, "/w", &err) == 0) {
        if (cw_check_spec(r.spec, r.payload, &err) != 0)
            abort();
        cw_walk_pack(&r.spec->base, &packed);
        int rc =
            cw_walk_unpack(&cw__job_spec__descriptor, packed.data, packed.len, a, &again, &err);
        if (rc != 0)
            abort();
    }
    cw_request_fini(&r);
    cw_arena_destroy(a);
}

static void split(const char *line, size_t n)
{
    cw_autostrv struct cw_strv words = {0};
    size_t *cols = NULL;
    if (memchr(line, '\0', n) != NULL || cw_jobfile_split(line, n, &words, &cols, NULL) != 0)
        return;
    for (size_t i = 0; i < words.n; i++)
        if (cols[i] == 0 || cols[i] > n || (i > 0 && cols[i] <= cols[i - 1]))
            abort();
    free(cols);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    parse(data, size, false);
    parse(data, size, true);
    split((const char *)data, size);
    return 0;
}
