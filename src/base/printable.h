#pragma once
/* Text that goes to a terminal or a log line: made harmless in place. Test: error_test.c. */

/* Replaces control characters (C0, DEL, and C1 in UTF-8) by '?'; the length is unchanged. */
void cw_printable_clean(char *text);
/* Cuts text, whose buffer is full, to end in "..." without splitting a UTF-8 character. */
void cw_printable_ellipsis(char *text);
