"""Fuzzing: whatever stands in a file or a reply, a reader takes it or refuses it in one line, soon and cleanly."""
