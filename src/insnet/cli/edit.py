"""`insnet edit`."""

import re
import sys
import textwrap
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from insnet.cli import options, terminal
from insnet.cli.decoding_options import as_settings, takes_decoding_options
from insnet.cli.writer import load_writer

if TYPE_CHECKING:
    from insnet.drafts.draft import Draft

_COLUMNS = 100  # of numbered words
_NO_BREAK = "\N{NO-BREAK SPACE}"
_SIGN = {"closed": "", "blank": "___", "optional": "(___)"}  # of open places
_STDIN = "-"


def _numbers_option(name: str, text: str) -> Any:
    return typer.Option(name, metavar="NUMBERS", help=text)


@takes_decoding_options
def edit(
    text: Annotated[
        str | None, typer.Argument(help="A text; ___ stands for a word or more to be written. Alone: shows its words.")
    ] = None,
    input_file: Annotated[
        Path | None,
        typer.Option("--input", metavar="FILE", help="A line that --json printed, to go on from; - is standard input."),
    ] = None,
    lock: Annotated[
        str | None, _numbers_option("--lock", "Words to keep, like 1,3-5; if nothing is to be filled, all else is new.")
    ] = None,
    unlock: Annotated[str | None, _numbers_option("--unlock", "Words to keep no longer.")] = None,
    delete: Annotated[str | None, _numbers_option("--delete", "Words to write something else for.")] = None,
    drop: Annotated[str | None, _numbers_option("--drop", "Words to take out, with nothing in their place.")] = None,
    ban: Annotated[
        list[str] | None,
        typer.Option("--ban", metavar="WORD", help="A word or phrase to write something else for, and never again."),
    ] = None,
    open_: Annotated[
        str | None, _numbers_option("--open", "Words behind which to write something; 0 is the beginning.")
    ] = None,
    close: Annotated[
        str | None, _numbers_option("--close", "Words behind which nothing is to be written; 0 is the beginning.")
    ] = None,
    rewrite: Annotated[bool, typer.Option("--rewrite", help="Write all anew that is not locked.")] = False,
    show: Annotated[
        bool, typer.Option("--show", help="Show the numbered words after the edits; write nothing.")
    ] = False,
    samples: options.SamplesOption = 1,
    seed: options.SeedOption = None,
    as_json: options.JsonOption = False,
    trace: options.TraceOption = False,
    length: options.LengthOption = None,
    reject: options.RejectOption = None,
    mode: options.ModeOption = None,
    model: options.ModelOption = None,
    device: options.DeviceOption = options.Device.auto,
    offline: options.OfflineOption = False,
    *,
    decoding: dict[str, Any],
) -> None:
    """Lock, delete and open places of a text by the numbers of its words, and write the rest.

    insnet edit "The dog runs around the park." --delete 3 -n 3
    """
    if (text is None) == (input_file is None):
        raise typer.BadParameter("give a text or --input, one of the two")
    if trace and not as_json:
        raise typer.BadParameter("--trace is part of the JSON output: add --json")
    edits = {"lock": lock, "unlock": unlock, "delete": delete, "drop": drop, "open": open_, "close": close}
    draft = _edited(_read(text, input_file), edits, ban or [])
    rewrites = rewrite or (bool(lock or unlock) and not draft.has_blanks)
    if show or not (rewrites or draft.has_blanks or (draft.is_open and delete)):
        _show(draft, as_json=as_json)
        return
    refused = options.read_refused(reject)
    if refused is not None:
        kept = [word for word in draft.words if word.is_locked or not rewrites]
        refused.check_required([word.text for word in kept if not word.is_symbol])
    settings = as_settings({"length": options.parse_length(length), "mode": mode, **decoding})
    draft = load_writer(model, device, offline=offline, mode=mode).draft(draft)
    write = draft.rewrite if rewrites else draft.refill
    _print(write(num_samples=samples, seed=seed, accept=refused, **settings), as_json=as_json, trace=trace)


def _read(text: str | None, path: Path | None) -> "Draft":
    """The draft to start from."""
    from insnet.drafts.draft import Draft
    from insnet.drafts.exchange import parsed

    if path is None:
        return Draft.of_text(text or "")
    content = sys.stdin.read() if str(path) == _STDIN else path.read_text(encoding="utf-8")
    lines = [line for line in content.split("\n") if line.strip()]
    if len(lines) != 1:
        raise ValueError(f"{path} holds {len(lines)} lines; expected one that --json printed")
    values = parsed(lines[0])
    if isinstance(values, dict) and "draft" in values:
        return Draft.of_dict(values["draft"])
    if isinstance(values, dict) and "keywords" in values:
        return _draft_of_result(values)
    return Draft.of_dict(values)


def _draft_of_result(values: dict[str, Any]) -> "Draft":
    """The draft of what `insnet generate --json` printed; its keywords are locked."""
    from insnet.drafts.draft import Draft
    from insnet.text.words import find_phrase

    text, keywords = values.get("text"), values["keywords"]
    if not isinstance(text, str) or not isinstance(keywords, list) or not all(isinstance(k, str) for k in keywords):
        raise ValueError("this is no result: expected a 'text' and a list of 'keywords'")
    spans, end = [], 0
    for keyword in filter(str.strip, keywords):
        plain = text.find(keyword, end)
        span = next(find_phrase(text, keyword, end), (plain, plain + len(keyword)))
        if span[0] >= 0:
            spans.append(span)
            end = span[1]
    return Draft.of_spans(text, spans)


def _edited(draft: "Draft", edits: dict[str, str | None], banned: list[str]) -> "Draft":
    """The draft after all edits, whose numbers are those of the draft as it came."""
    words, places = len(draft.words), len(draft.places)
    number = {name: _numbers(given, words, first=1) for name, given in edits.items() if name not in ("open", "close")}
    number |= {name: _numbers(edits[name], places, first=0) for name in ("open", "close")}
    draft = draft.lock(number["lock"]).unlock(number["unlock"]).open(number["open"]).close(number["close"])
    for word in sorted({*number["delete"], *number["drop"]}, reverse=True):  # from the end, so that numbers stay
        draft = draft.delete(word, leaves_blank=word in number["delete"])
    for phrase in banned:
        draft = draft.ban(phrase)
    return draft


def _numbers(given: str | None, count: int, *, first: int) -> list[int]:
    """The numbers of an option, counted from 0.

    >>> _numbers("1,3-5", 7, first=1)
    [0, 2, 3, 4]
    """
    found: list[int] = []
    for part in (given or "").split(",") if given is not None else ():
        match = re.fullmatch(r"\s*([0-9]{1,9})\s*(?:-\s*([0-9]{1,9})\s*)?", part)
        if match is None:
            raise typer.BadParameter(f"cannot read the numbers {given!r}; expected some like 1,3-5")
        least, most = int(match[1]), int(match[2] or match[1])
        last = count - 1 + first
        if not first <= least <= most <= last:
            raise ValueError(f"there is no {part.strip()} here: the numbers run from {first} to {last}")
        found += range(least - first, most - first + 1)
    return found


def _show(draft: "Draft", *, as_json: bool) -> None:
    """The text with its blanks, and its words with their numbers; locked ones in brackets."""
    if as_json:
        terminal.print_json({"text": draft.text, "draft": draft.as_dict()})
        return
    items: list[str] = []
    for number, (word, place) in enumerate(zip(draft.words, draft.places, strict=False), start=1):
        items += [_SIGN[place], f"{number}{_NO_BREAK}{f'[{word.text}]' if word.is_locked else word.text}"]
    items = list(filter(None, [*items, _SIGN[draft.places[-1]]]))
    print(str(draft))
    print(
        textwrap.fill("  ".join(items), _COLUMNS, break_long_words=False, break_on_hyphens=False).replace(
            _NO_BREAK, " "
        )
    )


def _print(drafts: "list[Draft]", *, as_json: bool, trace: bool) -> None:
    different = list({draft.text: draft for draft in drafts}.values())
    for draft in different:
        if as_json:
            assert draft.result is not None
            values = {**draft.result.as_dict(trace=trace), "text": draft.text, "draft": draft.as_dict()}
            terminal.print_json(values)
        else:
            locked = [span for word, span in zip(draft.words, draft.spans, strict=True) if word.is_locked]
            terminal.print_spans(draft.text, locked)
    if len(different) < len(drafts):
        terminal.note(f"{len(different)} instead of {len(drafts)} texts: the model found no others that differ")
