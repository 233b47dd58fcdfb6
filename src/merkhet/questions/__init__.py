"""From facts to questions: templates and one module a question kind; and questions that people bring."""

from __future__ import annotations
