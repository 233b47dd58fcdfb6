"""The command on review by people: draw a sheet, or read its verdicts back."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

if TYPE_CHECKING:
    from merkhet.questions.question_files import QuestionSet
    from merkhet.questions.review import Review


def review(
    folder: Annotated[
        Path,
        typer.Argument(metavar="FOLDER", help="Questions that 'merkhet build' wrote, or yours.", show_default=False),
    ],
    out: Annotated[
        Path,
        typer.Option(
            metavar="SHEET_OR_FOLDER",
            help="The sheet, a .csv or .html file; with --verdicts, a new folder for the questions.",
            show_default=False,
        ),
    ],
    count: Annotated[int, typer.Option(min=1, metavar="N", help="How many questions the sheet has.")] = 200,
    seed: Annotated[int, typer.Option(metavar="N", help="Seed of the sample.")] = 0,
    verdicts: Annotated[
        list[Path] | None,
        typer.Option(metavar="SHEET", help="A sheet that was filled in. May be given several times."),
    ] = None,
    least: Annotated[
        int, typer.Option(min=1, metavar="N", help="A template is judged by at least so many of its questions.")
    ] = 3,
    json: Annotated[bool, typer.Option("--json", help="Print JSON for programs.")] = False,
) -> None:
    """Draw a sheet of questions for people to judge, or leave out the questions that they found bad."""
    from merkhet.questions.question_files import read_questions

    found = read_questions(folder)
    if verdicts:
        _read_back(found, folder, verdicts, out, least, as_json=json)
    else:
        _draw(found, out, count, seed, as_json=json)


def _draw(found: QuestionSet, out: Path, count: int, seed: int, *, as_json: bool) -> None:
    from merkhet.cli.run_output import print_lines
    from merkhet.questions.review import draw_sample, write_sheet

    rows = draw_sample(found, count, seed)
    suite = found.questions["suite"][0].as_py()
    write_sheet(rows, out, f"{suite}: {len(rows):,} questions to review")
    print_lines(
        [f"{len(rows):,} questions to review: {out}"], {"sheet": str(out), "questions": len(rows)}, as_json=as_json
    )


def _read_back(found: QuestionSet, folder: Path, sheets: list[Path], out: Path, least: int, *, as_json: bool) -> None:
    from merkhet.cli.run_output import print_lines
    from merkhet.core.errors import InputError
    from merkhet.core.files import refuse_foreign_folder
    from merkhet.questions.data_card import count_questions, write_card
    from merkhet.questions.question_files import read_card, write_questions
    from merkhet.questions.review import apply_review, combine_verdicts, read_sheet

    refuse_foreign_folder(out, "card.json")
    if out.resolve() == (folder if folder.is_dir() else folder.parent).resolve():
        raise InputError(f"{out} is where the questions come from. Choose another folder with --out.")
    known = frozenset(found.questions["question_id"].to_pylist())
    done = combine_verdicts(found, [read_sheet(sheet, known) for sheet in sheets], least)
    kept = apply_review(found, done)
    card = read_card(folder if folder.is_dir() else folder.parent)
    suite = {"suite": found.questions["suite"][0].as_py()}
    # The card first: it marks the folder as one that may be written anew if this process does not get to the end.
    write_card({**suite, **card, **kept.about, **count_questions(kept)}, out)
    write_questions(kept, out)
    print_lines(_said(done, kept, out), _content(done, kept, out), as_json=as_json)


def _said(done: Review, kept: QuestionSet, out: Path) -> list[str]:
    judged = ", ".join(f"{count:,} {verdict}" for verdict, count in done.judged.items())
    lines = [f"{sum(done.judged.values()):,} questions judged: {judged}"]
    for one in done.agreements:
        said = f"kappa {one.kappa:.2f}" if one.kappa is not None else "no question in common"
        lines.append(
            f"{one.first} and {one.second}: {said}" + (f" on {one.questions:,} questions" if one.questions else "")
        )
    if done.poor_templates:
        lines.append(f"Templates that are bad more often than good: {', '.join(done.poor_templates)}")
    lines.append(f"{len(done.left_out):,} left out, {kept.questions.num_rows:,} questions: {out / 'questions.parquet'}")
    return lines


def _content(done: Review, kept: QuestionSet, out: Path) -> dict[str, Any]:
    return {
        "folder": str(out),
        "questions": kept.questions.num_rows,
        "judged": dict(done.judged),
        "left_out": list(done.left_out),
        "poor_templates": list(done.poor_templates),
        "agreements": [vars(one) for one in done.agreements],
    }
