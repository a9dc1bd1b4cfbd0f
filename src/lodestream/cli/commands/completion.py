"""`lode completion`: what a shell needs to complete our words."""

from __future__ import annotations

import click
from click.shell_completion import get_completion_class
from rich.text import Text

from lodestream.cli.call import Call, LodeCommand, pass_call


@click.command(
    cls=LodeCommand,
    examples=(
        "lode completion bash >> ~/.bashrc",
        "lode completion zsh >> ~/.zshrc",
        "lode completion fish > ~/.config/fish/completions/lode.fish",
    ),
)
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
@pass_call
def completion(call: Call, shell: str) -> None:
    """Print the script that makes SHELL complete commands, options and table names."""
    maker = get_completion_class(shell)
    if maker is None:
        raise click.UsageError(f"no completion for {shell}")
    root = click.get_current_context().find_root().command
    script = maker(root, {}, "lode", "_LODE_COMPLETE").source()
    call.screen.show({"shell": shell, "script": script}, Text(script))
