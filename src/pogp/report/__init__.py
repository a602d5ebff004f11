"""What was run, as a record, and what is made of it: a table, a reading in words, a figure."""

from pogp.report.run_record import Record

__all__ = ["Record"]
