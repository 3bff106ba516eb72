"""The simulated chip on a USB cable: for PyUSB, for libusb, recorded and replayed."""
