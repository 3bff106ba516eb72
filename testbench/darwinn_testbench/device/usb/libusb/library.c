/* The library itself: version, options, the names and texts of errors. */
#include "stand_in.h"

#include <ctype.h>
#include <stdarg.h>

/* Sizes and places that programs were compiled with. */
#if UINTPTR_MAX == UINT64_MAX
_Static_assert(sizeof(struct libusb_transfer) == 64, "transfer");
_Static_assert(offsetof(struct libusb_transfer, iso_packet_desc) == 60, "packets");
_Static_assert(sizeof(struct libusb_device_descriptor) == 18, "device");
_Static_assert(sizeof(struct libusb_config_descriptor) == 40, "configuration");
_Static_assert(sizeof(struct libusb_interface_descriptor) == 40, "interface");
_Static_assert(sizeof(struct libusb_endpoint_descriptor) == 32, "endpoint");
_Static_assert(offsetof(struct libusb_bos_dev_capability_descriptor, dev_capability_data) == 3,
               "capability");
#endif

static const struct {
    int number;
    const char *name, *text;
} ERRORS[] = {
    {SUCCESS, "LIBUSB_SUCCESS", "Success"},
    {ERROR_IO, "LIBUSB_ERROR_IO", "Input/Output Error"},
    {ERROR_INVALID_PARAM, "LIBUSB_ERROR_INVALID_PARAM", "Invalid parameter"},
    {ERROR_ACCESS, "LIBUSB_ERROR_ACCESS", "Access denied (insufficient permissions)"},
    {ERROR_NO_DEVICE, "LIBUSB_ERROR_NO_DEVICE", "No such device (it may have been disconnected)"},
    {ERROR_NOT_FOUND, "LIBUSB_ERROR_NOT_FOUND", "Entity not found"},
    {ERROR_BUSY, "LIBUSB_ERROR_BUSY", "Resource busy"},
    {ERROR_TIMEOUT, "LIBUSB_ERROR_TIMEOUT", "Operation timed out"},
    {ERROR_OVERFLOW, "LIBUSB_ERROR_OVERFLOW", "Overflow"},
    {ERROR_PIPE, "LIBUSB_ERROR_PIPE", "Pipe error"},
    {ERROR_INTERRUPTED, "LIBUSB_ERROR_INTERRUPTED",
     "System call interrupted (perhaps due to signal)"},
    {ERROR_NO_MEM, "LIBUSB_ERROR_NO_MEM", "Insufficient memory"},
    {ERROR_NOT_SUPPORTED, "LIBUSB_ERROR_NOT_SUPPORTED",
     "Operation not supported or unimplemented on this platform"},
    {ERROR_OTHER, "LIBUSB_ERROR_OTHER", "Other error"},
};
#define ERROR_COUNT (sizeof ERRORS / sizeof *ERRORS)

EXPORT const char *libusb_error_name(int number) {
    for (size_t at = 0; at < ERROR_COUNT; at++)
        if (ERRORS[at].number == number) return ERRORS[at].name;
    return "**UNKNOWN**";
}

EXPORT const char *libusb_strerror(int number) {
    for (size_t at = 0; at < ERROR_COUNT; at++)
        if (ERRORS[at].number == number) return ERRORS[at].text;
    return "Other error";
}

EXPORT const struct libusb_version *libusb_get_version(void) {
    static const struct libusb_version version = {
        1, 0, 26, 11724, "", "darwinn-testbench: a simulated chip in place of libusb"};
    return &version;
}

EXPORT int libusb_has_capability(uint32_t capability) {
    enum { HAS_CAPABILITY = 0, HAS_HOTPLUG = 1, SUPPORTS_DETACH = 0x101 };
    return capability == HAS_CAPABILITY || capability == HAS_HOTPLUG ||
           capability == SUPPORTS_DETACH;
}

/* Messages are in English. */
EXPORT int libusb_setlocale(const char *locale) {
    if (!locale || strlen(locale) < 2 ||
        (locale[2] && !strchr("-_.", locale[2]))) return ERROR_INVALID_PARAM;
    bool is_english = tolower((unsigned char)locale[0]) == 'e' &&
                      tolower((unsigned char)locale[1]) == 'n';
    return is_english ? SUCCESS : ERROR_NOT_FOUND;
}

EXPORT int libusb_set_option(libusb_context *context, int option, ...) {
    enum { LOG_LEVEL, USE_USBDK, NO_DEVICE_DISCOVERY };
    (void)context;
    if (option == LOG_LEVEL) {
        va_list arguments;
        va_start(arguments, option);
        int level = va_arg(arguments, int);
        va_end(arguments);
        return level >= 0 && level <= 4 ? SUCCESS : ERROR_INVALID_PARAM;
    }
    if (option == NO_DEVICE_DISCOVERY) return SUCCESS;
    return option == USE_USBDK ? ERROR_NOT_SUPPORTED : ERROR_INVALID_PARAM;
}

/* Nothing is logged here: `darwinn device --log` shows what passes. */
EXPORT void libusb_set_debug(libusb_context *context, int level) { (void)context, (void)level; }

EXPORT void libusb_set_log_cb(libusb_context *context, libusb_log_cb callback, int mode) {
    (void)context, (void)callback, (void)mode;
}
