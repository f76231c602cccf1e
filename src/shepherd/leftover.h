#pragma once
/* Describes what would not die, for people: "pid 77 (cat) in state D". Test: shepherd_test.c. */
#include <stddef.h>
#include <sys/types.h>

/* A process of the leader's session, or a child of ours, else only the number n. */
void cw_leftover_describe(pid_t leader, int n, char *buf, size_t cap);
