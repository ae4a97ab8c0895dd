"""The reproduction of the paper: experiments, runs, records, the paper's own numbers, verdicts, figures."""
