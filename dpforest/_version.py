"""The version of the library, for the models that it writes."""

__version__ = "0.1.0"
