"""Words that a text had better not hold unless somebody asked for them: slurs, sexual words and coarse ones.

A filter for what a model adds of its own accord, and, with a longer list, for what it learns from. Words are judged,
not what is said with them: a hateful sentence can be made of decent words.

On the lists are words whose first meaning to most readers is the bad one, or whose bad meaning weighs so much that no
innocent sentence is worth it ("cock", since a hen's may be a rooster). Not on them are names that groups use for
themselves (gay, Jew), plain words of health and law (breast, sperm, sexual, disabled), and words that are mostly
innocent (prick, queer, nip). They are matched as whole words: "Essex", "cockpit" and "Scunthorpe" hold none.

The lists are written in rot13, so that nobody has to read them who only reads the code. To see or change them:
`python -m encodings.rot_13 < src/insnet/text/decency.py`.
"""

import codecs
import re
from collections import Counter
from collections.abc import Iterable, Iterator

from insnet.text.inflection import with_ending, with_s

# One word per entry. "word" also stands for its plural, "word+" for what a verb becomes, too (-s, -ed, -ing, -er), and
# "word." for itself alone.
_SLURS = """
    ornare ovzob ovgpu+ ovgpul. oynpxnzbbe obuhax obbat pnzry-wbpxrl puvanzna. puvanzra. puvarr. puvat-pubat.
    puvax puvaxl. pbbyvr pbba pevccyr. pevccyrf. phag pheel-zhapure qntb qnexvr qnexl qlxr snt snttbg snttl. sntbg
    sybbml shpxgneq tbyyvjbt tbbx ternfronyy tlccrq. tlccb unys-oerrq unys-pnfgr uneybg ur-fur urro ubzb ubaxl
    vawha wnc wrjobl wrjrff wvtnobb whatyr-ohaal xnssve xvxr xenhg ynqlobl yrfob yrmmvr yrmml yvogneq zvqtrg
    zbatbybvq zhynggb arterff arteb artebrf. avttn. avttnu avttre avttrevfu. bpgbebba cnxv cvppnavaal cvpxnavaal
    cvxrl cbynpx cbbsgre cbepu-zbaxrl dhnqebba enturnq erqfxva ergneq ergneqrq. fnzob. fnaq-avttre fur-znyr furral
    furznyr fxnax fxnaxl. fynag-rlr fynag-rlrq. fyhg fyhggl. fbqbzvgr fcnfgvp fcnm fcnmm fcvp fcvpx fdhnj fgehzcrg
    gubg. gbjryurnq genaavr genaal gebyybc gjng jrgonpx juber+ jubevfu. jvaqbj-yvpxre jbt jbc lvq mvccreurnq
"""
_SEXUAL = """
    nany. nanyyl. nahf. ncuebqvfvnp nefr nefrubyr nff. nffrf. nffubyr oqfz. orfgvnyvgl. oybj-wbo oybjwbo obare
    obbo obbovrf. ohttre+ ohttrel. ohxxnxr. ohgg-cyht ohggubyr ohggbpx ohggcyht pnztvey pngubhfr pyrnintr. pyvg
    pyvgbevf. pyhfgreshpx pbpx pbpx-fhpxre pbpxfhpxre pbpxfhpxvat. phz. phzfubg phaavyvathf. qrrcguebng+ qvpx
    qvpxurnq qvpxvfu. qvyqb qbzvangevk. rwnphyngr+ rwnphyngvba rerpgvba. rerpgvbaf. rebgvp. rebgvpn. rebgvpnyyl.
    rebgvpvfz. sryyngvb. sbbgwbo sberfxva shpx+ shpxnoyr. shpxrq-hc. shpxurnq shpxhc shpxjvg tnat-onat tnat-encr+
    tnatonat+ travgny travgnyvn. unaq-wbo unaqwbo uneq-ba uneqba uragnv. ubbxre ubeavrfg. ubeal. vaprfg.
    vaprfghbhf. wnpx-bss wrex-bss wvfz. wvmm xvaxl. ynovn. ync-qnapr yncqnapr znfgheongr+ znfgheongvba znfgheongbe
    zvys zvaqshpx zbyrfg+ zbyrfgngvba zbyrfgre zbgure-shpxre zbgureshpxre zbgureshpxvat. arpebcuvyvn. arpebcuvyvnp
    avccyr ahqrf. alzcub alzcubznavnp betnfz betnfzvp. betl birefrkrq. cnrqbcuvyr cnrqbcuvyvn. crqbcuvyr
    crqbcuvyvn. cravyr. cravf cunyyhf cvzc+ cbea. cbeab cbeabtencuvp. cbeabtencul. cbeafgne cebfgvghgr+
    cebfgvghgvba. chffl encr+ encvfg erpghz. evzwbo fpuybat fpebghz frzra. frk. frkvre. frkvrfg. frkcbg frkg
    frkgvat. frkl. fbqbzvmr+ fbqbzl. fgevccre fgevcgrnfr grfgvpyr guerrfbzr gvgf. gvggl gbcyrff. hcfxveg. intvan
    intvany. ivoengbe ihyin jnax+ juberubhfr
"""
_COARSE = """
    nefrjvcr nff-xvffre nffjvcr onfgneq oryyraq obyybpxf. ohyyfuvg+ ohyyfuvggre qvcfuvg qbhpur qbhpuront qhzonff
    ubefrfuvg. wnpxnff cvff+ cvffl. fuvg+ fuvgr. fuvgurnq fuvgubyr fuvgybnq fuvggl. fznegnff gbffcbg gheq jnaxre
"""
_VIOLENT = """
    orurnq+ oybbq-fbnxrq. oybbq-fcnggrerq. oybbq-fgnvarq. oybbqongu oybbqvrq. oybbqfgnvarq. oyhqtrba+ ohgpurerq.
    pnaavony pnaavonyvfz. puneerq. pbecfr. pbecfrf. qrpncvgngr+ qrpncvgngvba qvfrzobjry+ qvfrzobjryyrq. qvfsvther+
    qvfzrzore+ qvfzrzorezrag ragenvyf. rivfprengr+ trabpvqny. trabpvqr tvcfl tbevrfg. tbel. tbhtr+ tlcfl urnguraf.
    vzcnyr+ ylapurq. ylapuvat ylapuvatf. znvz+ znffnper+ zhgvyngr+ zhgvyngvba bireqbfr+ fnintrf. frys-unez
    frys-unezvat. frys-zhgvyngvba. fynhtugrerq. fynhtugrevat. fgno+ fgenatyr+ fgenathyngvba fhvpvqny. fhvpvqr
    gbegher+ gbeghere
"""  # graphic violence, suicide, and names for peoples that old books use with contempt

_ALSO_NAMES = frozenset({"Qvpx"})  # spelt with a capital, these are no bad words
_WORD = re.compile(r"[^\W_]+(?:['’-][^\W_]+)*")


def indecent_words(text: str) -> list[str]:
    """The slurs, sexual and coarse words of a text, as they stand there, repeats included.

    >>> indecent_words("A cockpit in Essex.")
    []
    """
    return list(_found(text, INDECENT_WORDS))


def is_decent(text: str, given: Iterable[str] = ()) -> bool:
    """Whether nobody but those who gave words put a bad one into the text: each that is `given` excuses one like it."""
    added = Counter(map(str.lower, indecent_words(text)))
    for phrase in given:
        added.subtract(map(str.lower, indecent_words(phrase)))
    return max(added.values(), default=0) <= 0


def unfit_words(text: str) -> list[str]:
    """The words for which a text should not be learned from: the same, graphic violence and suicide."""
    return list(_found(text, UNFIT_WORDS))


def _found(text: str, words: frozenset[str]) -> Iterator[str]:
    for match in _WORD.finditer(text):
        word = match.group().removesuffix("'s").removesuffix("’s")
        yield from (part for part in _readings(word) if part.lower() in words and part not in _NAMES)


def _readings(word: str) -> Iterable[str]:
    """A word, or the words that hyphens join to it, unless it is on a list as a whole."""
    return [word] if word.lower() in UNFIT_WORDS else re.split("['’-]", word)


def _inflected(entry: str) -> set[str]:
    """The forms that an entry stands for.

    >>> sorted(_inflected("maim+"))
    ['maim', 'maimed', 'maimer', 'maimers', 'maiming', 'maims']
    >>> sorted(_inflected("pansy") | _inflected("torn."))
    ['pansies', 'pansy', 'torn']
    """
    word = entry.rstrip("+.")
    if entry.endswith("."):
        return {word}
    forms = {word, with_s(word)}
    if entry.endswith("+"):
        doer = with_ending(word, "er")
        forms |= {with_ending(word, "ed"), with_ending(word, "ing"), doer, with_s(doer)}
    return forms


def _words(*lists: str) -> frozenset[str]:
    entries = codecs.decode(" ".join(lists), "rot13").split()
    return frozenset(form for entry in entries for form in _inflected(entry))


_NAMES = frozenset(codecs.decode(name, "rot13") for name in _ALSO_NAMES)
INDECENT_WORDS = _words(_SLURS, _SEXUAL, _COARSE)
"""Every form of every slur, sexual and coarse word, in lower case: what a model may be forbidden to insert."""
UNFIT_WORDS = INDECENT_WORDS | _words(_VIOLENT)
"""The same, with words of graphic violence and suicide: what text to learn from should not hold."""
