"""The examples of docs/positions.md run as they stand."""

import doctest
import re
from pathlib import Path

DOCS = Path(__file__).parents[2] / "docs"
PAGE = (DOCS / "positions.md").read_text(encoding="utf-8")


def test_every_example_of_the_page_runs_as_it_stands():
    blocks = re.findall(r"^```python\n(.*?)^```$", PAGE, re.DOTALL | re.MULTILINE)
    test = doctest.DocTestParser().get_doctest("\n".join(blocks), {}, "positions.md", "docs/positions.md", 0)
    assert len(test.examples) == PAGE.count("\n>>> ") > 20  # none stands outside a block
    report = []
    outcome = doctest.DocTestRunner(verbose=False).run(test, out=report.append)
    assert outcome.failed == 0, "".join(report)
