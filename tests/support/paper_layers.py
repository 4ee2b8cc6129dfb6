"""The layers of section 3.3, found with lists and in the paper's own words."""


def layers_by_the_papers_words(order, given, tau, log_prob):
    """The layer of every step; `log_prob`(step, slot, newest row) is what the model says.

    Layers are lists of steps, empty ones included until the end. A slot is the pair of neighbours on a canvas.
    """
    layers = [list(range(given)), *([step] for step in range(given, len(order)))]

    def canvas_before(layer):
        return [step for earlier in layers[:layer] for step in earlier]

    def slot_of(step, layer):
        canvas = canvas_before(layer)
        left = max((other for other in canvas if order[other] < order[step]), key=lambda other: order[other])
        right = min((other for other in canvas if order[other] > order[step]), key=lambda other: order[other])
        return left, right

    for step in range(given, len(order)):
        layer = next(number for number, steps in enumerate(layers) if step in steps)
        while layer > 1:
            slot = slot_of(step, layer - 1)
            if slot in [slot_of(other, layer - 1) for other in layers[layer - 1]]:
                break
            here, there = (
                log_prob(step, slot_of(step, number), max(canvas_before(number))) for number in (layer, layer - 1)
            )
            if not here - there <= tau:
                break
            layers[layer].remove(step)
            layers[layer - 1].append(step)
            layer -= 1
    effective = [layers[0], *(steps for steps in layers[1:] if steps)]
    return [next(number for number, steps in enumerate(effective) if step in steps) for step in range(len(order))]
