"""The settings of a decoder: five tables, flat by name, refused in a sentence where they make no sense."""

import math

import pytest

from insnet.decoding.config import TABLE_OF_SETTING, GenerationConfig


def test_settings_are_flat_by_name_and_survive_a_round_trip():
    config = GenerationConfig.of({"top_k": 7}, mode="parallel", revise=2, max_words=30)
    assert (config.sampling.top_k, config.rounds.mode) == (7, "parallel")
    assert (config.selection.revise, config.bounds.max_words) == (2, 30)
    assert GenerationConfig.of(config.flat()) == config
    assert set(config.flat()) == set(TABLE_OF_SETTING)
    assert config.changed() == config and config.changed(top_k=5).changed(top_k=7) == config
    assert GenerationConfig.of(temperature=2).sampling.temperature == 2  # a whole number will do for a number


WRONG = [
    ({"temperature": 0}, "temperature is 0; expected a number above 0"),
    ({"temperature": math.inf}, "temperature is inf"),
    ({"temperature": math.nan}, "temperature is nan"),
    ({"temperature": "2"}, "temperature is '2'; expected a number"),
    ({"final_temperature": -1}, "final_temperature is -1; expected 0 or a number above it"),
    ({"top_p": 0}, "top_p is 0; expected a share above 0"),
    ({"top_k": -1}, "top_k is -1; expected 0 or more"),
    ({"top_k": 2.5}, "top_k is 2.5; expected a whole number"),
    ({"top_k": True}, "top_k is True; expected a whole number"),
    ({"min_p": 1.5}, "min_p is 1.5; expected a share from 0 to 1"),
    ({"stopping": "maybe"}, "stopping is 'maybe'; expected one of rehearsed, counted"),
    ({"rehearsals": 0}, "rehearsals is 0; expected 1 or more"),
    ({"count_quantile": 0.6, "count_spread": 0.5}, r"count_spread is 0\.5; expected 0 or a share below 0\.4"),
    ({"min_words": 9, "max_words": 8}, "min_words 9 is above max_words 8"),
    ({"min_words": -1}, "min_words is -1; expected 0 or more"),
    ({"mode": "both"}, "mode is 'both'; expected one of sequential, parallel"),
    ({"mode": 3}, "mode is 3; expected a word"),
    ({"decent": 1}, "decent is 1; expected True or False"),
    ({"parallel_mass": 0}, "parallel_mass is 0; expected a share"),
    ({"rounds": -1}, "rounds is -1; expected 0 or more"),
    ({"candidates": 0}, "candidates is 0; expected 1 or more"),
    ({"candidate_choice": "best"}, "candidate_choice is 'best'; expected one of consensus, likelihood, both"),
    ({"candidate_orders": 0}, "candidate_orders is 0"),
    ({"revise_share": 0}, "revise_share is 0; expected a share"),
    ({"temprature": 1}, "unknown generation setting 'temprature'; did you mean 'temperature'"),
]


@pytest.mark.parametrize(("settings", "told"), WRONG)
def test_impossible_settings_are_refused_in_a_sentence(settings, told):
    with pytest.raises(ValueError, match=told) as refused:
        GenerationConfig.of(settings)
    assert "\n" not in str(refused.value)


def test_parallel_mode_may_have_a_quantile_of_its_own():
    config = GenerationConfig.of(count_quantile=0.6, parallel_count_quantile=0.5)
    assert config.length_quantile == 0.6
    assert config.changed(mode="parallel").length_quantile == 0.5
    assert GenerationConfig.of(count_quantile=0.6, mode="parallel").length_quantile == 0.6


def test_untruncated_is_the_model_itself_one_by_one_within_the_same_bounds():
    config = GenerationConfig.of(mode="parallel", rounds=3, top_p=0.5, repetition_penalty=2.0, max_words=9, revise=4)
    expected = {"top_k": 0, "slot_mass": 1.0, "stopping": "sampled", "no_repeat_ngram": 0, "max_words": 9}
    assert config.untruncated() == GenerationConfig.of(expected, decent=False)
