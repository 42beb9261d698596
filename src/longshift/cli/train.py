"""`longshift train`: one run, from flags or a TOML file."""

from __future__ import annotations

from contextlib import nullcontext
from pathlib import Path
from typing import Annotated, Any

import typer

from longshift.cli.common import JsonFlag, QuietFlag, caution, console, errors, print_json, print_table, progress
from longshift.errors import UsageError
from longshift.toml import parse_value, read_toml

TRAIN_HELP = """Train one method and keep the run in a folder.

Examples:

    longshift train --data digits --target ink --method ndcl --steps 300

    longshift train --data PACS.zip --benchmark PACS --setting Duality --target A --method ndcl --set alpha=0.3

    longshift train --config run.toml          # the same keys, hyper-parameters under [hparams]

    longshift train --resume runs/ndcl-ink-0   # go on after a kill or Ctrl-C
"""


def register(app: typer.Typer) -> None:
    """Add the verb."""
    app.command("train", help=TRAIN_HELP)(train)


def train(
    data: Annotated[
        str | None, typer.Option(help="Folder domain/class/image, .zip, .csv, .parquet, .npz (vectors), or 'digits'.")
    ] = None,
    benchmark: Annotated[
        str | None, typer.Option(help="VLCS, PACS, OfficeHome or DomainNet: use published counts.")
    ] = None,
    setting: Annotated[
        str | None, typer.Option(help="TotalHeavyTail, Duality, GINIDG, Cross, Balanced, Natural or a counts file.")
    ] = None,
    target: Annotated[
        str | None, typer.Option(help="The domain that is held out; '' for none, in a final model.")
    ] = None,
    ratio: Annotated[float | None, typer.Option(help="Imbalance ratio of a generated setting.")] = None,
    shrink: Annotated[
        bool | None, typer.Option("--shrink/--no-shrink", help="Take what is there where counts can't be met.")
    ] = None,
    validation: Annotated[
        int | None,
        typer.Option(help="Validation samples per class and source; with --shrink a third of a class at most."),
    ] = None,
    method: Annotated[
        str | None, typer.Option(help="A name from `longshift methods`, or path/to/file.py:Class.")
    ] = None,
    set_: Annotated[
        list[str] | None, typer.Option("--set", metavar="NAME=VALUE", help="A hyper-parameter; repeat it.")
    ] = None,
    backbone: Annotated[
        str | None, typer.Option(help="Any timm model, small_conv, mlp; auto = resnet50, small_conv or mlp.")
    ] = None,
    pretrained: Annotated[
        bool | None,
        typer.Option("--pretrained/--no-pretrained", help="Start from timm's or torchvision's own weights."),
    ] = None,
    weights: Annotated[str | None, typer.Option(help="Start from a .safetensors file.")] = None,
    freeze_bn: Annotated[
        bool | None, typer.Option("--freeze-bn/--train-bn", help="Batch-norm statistics (frozen by protocol).")
    ] = None,
    image_size: Annotated[
        int | None, typer.Option(help="Pixels; default 224, digits 32, images of up to 64 as they are.")
    ] = None,
    augment: Annotated[str | None, typer.Option(help="auto, on or off.")] = None,
    steps: Annotated[int | None, typer.Option(help="Training steps (5000 by protocol).")] = None,
    schedules: Annotated[
        str | None, typer.Option(help="given, or scaled: annealing and the like in proportion to the steps.")
    ] = None,
    eval_every: Annotated[int | None, typer.Option(help="Steps between validations (300 by protocol).")] = None,
    evaluate: Annotated[
        str | None, typer.Option("--eval", help="selected: test and target at the end; full: each time.")
    ] = None,
    average: Annotated[
        str | None, typer.Option(help="Also average the weights: ema or swa; judged as a model of its own.")
    ] = None,
    average_from: Annotated[
        int | None, typer.Option(help="First step of the average; default: ema 1, swa half way.")
    ] = None,
    split_seed: Annotated[int | None, typer.Option(help="Which files are training, validation, test.")] = None,
    hparam_seed: Annotated[
        int | None, typer.Option(help="0 = defaults; n = random draw n of the hyper-parameters.")
    ] = None,
    train_seed: Annotated[int | None, typer.Option(help="Initial weights, batches, augmentation.")] = None,
    config: Annotated[
        Path | None, typer.Option(help="A TOML file with these names as keys; flags win over it.")
    ] = None,
    out: Annotated[Path | None, typer.Option(help="The run's folder; default runs/METHOD-TARGET-HASH.")] = None,
    resume: Annotated[Path | None, typer.Option(help="A run's folder to go on with; no other flags needed.")] = None,
    sampling: Annotated[
        str | None, typer.Option(help="domain: the same number from each source; pooled: sources as one.")
    ] = None,
    device: Annotated[str, typer.Option(help="auto, cpu, cuda, cuda:1 ...")] = "auto",
    precision: Annotated[str, typer.Option(help="auto (bf16 on GPUs that have it), fp32, bf16.")] = "auto",
    graphs: Annotated[str, typer.Option(help="CUDA graphs around the step: auto, on, off.")] = "auto",
    compile_: Annotated[
        str,
        typer.Option("--compile", help="Compile backbone and augmentation: auto (long GPU runs), on, off."),
    ] = "auto",
    stream: Annotated[
        bool, typer.Option("--stream", help="Keep images on the host even if they fit on the GPU.")
    ] = False,
    cache: Annotated[Path | None, typer.Option(help="Folder of decoded images; default $LONGSHIFT_CACHE.")] = None,
    checkpoint_every: Annotated[int, typer.Option(help="Steps between checkpoints; 0 = at each validation.")] = 0,
    model: Annotated[bool, typer.Option("--model/--no-model", help="Keep the selected weights.")] = True,
    track: Annotated[str | None, typer.Option(help="tensorboard (in the run's folder) or mlflow (beside it).")] = None,
    predictions: Annotated[
        bool, typer.Option("--predictions", help="Keep the logits of validation, test and target.")
    ] = False,
    quiet: QuietFlag = False,
    as_json: JsonFlag = False,
) -> None:
    """Train one method (see TRAIN_HELP)."""
    # Imported here: `longshift --help` must not wait for torch.
    from longshift.locks import lock_folder
    from longshift.nn import check_backbone
    from longshift.training import (
        RunFolder,
        Runtime,
        Trainer,
        begin_ahead,
        choose_size,
        declare_benchmark,
        graceful_stop,
        make_task,
        name_target,
        open_tracker,
        parse_run_config,
        read_config,
        say_network,
        tracker_kind,
    )

    flags: dict[str, Any] = {
        "data": data, "benchmark": benchmark, "setting": setting, "target": target, "ratio": ratio, "shrink": shrink,
        "validation": validation,
        "method": method, "backbone": backbone, "pretrained": pretrained, "weights": weights, "freeze_bn": freeze_bn,
        "image_size": image_size, "augment": augment, "steps": steps, "eval_every": eval_every, "evaluate": evaluate,
        "schedules": schedules,
        "average": average, "average_from": average_from, "sampling": sampling,
        "split_seed": split_seed, "hparam_seed": hparam_seed, "train_seed": train_seed,
    }  # fmt: skip
    given = {name: value for name, value in flags.items() if value is not None}
    if resume is not None:
        if given or set_ or config or (out and out != resume):
            raise UsageError("--resume takes everything from the run's folder; drop the other flags")
        run, folder = read_config(RunFolder(resume)), resume
    else:
        values = read_toml(config) if config else {}
        hparams = {**values.get("hparams", {}), **parse_assignments(set_ or [])}
        asked = parse_run_config({**values, **given, "hparams": hparams})
        run = choose_size(name_target(declare_benchmark(asked)))
        if run.benchmark != asked.benchmark and not quiet:
            errors.print(f"the names are those of {run.benchmark}: its published counts are used", highlight=False)
        if not (quiet or run.vectors or ({"image_size", "backbone"} <= {**values, **given}.keys())):
            errors.print(
                f"{say_network(run)} (--backbone and --image-size choose others)", highlight=False, soft_wrap=True
            )
        folder = out or Path("runs") / f"{run.method_class.info.name}-{_safe(run.target)}-{run.fingerprint()[:8]}"
    runtime = Runtime(
        device=device,
        precision=_one_of("precision", precision, ("auto", "fp32", "bf16")),
        graphs=_one_of("graphs", graphs, ("auto", "on", "off")),
        compile=_one_of("compile", compile_, ("auto", "on", "off")),
        stream=stream,
        cache=cache,
        checkpoint_every=checkpoint_every,
        keep_model=model,
        save_predictions=predictions,
    )
    if not quiet and run.never_starts():
        caution(f"warning: {run.never_starts()}")
    begin_ahead(runtime, run.steps)
    check_backbone(run.backbone_name, run.pretrained)  # before the images are decoded
    tracking = open_tracker(tracker_kind(track), folder, run) if track else nullcontext()
    task = make_task(run, cache, lambda label, total: progress(label, total, quiet))

    def announce() -> None:
        errors.print("stopping after this step; press Ctrl-C again to stop at once", soft_wrap=True)

    label = f"{run.method} on {run.target}"
    with (
        lock_folder(folder),
        graceful_stop(announce) as stop,
        progress(label, run.steps, quiet) as tick,
        tracking as tracker,
    ):
        on_row = tracker.row if tracker else (lambda row: None)
        result = Trainer(run, task, folder, runtime, stop, on_row).run(tick, resume=resume is not None)
        if tracker:
            tracker.finish(result)
    if as_json:
        print_json({"folder": str(folder), **result})
    else:
        show_result(folder, result)


def show_result(folder: Path, result: dict[str, Any]) -> None:
    """Print a finished run."""
    if result["status"] == "diverged":
        errors.print(f"the loss became infinite or NaN before step {result['diverged_at']}", style="red")
    rows = []
    for which in ("selected", "averaged", "last"):
        found = result.get(which)
        for name in ("validation", "test", "target"):
            if found and name in found:
                part = found[name]
                numbers = [_percent(part[key]) for key in ("accuracy", "many", "medium", "few", "worst_domain")]
                rows.append([f"{which} (step {found['step']})", name, *numbers])
    print_table(f"{folder}", ("weights", "set", "accuracy", "many", "medium", "few", "worst domain"), rows)
    console.print(f"{result['seconds']['per_step'] * 1000:.1f} ms a step, {result['seconds']['total']:.1f} s in all")


def _percent(value: float | None) -> str:
    return "-" if value is None else f"{100 * value:.1f}"


def parse_assignments(items: list[str]) -> dict[str, Any]:
    """`alpha=0.3` and the like; values are read as TOML, and as plain text where that fails."""
    result: dict[str, Any] = {}
    for item in items:
        name, equals, text = item.partition("=")
        if not equals or not name.strip():
            raise UsageError(f"expected --set NAME=VALUE, found {item!r}")
        result[name.strip()] = parse_value(text)
    return result


def _one_of(name: str, value: str, options: tuple[str, ...]) -> Any:
    if value not in options:
        raise UsageError(f"--{name}: expected one of {', '.join(options)}, got {value!r}")
    return value


def _safe(name: str) -> str:
    return "".join(c if c.isalnum() or c in "-_." else "_" for c in name)
