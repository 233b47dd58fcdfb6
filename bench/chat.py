"""Measures how long questions to an endpoint take beside the time that the endpoint itself needs.

A stub on this machine (bench/chat_stub.py, in a process of its own) replies after 50 ms to as many as ask at once. The
ideal time is that of the questions in turns of 32; merkhet's includes wording, sending, keeping every reply on disk and
reading it. The plain way is a pool of 32 threads, each with a new connection for every request, that keeps nothing.

    python bench/chat.py
"""

from __future__ import annotations

import json
import math
import subprocess
import sys
import tempfile
import urllib.request
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

from measuring import Table, arguments, finish, interleave, median_with_spread, parse, ratio

if str(Path(__file__).resolve().parent.parent / "src") not in sys.path:
    sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "src"))

from merkhet.core.records import Question
from merkhet.models.chat._chat_settings import read_settings
from merkhet.models.chat._endpoint import EndpointModel
from merkhet.models.chat._reply_cache import ReplyCache
from merkhet.probes.chat._chat_prompts import choose_prompt
from merkhet.probes.chat.choose import choose, order_choices

AFTER, IN_FLIGHT, LIMIT = 0.05, 32, 1.5
OWN, AGAIN, PLAIN = "merkhet, choose", "merkhet, replies kept", "plain pool of threads"


def questions(count: int) -> list[Question]:
    towns = tuple(f"Town {number}" for number in range(10))
    return [
        Question(f"q{number}", "completion", f"Person {number} lives in [MASK].", (town,), town, towns)
        for number in range(count)
        for town in [towns[number % 10]]
    ]


@contextmanager
def stub() -> Iterator[str]:
    command = [sys.executable, str(Path(__file__).with_name("chat_stub.py")), str(AFTER)]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    try:
        yield f"http://127.0.0.1:{int(process.stdout.readline())}/v1"
    finally:
        process.terminate()
        process.wait()


def ask(endpoint: str, asked: list[Question], kept: Path) -> None:
    settings = read_settings("stub", endpoint, {"concurrency": IN_FLIGHT})
    model = EndpointModel("stub", settings, ReplyCache(kept))
    answers = list(choose(model, asked, ["text"]))
    if len(answers) != len(asked) or any(one.outcome != "answered" for one in answers):
        raise RuntimeError("not every question was answered")
    model.cache.close()


def ask_plainly(endpoint: str, asked: list[Question]) -> None:
    def one(question: Question) -> str:
        text = choose_prompt(question, order_choices(question, question.candidates, 0, 1, 0))
        body = {"model": "stub", "messages": [{"role": "user", "content": text}], "max_tokens": 24, "temperature": 0}
        request = urllib.request.Request(
            f"{endpoint}/chat/completions", json.dumps(body).encode(), {"Content-Type": "application/json"}
        )
        with urllib.request.urlopen(request) as response:
            return str(json.load(response)["choices"][0]["message"]["content"])

    with ThreadPoolExecutor(IN_FLIGHT) as pool:
        if set(pool.map(one, asked)) != {"A"}:
            raise RuntimeError("not every question was answered")


def main() -> int:
    options = parse(arguments(__doc__, repeats=5, peers=False))
    count = 200 if options.quick else 2_000
    asked = questions(count)
    ideal = math.ceil(count / IN_FLIGHT) * AFTER
    with stub() as endpoint, tempfile.TemporaryDirectory() as folder:
        number = 0

        def fresh() -> None:
            nonlocal number
            number += 1
            ask(endpoint, asked, Path(folder) / f"{number}.sqlite")

        def kept() -> None:
            ask(endpoint, asked, Path(folder) / f"{number}.sqlite")

        fresh()
        ways = {OWN: fresh, AGAIN: kept, PLAIN: lambda: ask_plainly(endpoint, asked)}
        timings = interleave(ways, options.repeats)
    ratios = {f"{name} / ideal": ratio(seconds, [ideal] * len(seconds)) for name, seconds in timings.items()}
    rows = [[name, median_with_spread(timings[name]), str(ratios[f"{name} / ideal"])] for name in timings]
    notes = [
        f"{count:,} questions, {IN_FLIGHT} in flight, each reply after {1000 * AFTER:.0f} ms: ideal {ideal:.2f} s; "
        f"wanted is no more than {LIMIT} times that.",
        "Median (smallest–largest) in seconds, and against the ideal.",
    ]
    title = f"Questions to an endpoint, {options.repeats} rounds"
    table = Table(title, ("way", "seconds", "× the ideal"), rows, notes)
    finish("chat", options, table, timings, ratios, {"questions": count, "ideal": ideal})
    return int(not options.quick and ratios[f"{OWN} / ideal"].value > LIMIT)


if __name__ == "__main__":
    sys.exit(main())
