"""A structure-aware fuzzer of everything that sharecons reads from outside.

    python -m tests.fuzz --minutes 60
    python -m tests.fuzz --minutes 5 --target batches --seed 7 --coverage
    python -m tests.fuzz --replay tests/fuzz/corpus/batches/0123456789ab.json

A target draws cases with Hypothesis: valid messages with changed fields, valid bytes
with changed bytes, and nonsense. It passes each case to the code that reads it. An
escape is a case that raises an exception which is not documented, breaks a rule of the
target, takes too long, or allocates too much. Each escape is shrunk, saved in
`corpus/TARGET`, and replayed by `test_corpus.py` ever after.

    `target`     what a target is
    `limits`     the limits of one execution: CPU time and memory
    `search`     draws cases, and keeps one case for each kind of escape
    `corpus`     the saved cases
    `drawing`    strategies: numbers, texts, messages of Kafka, changed bytes
    `targets`    the targets
    `report`     the table, and the coverage
"""
