#pragma once
/* The directory of one store test: made below the current one, removed with all in it. */
#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>

static char dir[64];

static int remove_entry(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
    (void)st, (void)type, (void)ftw;
    return remove(path);
}

static int make_dir(void)
{
    snprintf(dir, sizeof(dir), "store-XXXXXX");
    return mkdtemp(dir) == NULL ? -1 : 0;
}

static int remove_dir(void)
{
    return nftw(dir, remove_entry, 16, FTW_DEPTH | FTW_PHYS);
}
