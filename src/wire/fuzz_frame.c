/* The frame decoder, then a server's first steps on what it lets through. A frame that unpacks
 * packs to the same bytes. */
#include "config.h"

#include "wire/channel.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static struct cw_keypair key;
    cw_autobuf struct cw_buf again = {0}, plain = {0};
    struct cw_channel ch;
    struct cw_frame f;

    if (key.pub[0] == 0 && key.pub[1] == 0)
        cw_keypair_make(&key);
    if (cw_frame_unpack(data, size, &f, NULL) < 0)
        return 0;
    cw_frame_pack(&f, &again);
    if (again.len != size || memcmp(again.data, data, size) != 0)
        abort();
    if (cw_channel_respond(&key, f.channel_key, &ch) == 0 && cw_channel_open(&ch, &f, &plain) == 0)
        abort(); /* a forgery */
    return 0;
}
