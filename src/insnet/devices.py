"""The one answer to where a model runs."""

import torch

PRECISIONS = ("auto", "float32", "bf16")
DEVICES = ("auto", "cpu", "cuda")  # Apple's mps knows no float64, which noise is drawn in


def find_device(name: str) -> torch.device:
    """The device that a name stands for; `auto` is a GPU if there is one."""
    if name not in DEVICES:
        raise ValueError(f"device is {name!r}; expected {', '.join(DEVICES[:-1])} or {DEVICES[-1]}")
    has_gpu = torch.cuda.is_available()
    if name == "cuda" and not has_gpu:
        raise ValueError("device is 'cuda', but this machine has no usable GPU; use cpu or auto")
    return torch.device("cuda" if has_gpu and name != "cpu" else "cpu")


def computes_in_half(device: torch.device, precision: str) -> bool:
    """Whether a model's large matrices are multiplied in bfloat16: `auto` does so on processors with units for it."""
    if precision not in PRECISIONS:
        raise ValueError(f"precision is {precision!r}; expected {', '.join(PRECISIONS[:-1])} or {PRECISIONS[-1]}")
    return precision == "bf16" or (precision == "auto" and device.type == "cpu" and cpu_has_bf16())


def cpu_has_bf16() -> bool:
    """Whether the processor multiplies matrices in bfloat16 itself, several times as fast as in float32."""
    known: dict[str, bool] = getattr(torch.cpu, "get_capabilities", dict)()  # newer than the oldest torch we run on
    return bool(known.get("avx512_bf16") or known.get("amx_bf16") or known.get("bf16"))
