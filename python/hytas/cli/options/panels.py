"""The help of `hytas search` in panels: the most used options first, then the others by topic."""

import click

from hytas.cli.config_file import ConfiguredCommand

PANELS = {
    "Most used": ("data", "labels", "budgets", "out", "effort", "split", "seeds", "config"),
    "Scene": (
        *("test_data", "resample", "scale_by", "data_dir", "cube_key", "axes", "bands", "nodata"),
        *("patch_size", "band_group", "scaling", "resize", "skip_unreadable"),
    ),
    "Labels": (
        *("test_labels", "labels_key", "label_column", "group_column", "class_field"),
        *("class_names", "labels_crs"),
        *("unlabelled", "zero_is_a_class"),
    ),
    "Split": (
        *("train_per_class", "train_fraction", "block", "folds", "fold", "validation_fraction"),
    ),
    "Budget and search": (
        *("space", "proxy", "population", "generations", "strategy", "pareto", "supernet"),
    ),
    "Race": ("finalists", "race_steps", "race_epochs", "ranking"),
    "Training": ("epochs", "final_training_on", "recipe", "self_training"),
    "Map": ("smooth",),
    "Running": ("seed", "device", "workers", "plugins", "as_json", "write_config"),
}
"""Title -> parameters of `hytas search`, in the order of the help. A new option has a place here;
one without is listed last."""


class PanelCommand(ConfiguredCommand):
    """A command whose help lists its options in `PANELS`."""

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write a section for each panel."""
        records = {
            str(parameter.name): record
            for parameter in self.get_params(ctx)
            if (record := parameter.get_help_record(ctx)) is not None
        }
        for title, names in PANELS.items():
            if rows := [records.pop(name) for name in names if name in records]:
                with formatter.section(title):
                    formatter.write_dl(rows)
        if records:
            with formatter.section("Other"):
                formatter.write_dl(list(records.values()))
