#pragma once
/* $CRUN_READY_FD: a descriptor on which whoever started us waits for the line "ready", written when
 * the controller has welcomed us for the first time. Loop thread. Test: every testsuite/t*.t that
 * starts a node. */
void cw_readyfd_init(
    void); /* takes the variable out of the environment, so that no child inherits it */
void cw_readyfd_tell(void); /* the first call only */
