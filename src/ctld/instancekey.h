#pragma once
/* The keys of an instance, made at the first start: the cluster key (32 random bytes, 0600, conf
 * key_file) and the controller's key pair (state_dir/controller.key, public part in conf
 * public_key_file). */
#include "base/error.h"
#include "ctld/ctld.h"

/* Fills cluster_key and key of c. The state directory is ours already (its lock is held). */
int cw_instancekey_load(struct cw_ctld *c, struct cw_error *err);
