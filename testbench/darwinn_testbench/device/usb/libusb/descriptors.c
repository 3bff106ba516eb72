/* Descriptors as structures, from the bytes that the device gives. */
#include "stand_in.h"

#define BOS_ROOM 255

EXPORT int libusb_get_device_descriptor(libusb_device *device,
                                        struct libusb_device_descriptor *descriptor) {
    *descriptor = device->descriptor;
    return SUCCESS;
}

static uint16_t word(const uint8_t *at) { return (uint16_t)(at[0] | at[1] << 8); }

/* The descriptor at `at` if all of it is before `end`, else NULL. */
const uint8_t *next_descriptor(const uint8_t *at, const uint8_t *end) {
    return end - at >= 2 && at[0] >= 2 && at[0] <= end - at ? at : NULL;
}

/* Where what stands behind a descriptor, and belongs to it, ends. */
static const uint8_t *end_of_extra(const uint8_t *at, const uint8_t *end) {
    while (next_descriptor(at, end) && at[1] != DT_INTERFACE && at[1] != DT_ENDPOINT) at += at[0];
    return at;
}

/* The one configuration, in one piece of memory: structures, then the bytes they point into. */
struct parsed {
    struct libusb_config_descriptor configuration;
    struct libusb_interface interface;
    struct libusb_interface_descriptor setting;
    struct libusb_endpoint_descriptor endpoints[32];
    uint8_t bytes[];
};

static const uint8_t *parse_endpoint(struct libusb_endpoint_descriptor *endpoint,
                                     const uint8_t *at, const uint8_t *end) {
    const uint8_t *extra = at + at[0], *after = end_of_extra(extra, end);
    *endpoint = (struct libusb_endpoint_descriptor){
        .bLength = at[0],
        .bDescriptorType = at[1],
        .bEndpointAddress = at[2],
        .bmAttributes = at[3],
        .wMaxPacketSize = word(at + 4),
        .bInterval = at[6],
        .extra = extra,
        .extra_length = (int)(after - extra),
    };
    return after;
}

static void parse_interface(struct parsed *parsed, const uint8_t *at, const uint8_t *end) {
    struct libusb_interface_descriptor *setting = &parsed->setting;
    memcpy(setting, at, 9);
    setting->extra = at + at[0];
    const uint8_t *next = end_of_extra(setting->extra, end);
    setting->extra_length = (int)(next - setting->extra);
    setting->endpoint = parsed->endpoints;
    int count = 0;
    while (next_descriptor(next, end) && next[1] == DT_ENDPOINT && next[0] >= 7 && count < 32)
        next = parse_endpoint(&parsed->endpoints[count++], next, end);
    setting->bNumEndpoints = (uint8_t)count;
}

EXPORT int libusb_get_config_descriptor(libusb_device *device, uint8_t index,
                                        struct libusb_config_descriptor **configuration) {
    size_t size = device->configuration_size;
    if (index) return ERROR_NOT_FOUND;
    if (size < 18) return ERROR_IO;
    struct parsed *parsed = calloc(1, sizeof *parsed + size);
    if (!parsed) return ERROR_NO_MEM;
    memcpy(parsed->bytes, device->configuration, size);
    const uint8_t *at = parsed->bytes;
    parsed->configuration = (struct libusb_config_descriptor){
        .bLength = at[0],
        .bDescriptorType = at[1],
        .wTotalLength = word(at + 2),
        .bNumInterfaces = at[4],
        .bConfigurationValue = at[5],
        .iConfiguration = at[6],
        .bmAttributes = at[7],
        .MaxPower = at[8],
        .interface = &parsed->interface,
    };
    parsed->interface = (struct libusb_interface){&parsed->setting, 1};
    parse_interface(parsed, at + at[0], at + size);
    *configuration = &parsed->configuration;
    return SUCCESS;
}

EXPORT int libusb_get_active_config_descriptor(libusb_device *device,
                                               struct libusb_config_descriptor **configuration) {
    return libusb_get_config_descriptor(device, 0, configuration);
}

EXPORT int libusb_get_config_descriptor_by_value(libusb_device *device, uint8_t value,
                                                 struct libusb_config_descriptor **configuration) {
    if (device->configuration_size < 9 || device->configuration[5] != value)
        return ERROR_NOT_FOUND;
    return libusb_get_config_descriptor(device, 0, configuration);
}

EXPORT void libusb_free_config_descriptor(struct libusb_config_descriptor *configuration) {
    free(configuration);
}

EXPORT int libusb_get_max_packet_size(libusb_device *device, unsigned char endpoint) {
    struct libusb_config_descriptor *configuration;
    int status = libusb_get_config_descriptor(device, 0, &configuration);
    if (status) return status;
    const struct libusb_interface_descriptor *setting = configuration->interface->altsetting;
    status = ERROR_NOT_FOUND;
    for (int number = 0; number < setting->bNumEndpoints; number++)
        if (setting->endpoint[number].bEndpointAddress == endpoint)
            status = setting->endpoint[number].wMaxPacketSize;
    libusb_free_config_descriptor(configuration);
    return status;
}

EXPORT int libusb_get_max_iso_packet_size(libusb_device *device, unsigned char endpoint) {
    return libusb_get_max_packet_size(device, endpoint);
}

EXPORT int libusb_get_ss_endpoint_companion_descriptor(
    libusb_context *context, const struct libusb_endpoint_descriptor *endpoint,
    struct libusb_ss_endpoint_companion_descriptor **companion) {
    (void)context;
    const uint8_t *at = endpoint->extra, *end = at + endpoint->extra_length;
    for (; next_descriptor(at, end); at += at[0]) {
        if (at[1] != DT_COMPANION || at[0] < 6) continue;
        if (!(*companion = malloc(sizeof **companion))) return ERROR_NO_MEM;
        **companion = (struct libusb_ss_endpoint_companion_descriptor){at[0], at[1], at[2], at[3],
                                                                       word(at + 4)};
        return SUCCESS;
    }
    return ERROR_NOT_FOUND;
}

EXPORT void libusb_free_ss_endpoint_companion_descriptor(
    struct libusb_ss_endpoint_companion_descriptor *companion) {
    free(companion);
}

EXPORT int libusb_get_bos_descriptor(libusb_device_handle *handle,
                                     struct libusb_bos_descriptor **bos) {
    uint8_t bytes[BOS_ROOM];
    int size = request(handle, TO_HOST, 6, DT_BOS << 8, 0, bytes, sizeof bytes);
    if (size < 0) return size == ERROR_PIPE ? ERROR_NOT_FOUND : size;
    if (size < 5) return ERROR_IO;
    size_t pointers = bytes[4] * sizeof(struct libusb_bos_dev_capability_descriptor *);
    struct libusb_bos_descriptor *made = calloc(1, sizeof *made + pointers + (size_t)size);
    if (!made) return ERROR_NO_MEM;
    uint8_t *at = (uint8_t *)made + sizeof *made + pointers, *end = at + size;
    memcpy(at, bytes, (size_t)size);
    made->bLength = at[0];
    made->bDescriptorType = at[1];
    made->wTotalLength = word(at + 2);
    uint8_t count = 0;
    for (at += at[0]; next_descriptor(at, end) && at[0] >= 3 && count < bytes[4]; at += at[0])
        made->dev_capability[count++] = (struct libusb_bos_dev_capability_descriptor *)at;
    made->bNumDeviceCaps = count;
    *bos = made;
    return SUCCESS;
}

EXPORT void libusb_free_bos_descriptor(struct libusb_bos_descriptor *bos) { free(bos); }

static int check(const struct libusb_bos_dev_capability_descriptor *capability, int type,
                 int size) {
    if (capability->bDevCapabilityType != type) return ERROR_INVALID_PARAM;
    return capability->bLength < size ? ERROR_IO : SUCCESS;
}

EXPORT int libusb_get_usb_2_0_extension_descriptor(
    libusb_context *context, struct libusb_bos_dev_capability_descriptor *capability,
    struct libusb_usb_2_0_extension_descriptor **extension) {
    (void)context;
    int status = check(capability, CAPABILITY_USB_2_0_EXTENSION, 7);
    if (status) return status;
    if (!(*extension = malloc(sizeof **extension))) return ERROR_NO_MEM;
    const uint8_t *data = capability->dev_capability_data;
    **extension = (struct libusb_usb_2_0_extension_descriptor){
        capability->bLength, capability->bDescriptorType, capability->bDevCapabilityType,
        word(data) | (uint32_t)word(data + 2) << 16};
    return SUCCESS;
}

EXPORT void libusb_free_usb_2_0_extension_descriptor(
    struct libusb_usb_2_0_extension_descriptor *extension) {
    free(extension);
}

EXPORT int libusb_get_ss_usb_device_capability_descriptor(
    libusb_context *context, struct libusb_bos_dev_capability_descriptor *capability,
    struct libusb_ss_usb_device_capability_descriptor **superspeed) {
    (void)context;
    int status = check(capability, CAPABILITY_SUPERSPEED, 10);
    if (status) return status;
    if (!(*superspeed = malloc(sizeof **superspeed))) return ERROR_NO_MEM;
    const uint8_t *data = capability->dev_capability_data;
    **superspeed = (struct libusb_ss_usb_device_capability_descriptor){
        capability->bLength, capability->bDescriptorType, capability->bDevCapabilityType, data[0],
        word(data + 1), data[3], data[4], word(data + 5)};
    return SUCCESS;
}

EXPORT void libusb_free_ss_usb_device_capability_descriptor(
    struct libusb_ss_usb_device_capability_descriptor *superspeed) {
    free(superspeed);
}

/* The device has no container id. */
EXPORT int libusb_get_container_id_descriptor(
    libusb_context *context, struct libusb_bos_dev_capability_descriptor *capability,
    void **container) {
    (void)context, (void)container;
    int status = check(capability, CAPABILITY_CONTAINER_ID, 20);
    return status ? status : ERROR_NOT_SUPPORTED;
}

EXPORT void libusb_free_container_id_descriptor(void *container) { free(container); }

EXPORT int libusb_get_string_descriptor_ascii(libusb_device_handle *handle, uint8_t index,
                                              unsigned char *text, int room) {
    uint8_t bytes[255];
    if (!index || room < 1) return ERROR_INVALID_PARAM;
    int size = request(handle, TO_HOST, 6, DT_STRING << 8, 0, bytes, sizeof bytes);
    if (size < 0) return size;
    if (size < 4) return ERROR_IO;
    size = request(handle, TO_HOST, 6, (uint16_t)(DT_STRING << 8 | index), word(bytes + 2), bytes,
                   sizeof bytes);
    if (size < 0) return size;
    if (size < 2 || bytes[1] != DT_STRING || bytes[0] > size) return ERROR_IO;
    int length = 0;
    for (int at = 2; at + 1 < bytes[0] && length < room - 1; at += 2)
        text[length++] = bytes[at + 1] || bytes[at] & 0x80 ? '?' : bytes[at];
    text[length] = 0;
    return length;
}
