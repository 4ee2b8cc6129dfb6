"""The losses of a family, by its own objective unless told otherwise."""

from insnet.families.losses import LossContext


def losses_of(family, batch, **objective):
    """Terms by name; keywords are fields of the family's Objective."""
    return family.losses(batch, family.Objective(**objective), LossContext())
