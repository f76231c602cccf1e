#pragma once
/* May this file be loaded into our process? Owns the rule about who could have written it.
 * Test: plug_test.c. */
#include "base/error.h"

/* Resolves file and walks every component of the result from "/" down: each belongs to root or to
 * the effective user and nobody else may write it. Two exceptions: a sticky directory (others
 * cannot rename our entries in it), and, when not root, our own things that only the group with our
 * own number may write (a user's private group). ret_real: the resolved path, heap; open this one.
 */
int cw_plug_trust_check(const char *file, char **ret_real, struct cw_error *err);
