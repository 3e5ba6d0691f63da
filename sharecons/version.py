"""The version of this package; the build reads it from this file."""

VERSION = "0.1.0"
__version__ = VERSION
