"""ChnEval: knowledge of a language, mainly Chinese, and of facts stated in its texts."""
