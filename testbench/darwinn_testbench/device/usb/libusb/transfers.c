/* Transfers: those that end with a callback, and those that the caller waits for. */
#include "stand_in.h"

#include <limits.h>

#define SETUP_LENGTH_AT 6

static struct transfer *inside(struct libusb_transfer *public) {
    return (struct transfer *)((char *)public - offsetof(struct transfer, public));
}

EXPORT struct libusb_transfer *libusb_alloc_transfer(int packets) {
    if (packets < 0) return NULL;
    struct transfer *made = calloc(
        1, sizeof *made + (size_t)packets * sizeof(struct libusb_iso_packet_descriptor));
    if (!made) return NULL;
    made->public.num_iso_packets = packets;
    return &made->public;
}

EXPORT void libusb_free_transfer(struct libusb_transfer *public) {
    if (!public) return;
    if (public->flags & FREE_BUFFER) free(public->buffer);
    free(inside(public));
}

static uint16_t setup_length(const unsigned char *setup) {
    return (uint16_t)(setup[SETUP_LENGTH_AT] | setup[SETUP_LENGTH_AT + 1] << 8);
}

/* Send what a transfer asks for. */
static int begin(struct pending *pending, const libusb_device *device, unsigned char type,
                 unsigned char endpoint, unsigned char *buffer, int length) {
    if (type == TYPE_CONTROL) {
        bool to_host = buffer[0] & TO_HOST;
        uint16_t size = setup_length(buffer);
        pending->into = buffer + SETUP_BYTES;
        pending->room = to_host ? size : 0;
        return start(pending, OPERATION_CONTROL, ON(device->address, 0), size, buffer, SETUP_BYTES,
                     buffer + SETUP_BYTES, to_host ? 0 : size);
    }
    pending->into = buffer;
    pending->room = endpoint & TO_HOST ? (size_t)length : 0;
    if (endpoint & TO_HOST)
        return start(pending, OPERATION_IN, ON(device->address, endpoint), (uint32_t)length, NULL,
                     0, NULL, 0);
    return start(pending, OPERATION_OUT, ON(device->address, endpoint), 0, buffer, (size_t)length,
                 NULL, 0);
}

static int refusal(const struct libusb_transfer *public) {
    if (!public->dev_handle) return ERROR_NO_DEVICE;
    if (public->type == TYPE_ISOCHRONOUS || public->type == TYPE_BULK_STREAM)
        return ERROR_NOT_SUPPORTED;
    if (public->type > TYPE_INTERRUPT || public->length < 0) return ERROR_INVALID_PARAM;
    if (public->length && !public->buffer) return ERROR_INVALID_PARAM;
    if (public->flags & ADD_ZERO_PACKET) return ERROR_NOT_SUPPORTED;
    if (public->type != TYPE_CONTROL) return SUCCESS;
    if (public->length < SETUP_BYTES ||
        public->length < SETUP_BYTES + setup_length(public->buffer))
        return ERROR_INVALID_PARAM;
    return SUCCESS;
}

EXPORT int libusb_submit_transfer(struct libusb_transfer *public) {
    struct transfer *transfer = inside(public);
    int status = refusal(public);
    if (status) return status;
    libusb_device *device = public->dev_handle->device;
    pthread_mutex_lock(&big);
    if (transfer->progress != IDLE) {
        pthread_mutex_unlock(&big);
        return ERROR_BUSY;
    }
    transfer->progress = UNDER_WAY;
    transfer->cancelled = false;
    transfer->context = device->context;
    transfer->pending.transfer = transfer;
    pthread_mutex_unlock(&big);
    limit(&transfer->pending, public->timeout);
    status = begin(&transfer->pending, device, public->type, public->endpoint, public->buffer,
                   public->length);
    if (status) {
        pthread_mutex_lock(&big);
        transfer->progress = IDLE;
        pthread_mutex_unlock(&big);
    }
    return status;
}

EXPORT int libusb_cancel_transfer(struct libusb_transfer *public) {
    struct transfer *transfer = inside(public);
    pthread_mutex_lock(&big);
    bool is_under_way = transfer->progress == UNDER_WAY && !transfer->cancelled;
    struct pending pending = {.number = transfer->pending.number};
    if (is_under_way) transfer->cancelled = true;
    pthread_mutex_unlock(&big);
    if (!is_under_way) return ERROR_NOT_FOUND;
    cancel(&pending);
    return SUCCESS;
}

static enum transfer_status status_of(const struct pending *pending) {
    switch (pending->status) {
        case SUCCESS: return TRANSFER_COMPLETED;
        case ERROR_PIPE: return TRANSFER_STALL;
        case ERROR_NO_DEVICE: return TRANSFER_NO_DEVICE;
        case ERROR_OVERFLOW: return TRANSFER_OVERFLOW;
        case ERROR_INTERRUPTED:
            return pending->timed_out ? TRANSFER_TIMED_OUT : TRANSFER_CANCELLED;
        default: return TRANSFER_ERROR;
    }
}

/* With `big`: note that it has ended, for whoever handles events. */
void transfer_replied(struct transfer *transfer) {
    struct pending *pending = &transfer->pending;
    struct libusb_transfer *public = &transfer->public;
    public->status = status_of(pending);
    public->actual_length = (int)(pending->room ? pending->came : pending->moved);
    int awaited = public->length - (public->type == TYPE_CONTROL ? SETUP_BYTES : 0);
    if (public->status == TRANSFER_COMPLETED && public->flags & SHORT_NOT_OK &&
        public->actual_length < awaited)
        public->status = TRANSFER_ERROR;
    transfer->progress = ENDED;
    transfer->next = NULL;
    *transfer->context->last_ended = transfer;
    transfer->context->last_ended = &transfer->next;
    wake(transfer->context);
}

void run_callback(struct transfer *transfer) {
    struct libusb_transfer *public = &transfer->public;
    uint8_t flags = public->flags;
    if (public->callback) public->callback(public);
    if (flags & FREE_TRANSFER) libusb_free_transfer(public);
}

EXPORT void libusb_transfer_set_stream_id(struct libusb_transfer *public, uint32_t stream) {
    inside(public)->stream = stream;
}

EXPORT uint32_t libusb_transfer_get_stream_id(struct libusb_transfer *public) {
    return inside(public)->stream;
}

/* Carry out a transfer, and wait for its end. */
static int wait_for(struct pending *pending, libusb_device_handle *handle, unsigned char type,
                    unsigned char endpoint, unsigned char *buffer, int length,
                    unsigned int timeout) {
    limit(pending, timeout);
    int status = begin(pending, handle->device, type, endpoint, buffer, length);
    if (status) return status;
    finish(pending);
    return pending->status == ERROR_INTERRUPTED ? ERROR_TIMEOUT : pending->status;
}

EXPORT int libusb_control_transfer(libusb_device_handle *handle, uint8_t type, uint8_t code,
                                   uint16_t value, uint16_t index, unsigned char *data,
                                   uint16_t size, unsigned int timeout) {
    if (!handle) return ERROR_NO_DEVICE;
    if (size && !data) return ERROR_INVALID_PARAM;
    unsigned char *buffer = malloc(SETUP_BYTES + (size_t)size);
    if (!buffer) return ERROR_NO_MEM;
    uint16_t words[3] = {value, index, size};
    buffer[0] = type;
    buffer[1] = code;
    memcpy(buffer + 2, words, sizeof words);
    bool to_host = type & TO_HOST;
    if (size && !to_host) memcpy(buffer + SETUP_BYTES, data, size);
    struct pending pending = {0};
    int status = wait_for(&pending, handle, TYPE_CONTROL, 0, buffer, SETUP_BYTES + size, timeout);
    if (!status && to_host && pending.came) memcpy(data, buffer + SETUP_BYTES, pending.came);
    free(buffer);
    if (status) return status;
    return (int)(to_host ? pending.came : pending.moved);
}

int request(libusb_device_handle *handle, uint8_t type, uint8_t code, uint16_t value,
            uint16_t index, unsigned char *data, uint16_t size) {
    return libusb_control_transfer(handle, type, code, value, index, data, size, 1000);
}

EXPORT int libusb_bulk_transfer(libusb_device_handle *handle, unsigned char endpoint,
                                unsigned char *data, int length, int *moved,
                                unsigned int timeout) {
    if (moved) *moved = 0;
    if (!handle) return ERROR_NO_DEVICE;
    if (length < 0 || (length && !data)) return ERROR_INVALID_PARAM;
    struct pending pending = {0};
    int status = wait_for(&pending, handle, TYPE_BULK, endpoint, data, length, timeout);
    if (moved) *moved = (int)(endpoint & TO_HOST ? pending.came : pending.moved);
    return status;
}

EXPORT int libusb_interrupt_transfer(libusb_device_handle *handle, unsigned char endpoint,
                                     unsigned char *data, int length, int *moved,
                                     unsigned int timeout) {
    return libusb_bulk_transfer(handle, endpoint, data, length, moved, timeout);
}
