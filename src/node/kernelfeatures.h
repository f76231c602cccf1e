#pragma once
/* What this kernel can do, probed once at start, as words that jobs may ask for: "cgroup:v1" (or
 * v2, hybrid), "userns", "netns", "overlay", "erofs", "idmap", "landlock:7". Test:
 * inventory_test.c. */
#include "base/buf.h"

void cw_kernelfeatures(struct cw_strv *ret);
