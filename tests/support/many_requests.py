"""How a promise is tried on many random requests: each takes long, so a failing one is shown as it came, not shrunk."""

from hypothesis import Phase, settings

many_requests = settings(max_examples=40, deadline=None, phases=[Phase.explicit, Phase.reuse, Phase.generate])
