"""The version of the library, for the models that it writes."""

__version__ = "1.0.0"
