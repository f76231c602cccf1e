#pragma once
/* Output of many tasks on our own standard output and error: whole lines of one task stay together,
 * with the task's number in front where wanted. What does not end with a newline waits for it a
 * moment only. One task goes straight through. Test: stepout_test.c. */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"

#define CW_STEPOUT_HOLD_MS 50

struct cw_stepout;
/* write: everything or a negative errno, once and for all. */
typedef int (*cw_stepout_fn)(bool err, const void *p, size_t n, void *arg);
struct cw_stepout *cw_stepout_create(uint32_t ntasks, bool label, bool straight,
                                     cw_stepout_fn write, void *arg);
void cw_stepout_destroy(struct cw_stepout *o); /* NULL allowed */
int cw_stepout_add(struct cw_stepout *o, uint32_t rank, bool err, const void *p, size_t n);
/* Of this rank, or (UINT32_MAX) of all: what waits for its newline goes. */
int cw_stepout_flush(struct cw_stepout *o, uint32_t rank);
bool cw_stepout_holds(const struct cw_stepout *o); /* something waits */
