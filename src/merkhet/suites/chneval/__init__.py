"""ChnEval: knowledge of a language and, in its texts, of the world; Chinese first."""
