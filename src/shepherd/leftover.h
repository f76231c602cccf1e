#pragma once
/* Finds processes by their session: describes what would not die, for people: "pid 77 (cat) in state D". Test: shepherd_test.c. */
#include <stddef.h>
#include <sys/types.h>

/* A process of the leader's session, or a child of ours, else only the number n. */
/* SIGKILL to every process of a session; its leader must not be reaped yet. */
void cw_leftover_kill_session(pid_t leader);
void cw_leftover_describe(pid_t leader, int n, char *buf, size_t cap);
