/* The device: finding it, opening it, claiming its interface. */
#include "stand_in.h"

#define CONFIGURATION_ROOM 1024

EXPORT libusb_device *libusb_ref_device(libusb_device *device) {
    pthread_mutex_lock(&big);
    device->references++;
    pthread_mutex_unlock(&big);
    return device;
}

EXPORT void libusb_unref_device(libusb_device *device) {
    if (!device) return;
    pthread_mutex_lock(&big);
    bool is_last = !--device->references;
    pthread_mutex_unlock(&big);
    if (!is_last) return;
    free(device->configuration);
    free(device);
}

static libusb_device *make_device(libusb_context *context, const struct device_reply *reply,
                                  size_t size) {
    libusb_device *device = calloc(1, sizeof *device);
    if (!device || !(device->configuration = malloc(size ? size : 1))) {
        free(device);
        return NULL;
    }
    device->references = 1;
    device->context = context;
    device->bus = reply->bus;
    device->port = reply->port;
    device->address = reply->address;
    device->speed = reply->speed;
    memcpy(&device->descriptor, reply->device, sizeof reply->device);
    memcpy(device->configuration, reply + 1, size);
    device->configuration_size = size;
    return device;
}

/* A device that is plugged in, with a reference for the caller; NULL if there are not so many.
   `count`: how many there are. */
libusb_device *find_device(libusb_context *context, unsigned number, unsigned *count) {
    union {
        struct device_reply reply;
        unsigned char room[sizeof(struct device_reply) + CONFIGURATION_ROOM];
    } answer;
    size_t came;
    int status = call(OPERATION_DEVICE, number, &answer, sizeof answer, &came);
    libusb_device *made = NULL;
    *count = 0;
    if (!status && came > sizeof answer.reply) {
        made = make_device(context, &answer.reply, came - sizeof answer.reply);
        *count = answer.reply.count < MAX_DEVICES ? answer.reply.count : MAX_DEVICES;
    }
    pthread_mutex_lock(&big);
    libusb_device *known = context->known[number];
    if (known && made && known->address == made->address) {
        known->references++;
        pthread_mutex_unlock(&big);
        libusb_unref_device(made);
        return known;
    }
    context->known[number] = made;
    if (made) made->references++;
    pthread_mutex_unlock(&big);
    libusb_unref_device(known);
    return made;
}

EXPORT ssize_t libusb_get_device_list(libusb_context *context, libusb_device ***list) {
    context = context_of(context);
    if (!context) return ERROR_INVALID_PARAM;
    libusb_device **made = calloc(MAX_DEVICES + 1, sizeof *made);
    if (!made) return ERROR_NO_MEM;
    ssize_t found = 0;
    for (unsigned number = 0, count = 1; number < count; number++) {
        libusb_device *device = find_device(context, number, &count);
        if (device) made[found++] = device;
    }
    *list = made;
    return found;
}

EXPORT void libusb_free_device_list(libusb_device **list, int unreference) {
    if (!list) return;
    for (libusb_device **at = list; unreference && *at; at++) libusb_unref_device(*at);
    free(list);
}

EXPORT uint8_t libusb_get_bus_number(libusb_device *device) { return device->bus; }
EXPORT uint8_t libusb_get_port_number(libusb_device *device) { return device->port; }
EXPORT uint8_t libusb_get_device_address(libusb_device *device) { return device->address; }
EXPORT int libusb_get_device_speed(libusb_device *device) { return device->speed; }

/* It hangs at no hub that can be opened. */
EXPORT libusb_device *libusb_get_parent(libusb_device *device) {
    (void)device;
    return NULL;
}

EXPORT int libusb_get_port_numbers(libusb_device *device, uint8_t *ports, int room) {
    if (room <= 0) return ERROR_INVALID_PARAM;
    ports[0] = device->port;
    return 1;
}

EXPORT int libusb_get_port_path(libusb_context *context, libusb_device *device, uint8_t *path,
                                uint8_t room) {
    (void)context;
    return libusb_get_port_numbers(device, path, room);
}

EXPORT int libusb_open(libusb_device *device, libusb_device_handle **handle) {
    libusb_device_handle *made = calloc(1, sizeof *made);
    if (!made) return ERROR_NO_MEM;
    int status = call(OPERATION_OPEN, ON(device->address, 0), NULL, 0, NULL);
    if (status) {
        free(made);
        return status;
    }
    made->device = libusb_ref_device(device);
    *handle = made;
    return SUCCESS;
}

EXPORT libusb_device_handle *libusb_open_device_with_vid_pid(libusb_context *context,
                                                             uint16_t vendor, uint16_t product) {
    libusb_device_handle *handle = NULL;
    libusb_device **list, **at;
    if (libusb_get_device_list(context, &list) < 0) return NULL;
    for (at = list; *at; at++)
        if ((*at)->descriptor.idVendor == vendor && (*at)->descriptor.idProduct == product) break;
    if (*at && libusb_open(*at, &handle)) handle = NULL;
    libusb_free_device_list(list, 1);
    return handle;
}

EXPORT int libusb_wrap_sys_device(libusb_context *context, intptr_t system,
                                  libusb_device_handle **handle) {
    (void)context, (void)system, (void)handle;
    return ERROR_NOT_SUPPORTED;
}

EXPORT void libusb_close(libusb_device_handle *handle) {
    if (!handle) return;
    libusb_device *device = handle->device;
    pthread_mutex_lock(&big);
    device->claimed &= ~handle->claimed;
    pthread_mutex_unlock(&big);
    call(OPERATION_CLOSE, ON(device->address, 0), NULL, 0, NULL);
    wake(device->context);
    libusb_unref_device(device);
    free(handle);
}

EXPORT libusb_device *libusb_get_device(libusb_device_handle *handle) { return handle->device; }

/* As documented: "not found" says that the reset has made another device of it. */
EXPORT int libusb_reset_device(libusb_device_handle *handle) {
    return call(OPERATION_RESET, ON(handle->device->address, 0), NULL, 0, NULL);
}

EXPORT int libusb_claim_interface(libusb_device_handle *handle, int interface) {
    if (interface < 0 || interface >= 32) return ERROR_INVALID_PARAM;
    if (interface) return ERROR_NOT_FOUND;
    uint32_t bit = UINT32_C(1) << interface;
    pthread_mutex_lock(&big);
    bool is_free = !(handle->device->claimed & ~handle->claimed & bit);
    if (is_free) {
        handle->claimed |= bit;
        handle->device->claimed |= bit;
    }
    pthread_mutex_unlock(&big);
    return is_free ? SUCCESS : ERROR_BUSY;
}

EXPORT int libusb_release_interface(libusb_device_handle *handle, int interface) {
    if (interface < 0 || interface >= 32) return ERROR_INVALID_PARAM;
    uint32_t bit = UINT32_C(1) << interface;
    pthread_mutex_lock(&big);
    bool is_claimed = handle->claimed & bit;
    handle->claimed &= ~bit;
    if (is_claimed) handle->device->claimed &= ~bit;
    pthread_mutex_unlock(&big);
    return is_claimed ? SUCCESS : ERROR_NOT_FOUND;
}

static int not_there(int status) { return status == ERROR_PIPE ? ERROR_NOT_FOUND : status; }

EXPORT int libusb_get_configuration(libusb_device_handle *handle, int *configuration) {
    unsigned char value = 0;
    int status = request(handle, TO_HOST, 8, 0, 0, &value, 1);
    if (status < 0) return status;
    *configuration = value;
    return SUCCESS;
}

EXPORT int libusb_set_configuration(libusb_device_handle *handle, int configuration) {
    if (configuration < -1 || configuration > 255) return ERROR_INVALID_PARAM;
    if (handle->device->claimed) return ERROR_BUSY;
    uint16_t value = configuration < 0 ? 0 : (uint16_t)configuration;
    return not_there(request(handle, 0, 9, value, 0, NULL, 0));
}

EXPORT int libusb_set_interface_alt_setting(libusb_device_handle *handle, int interface,
                                            int setting) {
    if (interface < 0 || interface >= 32 || setting < 0 || setting > 255)
        return ERROR_INVALID_PARAM;
    if (!(handle->claimed >> interface & 1)) return ERROR_NOT_FOUND;
    return not_there(request(handle, 1, 11, (uint16_t)setting, (uint16_t)interface, NULL, 0));
}

EXPORT int libusb_clear_halt(libusb_device_handle *handle, unsigned char endpoint) {
    return not_there(request(handle, 2, 1, 0, endpoint, NULL, 0));
}

/* No kernel has a driver for it. */
EXPORT int libusb_kernel_driver_active(libusb_device_handle *handle, int interface) {
    (void)handle, (void)interface;
    return 0;
}

EXPORT int libusb_detach_kernel_driver(libusb_device_handle *handle, int interface) {
    (void)handle, (void)interface;
    return ERROR_NOT_FOUND;
}

EXPORT int libusb_attach_kernel_driver(libusb_device_handle *handle, int interface) {
    (void)handle, (void)interface;
    return ERROR_NOT_FOUND;
}

EXPORT int libusb_set_auto_detach_kernel_driver(libusb_device_handle *handle, int enable) {
    (void)handle, (void)enable;
    return SUCCESS;
}

EXPORT int libusb_alloc_streams(libusb_device_handle *handle, uint32_t streams,
                                unsigned char *endpoints, int count) {
    (void)handle, (void)streams, (void)endpoints, (void)count;
    return ERROR_NOT_SUPPORTED;
}

EXPORT int libusb_free_streams(libusb_device_handle *handle, unsigned char *endpoints, int count) {
    (void)handle, (void)endpoints, (void)count;
    return ERROR_NOT_SUPPORTED;
}

/* Memory that is shared with the device: any memory is. */
EXPORT unsigned char *libusb_dev_mem_alloc(libusb_device_handle *handle, size_t size) {
    (void)handle;
    return malloc(size);
}

EXPORT int libusb_dev_mem_free(libusb_device_handle *handle, unsigned char *memory, size_t size) {
    (void)handle, (void)size;
    free(memory);
    return SUCCESS;
}
