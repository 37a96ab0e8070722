"""Devices in processes of their own: messages with arrays, the process, and the device that stands for it."""
