"""ONE FILE PER FAMILY: a way of modelling edits, behind the contract of `insnet.families.generator`."""

from insnet.families.autoregressive import Autoregressive
from insnet.families.gaps import Gaps
from insnet.families.generator import Generator
from insnet.families.insertion_transformer import InsertionTransformer
from insnet.families.insnet import InsNet

FAMILIES: dict[str, type[Generator]] = {
    "insnet": InsNet,
    "autoregressive": Autoregressive,
    "insertion_transformer": InsertionTransformer,
    "gaps": Gaps,
}
"""Every family by its name in config.json and in recipes."""
