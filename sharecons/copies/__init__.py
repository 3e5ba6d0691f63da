"""Copies of records, in dead-letter topics and retry topics, as they are written.

Workers and Spark queries write them. `sharecons.dead_letters` reads and redrives them.

- `dead_letter_headers`: which record a copy was, and why it failed for good.
- `dead_letter_queue`: where records are written that have failed for good.
- `dead_letter_writer`: writes the records that have failed for good.
- `topic_configs`: settings of a topic with which it loses copies, or takes none.
"""
