"""The paper's statements, executable: each says holds, holds after a correction, or false with a counterexample.

`check` says what a check reports, `instances` makes what is tested, `counterexamples` refutes what is printed; the
statements follow the paper, and `statements` joins them.
"""
