/* The chips of an application, as the interfaces of the vendor's library list them (delegate.c). */
#ifndef DARWINN_DEVICES_H
#define DARWINN_DEVICES_H

#include <stddef.h>

#include "chip_process.h" /* DEVICE_PREFIX, MAX_CHIPS */

enum { DEVICE_PATH_BYTES = sizeof DEVICE_PREFIX + 2 };

size_t chip_count(void);
void device_path(char path[DEVICE_PATH_BYTES], size_t number);
const char* edgetpu_version(void);

#endif
