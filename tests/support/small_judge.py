"""A judge for tests: a Llama with random weights in a folder, as transformers saves it."""

from pathlib import Path

import torch

START = "<|endoftext|>"


def save_small_judge(folder: Path, *, positions: int = 64) -> Path:
    """The folder, with the model and a tokenizer of bytes; a chat's turn opens with another token than a text."""
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers
    from transformers import LlamaConfig, LlamaForCausalLM, PreTrainedTokenizerFast

    letters = [START, "<|im_start|>", "<|im_end|>", *sorted(pre_tokenizers.ByteLevel.alphabet())]
    tokenizer = Tokenizer(models.BPE({letter: id for id, letter in enumerate(letters)}, []))
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    named = {"bos_token": "<|im_start|>", "eos_token": "<|im_end|>", "unk_token": START}
    PreTrainedTokenizerFast(tokenizer_object=tokenizer, **named).save_pretrained(folder)
    torch.manual_seed(0)
    config = LlamaConfig(
        vocab_size=len(letters),
        hidden_size=16,
        intermediate_size=32,
        num_hidden_layers=2,
        num_attention_heads=2,
        max_position_embeddings=positions,
        initializer_range=0.5,  # far from uniform, so that every token has a surprise of its own
    )
    LlamaForCausalLM(config).save_pretrained(folder)
    return folder
