"""`sharecons dead-letters list` and `show`."""

import argparse
from contextlib import aclosing

from sharecons.admin import ShareGroupAdmin
from sharecons.cli import output, tables
from sharecons.cli.dead_letters import letter_text
from sharecons.cli.exit_codes import ExitCode, write_errors
from sharecons.dead_letters import DeadLetterRecord, DeadLetters, parse_filter

__all__ = ["list_letters", "show_letter"]

PROGRAM = "sharecons dead-letters"


async def list_letters(admin: ShareGroupAdmin, options: argparse.Namespace) -> ExitCode:
    letters = DeadLetters.from_admin(admin, options.topic)
    found: list[DeadLetterRecord] = []
    reading = letters.read(parse_filter(*options.filters), redriven=options.redriven)
    async with aclosing(reading):
        async for letter in reading:
            if len(found) == options.limit:
                write_errors(
                    f"{PROGRAM} list", [f"only the first {options.limit}: see --limit"]
                )
                break
            found.append(letter)
    if options.json:
        rows = [letter_text.letter_object(each, "text") for each in found]
    else:
        rows = [letter_text.letter_row(each) for each in found]
    tables.write(rows, letter_text.COLUMNS, as_json=options.json)
    return ExitCode.SUCCESS


async def show_letter(admin: ShareGroupAdmin, options: argparse.Namespace) -> ExitCode:
    partition, offset = options.position
    letters = DeadLetters.from_admin(admin, options.topic)
    letter = await letters.get(partition, offset)
    if letter is None:
        write_errors(
            f"{PROGRAM} show",
            [f"{options.topic}-{partition} has no record at offset {offset}"],
        )
        return ExitCode.FAILED
    if options.json:
        row = letter_text.letter_object(letter, options.format)
        tables.write([row], (), as_json=True)
    else:
        for line in letter_text.letter_lines(letter, options.format):
            output.write_line(line)
    return ExitCode.SUCCESS
