"""A model of the Beagle chip (the Coral Edge TPU) that runs DarwiNN executables."""
