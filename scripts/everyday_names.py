"""Names in example sentences: a corpus where every third sentence is about the same two people teaches their names."""

import random
import re

_MEN = "Tom Sami Ziri Dan Yanni Boldi Fadil Skura Mennad Claudio Gabor Felix"
_WOMEN = "Mary Layla Linda Rima Baya"
OVERUSED = dict.fromkeys(_MEN.split(), "he") | dict.fromkeys(_WOMEN.split(), "she")
KEPT = 0.1  # share of sentences about them that stay, under other names

_HE = """
    Adam Ahmed Alan Albert Alex Ali Andrew Anthony Arthur Ben Bill Brian Carlos Charles Chris Colin Daniel David Dennis
    Diego Edward Eric Ethan Frank Fred Gary George Gordon Greg Hans Harry Henry Hugo Ian Ivan Jack Jacob James Jason Jim
    Joe John Jonas Joseph Juan Karl Kenji Kevin Leo Liam Lucas Luke Marco Mark Martin Matt Max Michael Miguel Mike Nick
    Noah Oliver Omar Oscar Pablo Patrick Paul Peter Philip Ralph Ravi Ray Richard Robert Roger Ron Ryan Sam Scott Simon
    Stefan Steve Theo Thomas Tim Tony Victor Walter Will
"""
_SHE = """
    Alice Amelia Amy Ana Andrea Angela Anna Anne Aisha Barbara Bella Beth Carla Carol Chloe Clara Claire Diana Donna
    Elena Elisa Ella Emily Emma Eva Fatima Fiona Grace Hannah Helen Ines Irene Isabel Jane Janet Jennifer Jessica Joan
    Julia Karen Kate Laura Leila Lena Lily Lisa Lucy Maria Marie Maya Mei Mia Monica Nadia Nancy Naomi Nina Nora Olga
    Olivia Paula Priya Rachel Rita Rosa Ruth Sally Sandra Sara Sofia Sonia Sophie Susan Teresa Tina Vera Wendy Yuki Zoe
"""
NAMES = {"he": _HE.split(), "she": _SHE.split()}
_OVERUSED = re.compile(rf"\b(?:{'|'.join(OVERUSED)})\b")


def renamed(line: str, dice: random.Random) -> str | None:
    """The line with other people in place of overused ones, or nothing: most such lines are left out."""
    found = sorted(set(_OVERUSED.findall(line)))
    if not found:
        return line
    if dice.random() > KEPT:
        return None
    new: dict[str, str] = {}
    for name in found:
        free = [other for other in NAMES[OVERUSED[name]] if other not in new.values() and other not in line]
        new[name] = dice.choice(free)
    return _OVERUSED.sub(lambda match: new[match[0]], line)
