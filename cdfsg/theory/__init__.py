"""The paper's statements as code that tests them.

`statement` has the decorator, `instances` what is tested on, `counterexamples` what refutes a printed form.
The other modules follow the paper; `statements` joins them.
"""
