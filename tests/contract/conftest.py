"""Every promise is tested for every family in FAMILIES with whole words and with pieces; a new family comes along."""

import pytest
from small_models import KINDS, small_model

from insnet.families import FAMILIES


@pytest.fixture(params=list(FAMILIES))
def family_name(request):
    return request.param


@pytest.fixture(params=KINDS)
def kind(request):
    return request.param


@pytest.fixture
def model(family_name, kind):
    return small_model(family_name, kind)
