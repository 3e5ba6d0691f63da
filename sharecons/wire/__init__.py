"""Translates: the values of `sharecons.protocol` to Kafka's bytes, and back.

kio, the codec, is met here and nowhere else; so are milliseconds and versions.
One module for each API; `apis` lists them, `frames` puts headers around them.
"""
