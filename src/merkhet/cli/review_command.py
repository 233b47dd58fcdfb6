"""The command ``merkhet review``."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from merkhet.cli.arguments import Json
from merkhet.core.text import counted

if TYPE_CHECKING:
    from merkhet.questions.question_files import QuestionSet
    from merkhet.questions.review import Review


def review(
    folder: Annotated[
        Path,
        typer.Argument(
            metavar="FOLDER",
            help="Folder with the output of 'merkhet build', or with your questions.",
            show_default=False,
        ),
    ],
    out: Annotated[
        Path,
        typer.Option(
            metavar="SHEET_OR_FOLDER",
            help="The sheet, a .csv or .html file; with --verdicts, a new folder for the accepted questions.",
            show_default=False,
        ),
    ],
    count: Annotated[int, typer.Option(min=1, metavar="N", help="Number of questions in the sheet.")] = 200,
    seed: Annotated[int, typer.Option(metavar="N", help="Seed of the sample.")] = 0,
    verdicts: Annotated[
        list[Path] | None,
        typer.Option(metavar="SHEET", help="A completed sheet. Repeatable."),
    ] = None,
    least: Annotated[
        int, typer.Option(min=1, metavar="N", help="Minimum number of judged questions to reject a template.")
    ] = 3,
    json: Json = False,
) -> None:
    """Sample questions for review, or remove rejected questions."""
    from merkhet.questions.question_files import read_questions

    questions = read_questions(folder)
    if verdicts:
        _apply_verdicts(questions, folder, verdicts, out, least, as_json=json)
    else:
        _draw_sheet(questions, out, count, seed, as_json=json)


def _draw_sheet(questions: QuestionSet, out: Path, count: int, seed: int, *, as_json: bool) -> None:
    from merkhet.cli.output import print_lines
    from merkhet.questions.review import draw_sample, write_sheet

    rows = draw_sample(questions, count, seed)
    suite = questions.questions["suite"][0].as_py()
    write_sheet(rows, out, f"{suite}: {counted(len(rows), 'question')} to review")
    print_lines(
        [f"{counted(len(rows), 'question')} to review: {out}"],
        {"sheet": str(out), "questions": len(rows)},
        as_json=as_json,
    )


def _apply_verdicts(
    questions: QuestionSet, folder: Path, sheets: list[Path], out: Path, minimum: int, *, as_json: bool
) -> None:
    from merkhet.cli.output import print_lines
    from merkhet.core.errors import InputError
    from merkhet.core.files import refuse_foreign_folder
    from merkhet.questions.data_card import count_questions, write_card
    from merkhet.questions.question_files import read_card, write_questions
    from merkhet.questions.review import apply_review, combine_verdicts, read_sheet

    refuse_foreign_folder(out, "card.json")
    if out.resolve() == (folder if folder.is_dir() else folder.parent).resolve():
        raise InputError(f"{out} is the folder of the source questions; choose another folder with --out")
    known = frozenset(questions.questions["question_id"].to_pylist())
    review_result = combine_verdicts(questions, [read_sheet(sheet, known) for sheet in sheets], minimum)
    accepted = apply_review(questions, review_result)
    card = read_card(folder if folder.is_dir() else folder.parent)
    suite = {"suite": questions.questions["suite"][0].as_py()}
    # The card is written first. If this process is killed, the card shows that the folder may be overwritten.
    write_card({**suite, **card, **accepted.about, **count_questions(accepted)}, out)
    write_questions(accepted, out)
    print_lines(_summary_lines(review_result, accepted, out), _as_json(review_result, accepted, out), as_json=as_json)


def _summary_lines(review_result: Review, accepted: QuestionSet, out: Path) -> list[str]:
    judged = ", ".join(f"{count:,} {verdict}" for verdict, count in review_result.judged.items())
    lines = [f"{counted(sum(review_result.judged.values()), 'question')} judged: {judged}"]
    for agreement in review_result.agreements:
        kappa = f"kappa {agreement.kappa:.2f}" if agreement.kappa is not None else "no question in common"
        lines.append(
            f"{agreement.first} and {agreement.second}: {kappa}"
            + (f" on {counted(agreement.questions, 'question')}" if agreement.questions else "")
        )
    if review_result.poor_templates:
        lines.append(f"Templates that are bad more often than good: {', '.join(review_result.poor_templates)}")
    lines.append(
        f"{len(review_result.left_out):,} left out, {counted(accepted.questions.num_rows, 'question')}: "
        f"{out / 'questions.parquet'}"
    )
    return lines


def _as_json(review_result: Review, accepted: QuestionSet, out: Path) -> dict[str, Any]:
    return {
        "folder": str(out),
        "questions": accepted.questions.num_rows,
        "judged": dict(review_result.judged),
        "left_out": list(review_result.left_out),
        "poor_templates": list(review_result.poor_templates),
        "agreements": [vars(agreement) for agreement in review_result.agreements],
    }
