"""Configuration: one typed schema; flags > environment > user's file > system's file > defaults.

Only this package reads the process environment.
"""

from __future__ import annotations

from llmd.config.addresses import Address, TcpAddress, UnixAddress, parse_address
from llmd.config.directories import Directories
from llmd.config.schema import ClientConfig, Config, EngineConfig, LimitsConfig, RegistryConfig, ServerConfig
from llmd.config.setting_values import Origin, setting_name
from llmd.config.sources import Settings, load_settings

__all__ = [
    "Address",
    "ClientConfig",
    "Config",
    "Directories",
    "EngineConfig",
    "LimitsConfig",
    "Origin",
    "RegistryConfig",
    "ServerConfig",
    "Settings",
    "TcpAddress",
    "UnixAddress",
    "load_settings",
    "parse_address",
    "setting_name",
]
