"""Options that several commands share, and their types."""

from hytas.cli.options.common import (
    MOST_THREADS,
    BudgetType,
    Command,
    OpenChoice,
    Option,
    budgets_option,
    command_line,
    device_option,
    is_given,
    json_option,
    plugin_option,
    refuse_given,
    together,
    uniform_option,
    whole_numbers,
    workers_option,
)
from hytas.cli.options.paths import (
    absolute_paths,
    budget_from_the_root,
    moved_options,
    run_argument,
)
from hytas.cli.options.settings import PanelCommand, setting_option, setting_options
from hytas.cli.options.training import recipe_of, recipe_option, training_options

__all__ = [
    "MOST_THREADS",
    "BudgetType",
    "Command",
    "OpenChoice",
    "Option",
    "PanelCommand",
    "absolute_paths",
    "budget_from_the_root",
    "budgets_option",
    "command_line",
    "device_option",
    "is_given",
    "json_option",
    "moved_options",
    "plugin_option",
    "recipe_of",
    "recipe_option",
    "refuse_given",
    "run_argument",
    "setting_option",
    "setting_options",
    "together",
    "training_options",
    "uniform_option",
    "whole_numbers",
    "workers_option",
]
