"""PyTorch as far as capture/first_contact asks what there is."""
from types import SimpleNamespace

__version__ = "2.9.0"
version = SimpleNamespace(cuda="13.0")
cuda = SimpleNamespace(is_available=lambda: True)
