#pragma once
/* Intrusive doubly linked list; head and items are the same struct. Test: list_test.c. */
#include <stdbool.h>
#include <stddef.h>

struct cw_list {
    struct cw_list *prev, *next;
};
static inline void cw_list_init(struct cw_list *l) { l->prev = l->next = l; }
static inline bool cw_list_empty(const struct cw_list *l) { return l->next == l; }
static inline void cw_list_add_tail(struct cw_list *head, struct cw_list *item)
{
    item->prev = head->prev;
    item->next = head;
    head->prev->next = item;
    head->prev = item;
}
/* Safe on an item that is zeroed or already removed. */
static inline void cw_list_remove(struct cw_list *item)
{
    if (item->next == NULL)
        return;
    item->prev->next = item->next;
    item->next->prev = item->prev;
    item->prev = item->next = NULL;
}
#define cw_list_entry(ptr, type, member) ((type *)((char *)(ptr)-offsetof(type, member)))
#define cw_list_each(pos, head) for (struct cw_list *pos = (head)->next; pos != (head); pos = pos->next)
#define cw_list_each_safe(pos, head) \
    for (struct cw_list *pos = (head)->next, *pos##_n = pos->next; pos != (head); pos = pos##_n, pos##_n = pos->next)
