/* The list of a job's nodes as a file; see hostfile.h. */
#include "shepherd/hostfile.h"

#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "base/file.h"
#include "spec/jobenv.h"

char *cw_hostfile_path(const struct cw_herd *h, const char *key)
{
    return cw_xasprintf("%s/tasks/%s.hosts", h->node_dir, key);
}

int cw_hostfile_make(struct cw_herd *h, struct cw_task *t, struct cw_error *err)
{
    if (t->start->n_grants < 2 || (!h->reachable && h->root && t->uid != 0))
        return 0;
    cw_autobuf struct cw_buf text = { 0 };
    cw_jobenv_hostfile(t->start, &text);
    t->hostfile = cw_hostfile_path(h, t->key);
    unlink(t->hostfile); /* of an attempt of the same name before a crash */
    cw_autoclose int fd = open(t->hostfile, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW,
                               0400);
    int rc = fd < 0 ? -errno : cw_file_write_all(fd, text.data, text.len);
    if (rc == 0 && h->root && fchown(fd, t->uid, t->gid) < 0)
        rc = -errno;
    return rc < 0 ? cw_fail_node(err, rc, "host file %s: %s", t->hostfile, strerror(-rc)) : 0;
}

void cw_hostfile_drop(struct cw_herd *h, struct cw_task *t)
{
    (void)h;
    if (t->hostfile != NULL)
        unlink(t->hostfile);
    free(t->hostfile);
    t->hostfile = NULL;
}
