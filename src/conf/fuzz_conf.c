/* Any text gives a whole configuration or one line of error; what libconfuse says never gets
 * through. */
#include "config.h"

#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "conf/conf.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    cw_autofree char *text = cw_xstrndup((const char *)data, size);
    cw_autobuf struct cw_buf b = { 0 };
    struct cw_conf *c = NULL;
    struct cw_error err = { 0 };

    /* Reading files by chance would only slow the search down. */
    if (strstr(text, "include") != NULL)
        return 0;
    int rc = cw_conf_load_text("fuzz", text, &c, &err);
    if (rc < 0) {
        /* -EAGAIN: the scanner and libconfuse read different values. */
        if (strncmp(err.text, "fuzz:", 5) != 0 || c != NULL || rc == -EAGAIN)
            abort();
        return 0;
    }
    cw_conf_dump(c, &b);
    if (b.len == 0 || cw_conf_partition_find(c, NULL) == NULL)
        abort();
    cw_conf_destroy(c);
    return 0;
}
