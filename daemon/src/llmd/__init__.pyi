from llmd.client import Client as Client
from llmd.embedded.engine import Engine as Engine

__version__: str
