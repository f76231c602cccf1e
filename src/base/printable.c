/* Text that goes to a terminal or a log line.
 *
 * Owns the one rule of what may be printed as it is. Anything below space, DEL, and U+0080..U+009F
 * (which some terminals take as escape sequences) becomes '?'. Test: error_test.c. */
#include "config.h"

#include "base/printable.h"

#include <string.h>

void cw_printable_clean(char *text)
{
    for (unsigned char *p = (unsigned char *)text; *p != '\0'; p++) {
        if (*p < 0x20 || *p == 0x7f) {
            *p = '?';
        } else if (p[0] == 0xc2 && p[1] >= 0x80 && p[1] <= 0x9f) {
            p[0] = p[1] = '?';
            p++;
        }
    }
}

void cw_printable_ellipsis(char *text)
{
    size_t n = strlen(text);

    if (n < 3)
        return;
    n -= 3;
    while (n > 0 && ((unsigned char)text[n] & 0xc0) == 0x80)
        n--;
    memcpy(text + n, "...", 4);
}
