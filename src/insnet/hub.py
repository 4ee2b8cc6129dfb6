"""Our model folders for transformers: after `import insnet.hub`, AutoConfig and AutoModel read and write them.

    import insnet.hub, transformers
    model = transformers.AutoModel.from_pretrained("runs/mine")
    model.save_pretrained("elsewhere")          # insnet.load("elsewhere") reads it

Apart from this module, insnet needs no transformers. AutoTokenizer stays out: what a word is, and what joins it, is
decided before the tokenizers library sees a text, so that tokenizer.json alone would encode another text than ours.
"""

import dataclasses
import shutil
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, ClassVar

import torch
import transformers
from safetensors import safe_open
from torch import Tensor
from transformers.utils.generic import ModelOutput
from transformers.utils.hub import cached_file

from insnet.families import FAMILIES
from insnet.families.generator import Generator
from insnet.families.losses import LossContext, learned_nats
from insnet.families.quantize import SCALE_SUFFIX, restored
from insnet.families.storage import MODEL_TYPE, read_weights
from insnet.randomness import mix
from insnet.text.batching import TokenBatch
from insnet.text.specials import BOS, EOS, PAD
from insnet.text.tokenizer import load_tokenizer

_TOKENIZER = ("tokenizer.json", "tokenizer_config.json")
_COMPANIONS = (*_TOKENIZER, "generation_config.json", "README.md", "card.json")


class InsNetHubConfig(transformers.PreTrainedConfig):  # type: ignore[misc, no-untyped-call, unused-ignore]
    """config.json as `insnet.families.storage` writes it: the family's name and the fields of its Config."""

    model_type: ClassVar[str] = MODEL_TYPE
    attribute_map: ClassVar[dict[str, str]] = {
        "vocab_size": "vocabulary_size",
        "hidden_size": "width",
        "num_hidden_layers": "layers",
        "num_attention_heads": "heads",
    }
    family: str = "insnet"

    def fresh_model(self) -> Generator:
        """A model of this family and size with fresh weights."""
        if self.family not in FAMILIES:
            raise ValueError(f"config.json names the family {self.family!r}; this version knows {', '.join(FAMILIES)}")
        kind = FAMILIES[self.family]
        names = [field.name for field in dataclasses.fields(kind.Config) if hasattr(self, field.name)]
        return kind(kind.Config(**{name: getattr(self, name) for name in names}))


@dataclass
class InsNetHubOutput(ModelOutput):  # type: ignore[misc, no-untyped-call, unused-ignore]
    """What a forward pass gives."""

    loss: Tensor | None = None
    """All terms' nats together, divided by the number of insertions: what training minimises."""
    terms: dict[str, Tensor] | None = None
    """Nats per decision of each term ("token", and for insertion families "slot" and "stop")."""


class InsNetHubModel(transformers.PreTrainedModel):  # type: ignore[misc, no-untyped-call, unused-ignore]
    """One of our families as a transformers model, with the same names of weights as in our own files."""

    config_class = InsNetHubConfig
    config: InsNetHubConfig
    main_input_name = "input_ids"
    family: Generator
    """The model itself, with the contract of insnet.families.generator."""

    def __init__(self, config: InsNetHubConfig) -> None:
        super().__init__(config)
        family = config.fresh_model()
        # Both modules share one set of tables, so that weights have the same names here and there, and whatever is
        # loaded into one is in the other. As a submodule the family would put its prefix before every name.
        self.__dict__["family"] = family
        self._parameters, self._buffers, self._modules = family._parameters, family._buffers, family._modules
        self.post_init()  # type: ignore[no-untyped-call, unused-ignore]

    def forward(
        self,
        input_ids: Tensor,
        attention_mask: Tensor | None = None,
        labels: Tensor | None = None,
        *,
        given: Tensor | None = None,
        starts_word: Tensor | None = None,
        seeds: Tensor | None = None,
    ) -> InsNetHubOutput:
        """The loss of texts (B, L): <bos> ... <eos>, then <pad>.

        `given` (B, L) marks words on the canvas from the start, `starts_word` (B, L) where words begin (left out, the
        tokenizer beside the model tells). `seeds` (B,) decide the insertion orders: left out, new ones are drawn from
        torch's generator while the model trains, and each text has its own otherwise. The texts are their own labels;
        `labels` is taken so that trainers can pass it, and not looked at.
        """
        del labels
        is_token = input_ids != PAD if attention_mask is None else attention_mask.bool()
        is_border = (input_ids == BOS) | (input_ids == EOS)
        if not bool((input_ids[:, 0] == BOS).all()):
            raise ValueError("input_ids do not begin with <bos>; a text is <bos> ... <eos>, then <pad>")
        batch = TokenBatch(
            tokens=input_ids.masked_fill(~is_token, PAD),
            lengths=is_token.sum(dim=1),
            given=(is_border if given is None else is_border | given.bool()) & is_token,
            starts_word=self._starts_word(input_ids) if starts_word is None else starts_word.bool(),
            seeds=self._seeds(input_ids.masked_fill(~is_token, PAD)) if seeds is None else seeds,
        )
        terms = self.family.losses(batch, self.family.Objective(), LossContext())
        return InsNetHubOutput(
            loss=learned_nats(terms) / terms["token"].count.clamp_min(1),
            terms={name: term.nats / term.count.clamp_min(1) for name, term in terms.items()},
        )

    def _starts_word(self, tokens: Tensor) -> Tensor:
        """Where words begin (B, L), by the tokenizer beside the model."""
        return self._word_starts.to(tokens.device)[tokens]

    @cached_property
    def _word_starts(self) -> Tensor:
        """True (V,) for tokens that begin a word."""
        try:
            paths = [cached_file(self.config.name_or_path or "", name) for name in _TOKENIZER]
        except OSError:
            raise ValueError("give starts_word: there is no tokenizer beside the model to tell words by") from None
        return load_tokenizer(Path(str(paths[0])).parent).lexicon()["starts_word"]

    def _seeds(self, tokens: Tensor) -> Tensor:
        """One seed (B,) for each text (B, L): a new one while training, its own otherwise."""
        if self.training:
            return torch.randint(2**62, tokens.shape[:1], device=tokens.device)
        place = torch.arange(tokens.shape[1], device=tokens.device)
        return mix(place, tokens).masked_fill(tokens == PAD, 0).sum(dim=1)

    @classmethod
    def from_pretrained(cls, pretrained_model_name_or_path: Any, *arguments: Any, **options: Any) -> Any:
        """The model of a folder; weights that were stored in eight bits are restored first, as `insnet.load` does."""
        folder = Path(pretrained_model_name_or_path or "")
        if pretrained_model_name_or_path is None or not _is_quantized(folder):
            return super().from_pretrained(pretrained_model_name_or_path, *arguments, **options)
        options.setdefault("config", InsNetHubConfig.from_pretrained(folder))
        weights = restored(read_weights(folder)[0])
        model = super().from_pretrained(None, *arguments, state_dict=weights, **options)
        model.config._name_or_path = str(folder)
        return model

    def train(self, mode: bool = True) -> "InsNetHubModel":
        """Dropout on or off, in the family as well."""
        super().train(mode)
        self.family.training = mode
        return self

    @torch.no_grad()
    def initialize_weights(self) -> None:
        """Gives whatever no file has filled the values of a fresh model."""
        tensors = self.state_dict(keep_vars=True)
        missing = {name: tensor for name, tensor in tensors.items() if not getattr(tensor, "_is_hf_initialized", False)}
        if not missing or any(tensor.is_meta for tensor in missing.values()):
            return
        fresh = self.config.fresh_model().state_dict()
        for name, tensor in missing.items():
            tensor.copy_(fresh[name])

    def get_input_embeddings(self) -> torch.nn.Module:
        """The token embedding, which the token head is tied to."""
        return self.family.get_submodule("embedding")

    def save_pretrained(self, save_directory: Any, *arguments: Any, **options: Any) -> None:
        """Writes a folder that `insnet.load` reads; tokenizer and settings come from the model's own folder."""
        super().save_pretrained(save_directory, *arguments, **options)
        source, target = Path(self.config.name_or_path or "."), Path(save_directory)
        for name in _COMPANIONS:
            if self.config.name_or_path and (source / name).is_file() and source.resolve() != target.resolve():
                shutil.copyfile(source / name, target / name)


def _is_quantized(folder: Path) -> bool:
    """Whether a model folder holds weights in eight bits; only names are read."""
    for path in folder.glob("model*.safetensors"):
        with safe_open(path, framework="pt") as file:
            if any(name.endswith(SCALE_SUFFIX) for name in file.keys()):  # noqa: SIM118 (the file is no mapping)
                return True
    return False


transformers.AutoConfig.register(MODEL_TYPE, InsNetHubConfig, exist_ok=True)
transformers.AutoModel.register(InsNetHubConfig, InsNetHubModel, exist_ok=True)
