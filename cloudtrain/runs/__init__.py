"""The life of a run: its states, its folder, its end, and the handle users hold."""
