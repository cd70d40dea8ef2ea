"""Is a user's family what the trainer takes it for? Asked before compute is spent on it.

    output     logits (B, T, V) for windows as long as the context and shorter ones; floating, finite
    loss       the first loss is within a nat of ln V
    gradients  reach every parameter, all finite
    causal     changing the tokens after t leaves everything up to t as it was, in training and evaluation
    members    a seed fixes the weights; two members compute together what each computes alone

Entries of the weights that start at 0 or near it are moved off it first: they could hide what they multiply.
"""

from collections.abc import Sequence
from math import log

import torch
from torch import Tensor, nn

from isoloss.errors import InputError
from isoloss.models import Family, Output, Shape, build_cohort
from isoloss.models.cohort import OneByOne, member_weights, restore_carried_state, set_generators
from isoloss.models.registry import users_code
from isoloss.training.objective import losses

SAME = 1e-4
"""Share of the largest logit that rounding may move: convolutions by FFT move 1e-5, most models nothing."""

NEAR_LN_V = 1.0
"""Nats. Untaught logits of variance s^2 cost s^2/2 over ln V: PyTorch's own linear head after a norm has 1/3,
a nat is 2. Below ln V no random target can be known."""

SHORT = 8
"""Tokens of a window as short as the evaluation by position uses."""

SMALL = 1e-3
"""Weights below it count as shut: training opens a layer's scale of 1e-5 within some updates."""


def check_family(
    kind: Family, shape: Shape, vocab: int, context: int, device: torch.device, window: int | None = None
) -> dict[str, str]:
    """What was found, by name, in windows of ``window`` tokens, by default as long as the context.

    Raises InputError naming the line of the user's file and what to mend.
    """

    def fresh(*seeds: int) -> nn.Module:
        model = build_cohort(kind, shape, vocab, context, list(seeds)).to(device)
        set_generators(model, [torch.Generator(device).manual_seed(0) for _ in seeds])
        return model

    cuda = [device] if device.type == "cuda" else []
    with users_code(kind, "mend that line"), torch.random.fork_rng(devices=cuda):
        torch.manual_seed(0)
        x_KBT, y_KBT = torch.randint(vocab, (2, 2, 2, window or context), device=device)
        model = fresh(0, 1)
        try:
            check_output(model, x_KBT, vocab)
            first_loss = check_loss(model, x_KBT, y_KBT, vocab)
            if x_KBT.shape[-1] == context:
                check_parameters(model)
            check_causal(fresh(0), x_KBT[:1], vocab)
            check_members(fresh(0, 1), [fresh(0), fresh(1)], x_KBT)
        except InputError as error:
            raise InputError(error.what, where=forward_line(kind, model), mend=error.mend) from None
    checked = dict.fromkeys(("output", "causal", "members", "gradients"), "checked")
    return checked | {"loss": first_loss}


def forward_line(kind: Family, model: nn.Module) -> str:
    """The user's file, and the line where its ``forward`` begins."""
    member = model.members[0] if isinstance(model, OneByOne) else model
    code = getattr(type(member).forward, "__code__", None)
    if code is None or code.co_filename != str(kind.file):
        return kind.place
    return f"{kind.place}, line {code.co_firstlineno}"


def check_output(model: nn.Module, x_KBT: Tensor, vocab: int) -> None:
    for x_KBt in (x_KBT, x_KBT[..., :SHORT]):
        if isinstance(model, OneByOne):
            for member, x_Bt in zip(model.members, x_KBt, strict=True):
                check_logits(member(x_Bt), (*x_Bt.shape, vocab), "B, T, V")
            continue
        output = model(x_KBt)
        if not isinstance(output, Output) or not output.logits:
            mend = "a stacked family returns isoloss.models.Output([logits_KBTV])"
            raise InputError(f"forward gave {type(output).__name__}", mend=mend)
        for logits_KBtV in output.logits:
            check_logits(logits_KBtV, (*x_KBt.shape, vocab), "K, B, T, V")
        for log_p_KBt in output.exit_log_p or []:
            check_logits(log_p_KBt, x_KBt.shape, "K, B, T")


def check_logits(values: object, shape: Sequence[int], axes: str) -> None:
    mend = f"return a floating tensor of shape ({axes}) = {tuple(shape)}"
    if not isinstance(values, Tensor):
        raise InputError(f"forward gave {type(values).__name__}, not a tensor", mend=mend)
    if values.shape != shape or not values.is_floating_point():
        raise InputError(f"forward gave {values.dtype} of shape {tuple(values.shape)}", mend=mend)
    if not values.isfinite().all():
        raise InputError("forward gave NaN or infinity, untrained", mend="look for 0/0, log(0) or overflow")


def check_loss(model: nn.Module, x_KBT: Tensor, y_KBT: Tensor, vocab: int) -> str:
    """The first loss beside ln V, after one backward pass."""
    ln_V, first = log(vocab), 0.0
    loss = losses(model(x_KBT), y_KBT)
    for exit_KBT in loss.exits:
        first = exit_KBT.mean().item()
        if abs(first - ln_V) > NEAR_LN_V:
            what = f"the first loss is {first:.2f} nats, not within {NEAR_LN_V:g} of ln V = {ln_V:.2f}"
            raise InputError(what, mend="start with smaller logits: a head of standard deviation 0.02")
    total = loss.total.mean()
    if not total.requires_grad:
        raise InputError("no gradient reaches the weights", mend="leave out detach() and no_grad()")
    total.backward()
    for name, parameter in model.named_parameters():
        if parameter.grad is not None and not parameter.grad.isfinite().all():
            raise InputError(f"the gradient of {name} is not finite", mend="look for sqrt(0), 0/0 or log(0)")
    return f"{first:.2f} at first, ln V = {ln_V:.2f}"


def check_parameters(model: nn.Module) -> None:
    """After a backward pass. What a long window alone has a use for gets no gradient from a short one."""
    for name, parameter in model.named_parameters():
        if parameter.grad is None:
            mend = "use it in forward; or register_buffer for what is not trained, since N counts parameters"
            raise InputError(f"no gradient reaches {name}", mend=mend)


def check_causal(model: nn.Module, x_KBT: Tensor, vocab: int) -> None:
    """Change all tokens but the first ``kept``, for cuts near both ends and in the middle."""
    T = x_KBT.shape[-1]
    open_what_is_shut(model)
    for train in (True, False):
        before = outputs(model, x_KBT, train=train)
        if differ(outputs(model, x_KBT, train=train), before).any():
            what = "forward gives other logits for the same tokens the second time"
            raise InputError(what, mend="keep nothing from call to call")
        for kept in sorted({1, 2, 3, T // 2, T // 2 + 1, T - 1} & set(range(1, T))):
            changed_KBT = (x_KBT + torch.randint_like(x_KBT, 1, vocab)) % vocab
            changed_KBT[..., :kept] = x_KBT[..., :kept]
            moved_KBT = differ(outputs(model, changed_KBT, train=train), before)
            if len(seen := moved_KBT[..., :kept].nonzero()):
                token = int(seen[0][-1]) + 1
                what = f"logits at token {token} change with later ones: it sees what it is to predict"
                raise InputError(what, mend="look at masks, shifts, padding and norms over tokens")


def check_members(model: nn.Module, alone: Sequence[nn.Module], x_KBT: Tensor) -> None:
    for k, member in enumerate(alone):
        for name, weight in member_weights(model, k).items():
            if not torch.equal(weight, member.get_parameter(name)):
                what = f"{name} starts otherwise each time, though the seed is the same"
                raise InputError(what, mend="draw initial weights with torch's own generator")
    open_what_is_shut(model)
    together = outputs(model, x_KBT, train=False)
    for k, member in enumerate(alone):
        member.load_state_dict(member_weights(model, k), strict=False)
        if differ(outputs(member, x_KBT[k : k + 1], train=False), together[k : k + 1]).any():
            what = f"member {k + 1} of a cohort computes other logits than by itself"
            raise InputError(what, mend="let nothing pass along the member axis, the first of every tensor")


def outputs(model: nn.Module, x_KBT: Tensor, *, train: bool) -> Tensor:
    """Logits and gates of all exits, side by side, (K, B, T, ...); with the same dropout at every call."""
    model.train(train)
    restore_carried_state(model, {})
    set_generators(model, [torch.Generator(x_KBT.device).manual_seed(0) for _ in x_KBT])
    with torch.random.fork_rng(devices=[]), torch.no_grad():
        torch.manual_seed(0)
        output = model(x_KBT)
    gates = [log_p_KBT[..., None] for log_p_KBT in output.exit_log_p or []]
    values = torch.cat([*output.logits, *gates], dim=-1).float()
    check_logits(values, values.shape, "")
    return values


def differ(a_KBTX: Tensor, b_KBTX: Tensor) -> Tensor:
    """Where they differ by more than rounding, (K, B, T)."""
    return ((a_KBTX - b_KBTX).abs() > SAME * b_KBTX.abs().max()).any(-1)


@torch.no_grad()
def open_what_is_shut(model: nn.Module) -> None:
    """Move what is ``SMALL`` by as much as embeddings have: who is causal is so whatever the weights are."""
    for weight in model.parameters():
        weight += 0.02 * torch.randn_like(weight) * (weight.abs() < SMALL)
