"""The paper's statements, executable: each holds, holds after a correction, or is false with a counterexample.

`statement` has the decorator, `instances` makes what is tested, `counterexamples` refutes what is printed; the
other modules follow the paper, and `statements` joins them.
"""
