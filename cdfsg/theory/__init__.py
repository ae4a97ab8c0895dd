"""The paper's statements, executable: each says holds, holds after a correction, or false with a counterexample."""
