"""Drafts in, requests out, and drafts of the texts that a model then writes."""

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from insnet.decoding.request import Request
from insnet.drafts.stretches import assembled, gaps_of, stretches_of
from insnet.drafts.words import Place, text_of
from insnet.text.words import Literal

if TYPE_CHECKING:
    from insnet.drafts.draft import Draft
    from insnet.model import Result


def filled(draft: "Draft", num_samples: int | None, options: dict[str, Any]) -> "Draft | list[Draft]":
    """The draft with its open places filled by its model."""
    if draft.model is None:
        raise ValueError("the draft has no model to write with: give it one by model.draft(draft)")
    banned = options.pop("banned", ())
    if not isinstance(banned, str):  # which is refused where options are checked
        banned = (*draft.banned, *banned)
    result = draft.model.fill(request_of(draft), num_samples, banned=banned, **options)
    return [_after(draft, each) for each in result] if isinstance(result, list) else _after(draft, result)


def request_of(draft: "Draft") -> Request:
    """What a model is asked for: the stretches of a draft and the gaps around them, of which all but the optional ones
    must get a word. A first stretch in lower case begins no text, so that something is written before it."""
    gaps, stretches = gaps_of(draft.places), stretches_of(draft.words, draft.places)
    opens_start, opens_end = gaps[0] is not Place.CLOSED, gaps[-1] is not Place.CLOSED
    optional = {gap for gap, place in enumerate(gaps) if place is Place.OPTIONAL}
    if stretches and stretches[0][0].text[0].islower():
        optional -= {0}
    literals = [
        Literal(
            text_of(own),
            joins_left=own[0].joins_left and (number > 0 or opens_start),
            joins_right=own[-1].joins_right and (number < len(stretches) - 1 or opens_end),
        )
        for number, own in enumerate(stretches)
    ]
    return Request(tuple(literals), opens_start, opens_end, fills_blanks=True, optional=frozenset(optional))


def _after(draft: "Draft", result: "Result") -> "Draft":
    """The draft once a model has filled its places."""
    stretches = stretches_of(draft.words, draft.places)
    words, places = assembled(result.text, result.spans, stretches, gaps_of(draft.places))
    return replace(draft, words=words, places=places, result=result)
