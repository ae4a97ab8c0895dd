"""What follows from the records: the paper's numbers, verdicts, reasons, tables, claims."""
