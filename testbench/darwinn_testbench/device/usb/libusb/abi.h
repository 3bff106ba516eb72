/* What a program that was compiled with <libusb.h> 1.0.26 knows of libusb: types and numbers. */
#ifndef DARWINN_LIBUSB_ABI_H
#define DARWINN_LIBUSB_ABI_H

#include <stdint.h>
#include <sys/time.h>
#include <sys/types.h>

#include "messages.h" /* also errors: written from messages.py */

#define EXPORT __attribute__((visibility("default")))

#define SUCCESS ERROR_NONE

enum { TYPE_CONTROL, TYPE_ISOCHRONOUS, TYPE_BULK, TYPE_INTERRUPT, TYPE_BULK_STREAM };

enum transfer_status {
    TRANSFER_COMPLETED,
    TRANSFER_ERROR,
    TRANSFER_TIMED_OUT,
    TRANSFER_CANCELLED,
    TRANSFER_STALL,
    TRANSFER_NO_DEVICE,
    TRANSFER_OVERFLOW
};

enum { SHORT_NOT_OK = 1, FREE_BUFFER = 2, FREE_TRANSFER = 4, ADD_ZERO_PACKET = 8 };

enum { DT_DEVICE = 1, DT_CONFIG = 2, DT_STRING = 3, DT_INTERFACE = 4, DT_ENDPOINT = 5, DT_BOS = 15,
       DT_CAPABILITY = 16, DT_COMPANION = 0x30 };

enum { CAPABILITY_USB_2_0_EXTENSION = 2, CAPABILITY_SUPERSPEED = 3, CAPABILITY_CONTAINER_ID = 4 };

enum { EVENT_ARRIVED = 1, EVENT_LEFT = 2, HOTPLUG_ENUMERATE = 1, MATCH_ANY = -1 };

#define TO_HOST 0x80

typedef struct libusb_context libusb_context;
typedef struct libusb_device libusb_device;
typedef struct libusb_device_handle libusb_device_handle;

struct libusb_version {
    uint16_t major, minor, micro, nano;
    const char *rc, *describe;
};

struct libusb_device_descriptor {
    uint8_t bLength, bDescriptorType;
    uint16_t bcdUSB;
    uint8_t bDeviceClass, bDeviceSubClass, bDeviceProtocol, bMaxPacketSize0;
    uint16_t idVendor, idProduct, bcdDevice;
    uint8_t iManufacturer, iProduct, iSerialNumber, bNumConfigurations;
};

struct libusb_endpoint_descriptor {
    uint8_t bLength, bDescriptorType, bEndpointAddress, bmAttributes;
    uint16_t wMaxPacketSize;
    uint8_t bInterval, bRefresh, bSynchAddress;
    const unsigned char *extra;
    int extra_length;
};

struct libusb_interface_descriptor {
    uint8_t bLength, bDescriptorType, bInterfaceNumber, bAlternateSetting, bNumEndpoints;
    uint8_t bInterfaceClass, bInterfaceSubClass, bInterfaceProtocol, iInterface;
    const struct libusb_endpoint_descriptor *endpoint;
    const unsigned char *extra;
    int extra_length;
};

struct libusb_interface {
    const struct libusb_interface_descriptor *altsetting;
    int num_altsetting;
};

struct libusb_config_descriptor {
    uint8_t bLength, bDescriptorType;
    uint16_t wTotalLength;
    uint8_t bNumInterfaces, bConfigurationValue, iConfiguration, bmAttributes, MaxPower;
    const struct libusb_interface *interface;
    const unsigned char *extra;
    int extra_length;
};

struct libusb_ss_endpoint_companion_descriptor {
    uint8_t bLength, bDescriptorType, bMaxBurst, bmAttributes;
    uint16_t wBytesPerInterval;
};

struct libusb_bos_dev_capability_descriptor {
    uint8_t bLength, bDescriptorType, bDevCapabilityType;
    uint8_t dev_capability_data[];
};

struct libusb_bos_descriptor {
    uint8_t bLength, bDescriptorType;
    uint16_t wTotalLength;
    uint8_t bNumDeviceCaps;
    struct libusb_bos_dev_capability_descriptor *dev_capability[];
};

struct libusb_usb_2_0_extension_descriptor {
    uint8_t bLength, bDescriptorType, bDevCapabilityType;
    uint32_t bmAttributes;
};

struct libusb_ss_usb_device_capability_descriptor {
    uint8_t bLength, bDescriptorType, bDevCapabilityType, bmAttributes;
    uint16_t wSpeedSupported;
    uint8_t bFunctionalitySupport, bU1DevExitLat;
    uint16_t bU2DevExitLat;
};

struct libusb_iso_packet_descriptor {
    unsigned int length, actual_length;
    enum transfer_status status;
};

struct libusb_transfer;
typedef void (*libusb_transfer_cb_fn)(struct libusb_transfer *transfer);

struct libusb_transfer {
    libusb_device_handle *dev_handle;
    uint8_t flags;
    unsigned char endpoint, type;
    unsigned int timeout;
    enum transfer_status status;
    int length, actual_length;
    libusb_transfer_cb_fn callback;
    void *user_data;
    unsigned char *buffer;
    int num_iso_packets;
    struct libusb_iso_packet_descriptor iso_packet_desc[];
};

struct libusb_pollfd {
    int fd;
    short events;
};
typedef void (*libusb_pollfd_added_cb)(int fd, short events, void *user_data);
typedef void (*libusb_pollfd_removed_cb)(int fd, void *user_data);

typedef int (*libusb_hotplug_callback_fn)(libusb_context *context, libusb_device *device,
                                          int event, void *user_data);

typedef void (*libusb_log_cb)(libusb_context *context, int level, const char *text);

#endif
